"""Marks of reference k-mers as found in the read: equal, different, inserted, deleted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.cigar import ALIGNED, DELETION, INSERTION, OF_READ, OF_REFERENCE
from f5py.core.motifs import COMPLEMENTS
from f5py.jit.kernel import exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.threads.pool import WorkerPool

_EQUAL, _DIFFERS, _INSERTED, _DELETED, _OUTSIDE = (np.uint8(ord(mark)) for mark in "=XID.")


@exact_kernel
def fill_marks(queue, reads, alignments, bases, base_offsets, letters, kmer, marks):
    """Fill the mark of each k-mer of the reads' references, by its first base.

    Parameters
    ----------
    alignments : f5py.core.batch.Alignments
    bases, base_offsets : uint8, int64
        Of the reads as sequenced.
    letters : uint8, shape (2, 256)
        Reference letter of each read letter, for the forward and the reverse strand.
    kmer : pair of int
        k, and bases ignored at each end.
    marks : uint8, shape (reference_offsets[-1],)
    """
    k, trim = kmer
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        begin, end = alignments.reference_offsets[read], alignments.reference_offsets[read + 1]
        n_bases = base_offsets[read + 1] - base_offsets[read]
        is_reverse = alignments.reverse[read]
        # The last place of each kind; an insertion's is the next base.
        deleted, inserted, different = np.int64(-1), np.int64(-1), np.int64(-1)
        outside = np.int64(-1)
        here = np.int64(0)  # position in the read, in the reference's direction
        operation, last = alignments.cigar_offsets[read], alignments.cigar_offsets[read + 1]
        left = np.int64(0)  # bases of the current operation
        what = np.int64(-1)
        for place in range(end - begin):
            while left == 0 and operation < last:
                what, left = np.int64(alignments.cigar[operation] & 15), np.int64(alignments.cigar[operation] >> 4)
                operation += 1
                if OF_REFERENCE >> what & 1 == 0:
                    if what == INSERTION and left > 0:
                        inserted = place
                    if OF_READ >> what & 1:
                        here += left
                    left = 0
            if left == 0:
                outside = place
            else:
                left -= 1
                if what == DELETION:
                    deleted = place
                elif ALIGNED >> what & 1:
                    is_same = here < n_bases
                    if is_same:
                        at = n_bases - 1 - here if is_reverse else here
                        base = letters[np.int64(is_reverse), bases[base_offsets[read] + at]]
                        is_same = base == alignments.reference[begin + place]
                    if not is_same:
                        different = place
                    here += 1
                else:
                    outside = place
            # The k-mer with its last compared base here.
            first = place - (k - 2 * trim) + 1
            if first < trim:
                continue
            mark = _EQUAL
            if outside >= first:
                mark = _OUTSIDE
            elif deleted >= first:
                mark = _DELETED
            elif inserted > first:
                mark = _INSERTED
            elif different >= first:
                mark = _DIFFERS
            marks[begin + first - trim] = mark
        for place in range(max(end - begin - k + trim + 1, 0), end - begin):
            marks[begin + place] = _OUTSIDE


def compare_kmers(batch: ReadBatch, k: int, pool: WorkerPool, trim: int = 0) -> None:
    """Fill ``batch.kmer_marks`` from reads and alignments, ignoring `trim` bases at both ends of a k-mer.

    Marks are, in this order, ``.`` for k-mers beyond the alignment or in a skipped region (N), ``D`` with a deleted
    base, ``I`` with an insertion inside, ``X`` with a different base, else ``=``.
    """
    batch.kmer_marks = np.empty(int(batch.reference_offsets[-1]), np.uint8)
    pool.run(
        fill_marks, np.arange(len(batch)), batch.alignments, batch.bases, batch.base_offsets, _letters(), (k, trim),
        batch.kmer_marks, order=batch.number,
    )  # fmt: skip


def _letters() -> NDArray[np.uint8]:
    """Make a table of upper-case DNA letters and of their complements by letter; shape (2, 256)."""
    letters = np.arange(256, dtype=np.uint8)
    lower = np.arange(ord("a"), ord("z") + 1)
    letters[lower] = lower - 32
    letters[list(b"Uu")] = ord("T")
    return np.stack([letters, COMPLEMENTS[letters]])
