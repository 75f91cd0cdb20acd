"""D-SOFT: candidates for alignments, by seeds that are counted on diagonals.

All k-mers of the targets are in a table. Those of a read, and of its reverse complement, are looked up, some hundred in
all. Each place of one lies on a diagonal; neighbouring diagonals make a bin. As soon as the seeds of a bin cover enough
bases of the read, the seed that does it is a candidate, and the bin is closed. Source: Turakhia, Bejerano, Dally,
Darwin: a genomics co-processor (ASPLOS 2018); Ahmed et al., GPU acceleration of Darwin read overlapper for de novo
assembly of long DNA reads (BMC Bioinformatics 21, 2020).

The paper takes the first k-mers of a read that have a place. Those of an overlap at the end of a long read are then not
among them, so f5py spreads them over the read.
"""

# mypy: disable-error-code="assignment,arg-type"
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import appended
from f5py.mapping.darwin.darwin_settings import BIN, MOST_PLACES, N_SEEDS, SEED_BASES, SPREAD, K
from f5py.mapping.darwin.extensions import N_CANDIDATE
from f5py.mapping.index.reference_index import COUNT_BITS, ReferenceIndex, contig_at, look_up
from f5py.mapping.index.seeds import collecting, copy_to_places
from f5py.threads.pool import WorkerPool, longest_first

_COUNT_MASK = (1 << COUNT_BITS) - 1
_COMPLEMENTS = np.array([3, 2, 1, 0, 4], np.uint8)


@exact_inner
def _kmer(strand, at, k):
    """Return the number of a k-mer, or -1 if a base is unknown."""
    key = np.int64(0)
    for i in range(at, at + k):
        if strand[i] > 3:
            return np.int64(-1)
        key = (key << 2) | np.int64(strand[i])
    return key


@exact_inner
def _candidates_of(strand, which, seeds, offsets, integers, bins, touched, found, n):
    """Append a strand's candidates to `found`; return `found`, the number of candidates and `touched`.

    `which` has the target that is the read, or -1, 1 for the reverse strand, and the read. `bins` are, by diagonals,
    the bases of the read that the seeds of a bin cover, 0, and left so, and where its last seed begins; int32.
    """
    own, reverse, read = which
    places = seeds.places
    counts, lasts = bins
    k = integers[K]
    length = strand.shape[0]
    n_kmers = length - k + 1
    n_seeds = integers[N_SEEDS]
    spread = integers[SPREAD] != 0
    n_used = 0
    n_touched = 0
    for step in range(min(n_kmers, n_seeds) if spread else n_kmers):
        o = np.int64(step)
        if spread and n_kmers > n_seeds:
            o = step * (n_kmers - 1) // (n_seeds - 1)
        if not spread and n_used >= n_seeds:
            break
        key = _kmer(strand, o, k)
        if key < 0:
            continue
        entry = look_up(seeds, np.uint64(key))
        n_places = entry & _COUNT_MASK
        if n_places > integers[MOST_PLACES]:
            continue
        n_used += n_places > 0
        first = entry >> COUNT_BITS
        for at in range(first, first + n_places):
            place = places[at]
            b = (place - o + length) // integers[BIN]
            count = counts[b]
            if count < 0:
                continue
            if count == 0:
                touched, n_touched = appended(touched, n_touched, b)
                count = k
            else:
                count += min(k, o - lasts[b])
            lasts[b] = o
            if count < integers[SEED_BASES]:
                counts[b] = count
                continue
            counts[b] = -1
            target = contig_at(offsets, place)
            if target == own:
                continue
            if n >= found.shape[0]:
                larger = np.empty((2 * n + 16, N_CANDIDATE), np.int64)
                larger[:n] = found[:n]
                found = larger
            found[n, 0] = read
            found[n, 1] = reverse
            found[n, 2] = target
            found[n, 3] = place - offsets[target]
            found[n, 4] = o
            n += 1
    for i in range(n_touched):
        counts[touched[i]] = 0
    return found, n, touched


@exact_kernel
def find_candidates(queue, reads, strands, read_offsets, owns, seeds, offsets, integers, n_found):
    """Find the candidates of reads.

    Return the reads in the order of this thread, and their candidates, int64, shape (n * N_CANDIDATE,).

    Parameters
    ----------
    owns : int64, shape (n_reads,)
        The target that is the read, or -1.
    seeds : f5py.mapping.index.reference_index.SeedIndex
        Places are those of the first bases of k-mers, among all.
    n_found : int64, shape (n_reads,)
        Filled.
    """
    done = np.empty(16, np.int64)
    n_done = 0
    found = np.empty((1024, N_CANDIDATE), np.int64)
    n = 0
    counts = np.empty(0, np.int32)
    lasts = np.empty(0, np.int32)
    touched = np.empty(1024, np.int64)
    for turned in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[turned]
        done, n_done = appended(done, n_done, read)
        begin = read_offsets[read]
        end = read_offsets[read + 1]
        n_bins = (offsets[offsets.shape[0] - 1] + end - begin) // integers[BIN] + 1
        if counts.shape[0] < n_bins:
            counts = np.zeros(n_bins + (n_bins >> 3), np.int32)
            lasts = np.zeros(counts.shape[0], np.int32)
        before = n
        for reverse in range(2):
            found, n, touched = _candidates_of(
                strands[reverse, begin:end], (owns[read], reverse, read), seeds, offsets, integers, (counts, lasts),
                touched, found, n,
            )  # fmt: skip
        n_found[read] = n - before
    return done[:n_done], found[:n].copy().reshape(-1)


def strands_of(codes: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Stack the codes of reads and of their reverse complements, at the same places."""
    strands = np.stack([codes, _COMPLEMENTS[codes]])
    for begin, end in pairwise(offsets.tolist()):
        strands[1, begin:end] = strands[1, begin:end][::-1].copy()
    return strands


def find_candidates_of(
    strands: NDArray[np.uint8],
    read_offsets: NDArray[np.int64],
    owns: NDArray[np.int64],
    index: ReferenceIndex,
    integers: NDArray[np.int64],
    pool: WorkerPool,
    number: int,
) -> NDArray[np.int64]:
    """Find the candidates of all reads; int64, shape (n, N_CANDIDATE), in the order of the reads.

    Parameters
    ----------
    strands : uint8, shape (2, read_offsets[-1])
        See `strands_of`.
    owns : int64, shape (n_reads,)
        The target that is the read, or -1.
    index : ReferenceIndex
        Of `f5py.mapping.index.reference_index.index_kmers`.
    number : int
        Of the batch.
    """
    n = len(read_offsets) - 1
    n_found = np.zeros(n, np.int64)
    results: list[Any] = []
    lengths = np.diff(read_offsets)
    pool.run(
        collecting(find_candidates, results), longest_first(lengths, np.ones(n, np.bool_)), strands, read_offsets, owns,
        index.seeds, index.offsets, integers, n_found, order=number,
    )  # fmt: skip
    sizes = n_found * N_CANDIDATE
    offsets = offsets_of(sizes)
    out = np.empty(offsets[-1], np.int64)
    for done, found in results:
        copy_to_places(done, sizes, offsets, found, out)
    return out.reshape(-1, N_CANDIDATE)
