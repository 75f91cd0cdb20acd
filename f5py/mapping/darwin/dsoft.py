"""D-SOFT: candidates for alignments, by seeds that are counted on diagonals.

All k-mers of the targets are in a table. Those of a read, and of its reverse complement, are looked up, some hundred in
all. Each place of one lies on a diagonal; neighbouring diagonals make a bin. As soon as the seeds of a bin cover enough
bases of the read, the seed that does it is a candidate, and the bin is closed. Source: Turakhia, Bejerano, Dally,
Darwin: a genomics co-processor (ASPLOS 2018); Ahmed et al., GPU acceleration of Darwin read overlapper for de novo
assembly of long DNA reads (BMC Bioinformatics 21, 2020).

The paper takes the first k-mers of a read that have a place. Those of an overlap at the end of a long read are then not
among them, so f5py spreads them over the read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.mapping.darwin.extensions import N_CANDIDATE
from f5py.mapping.darwin.gact import make_strands
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.index.seeds import collecting, copy_to_places
from f5py.threads.pool import WorkerPool, longest_first


class ReadStrands(NamedTuple):
    """Both strands of reads."""

    # codes: shape (2, offsets[-1]): those of the reads, and of their reverse complements at the same places
    codes: NDArray[np.uint8]
    offsets: NDArray[np.int64]  # shape (n + 1,)

    @classmethod
    def of(cls, codes: NDArray[np.uint8], offsets: NDArray[np.int64], pool: WorkerPool, number: int) -> ReadStrands:
        """Make them."""
        strands = np.empty((2, len(codes)), np.uint8)
        lengths = np.diff(offsets)
        pool.run(make_strands, longest_first(lengths, lengths > 0), codes, offsets, strands, order=number)
        return cls(strands, offsets)


def find_candidates_of(
    reads: ReadStrands,
    owns: NDArray[np.int64],
    index: ReferenceIndex,
    integers: NDArray[np.int64],
    pool: WorkerPool,
    number: int,
) -> NDArray[np.int64]:
    """Find the candidates of all reads; int64, shape (n, N_CANDIDATE), in the order of the reads.

    Parameters
    ----------
    reads : ReadStrands
    owns : int64, shape (n_reads,)
        The target that is the read, or -1.
    index : ReferenceIndex
        Of `f5py.mapping.index.reference_index.index_kmers`.
    integers : int64
    pool : WorkerPool
    number : int
        Of the batch.
    """
    from f5py.mapping.darwin._dsoft_numba import KmerTable, find_candidates
    from f5py.mapping.index._reference_index_numba import SeedIndex

    n = len(reads.offsets) - 1
    n_found = np.zeros(n, np.int64)
    results: list[Any] = []
    lengths = np.diff(reads.offsets)
    pool.run(
        collecting(find_candidates, results), longest_first(lengths, np.ones(n, np.bool_)), reads.codes, reads.offsets,
        owns, KmerTable(SeedIndex(*index.seeds), index.offsets), integers, n_found, order=number,
    )  # fmt: skip
    sizes = n_found * N_CANDIDATE
    offsets = offsets_of(sizes)
    out = np.empty(offsets[-1], np.int64)
    for done, found in results:
        copy_to_places(done, sizes, offsets, found, out)
    return out.reshape(-1, N_CANDIDATE)
