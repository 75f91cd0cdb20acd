"""Seeds that are maximal exact matches (MEM) between reads and the reference, and the anchors that they make.

For every last base of a read, on either strand, the longest match that ends there is a seed, unless the one that ends a
base later begins at the same base and has as many places (Ahmed et al., *GPU acceleration of seed extension in DNA read
mapping*, GPUseed, 2016: definition 2). Its anchors are at its last base and every 32 bases before: one anchor for a
long match would be a chain of few seeds, which counts as uncertain. Where matches with the same first base have a place
in common, only the longest one has anchors there. Matches with too many places are passed over by the rule for
minimizers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.mapping.batch import MappingBatch
from f5py.mapping.index.seeds import collecting, take_anchors
from f5py.mapping.mem.fm_index import FmIndex
from f5py.mapping.settings import Parameters
from f5py.threads.pool import WorkerPool, longest_first


class MemSearch(NamedTuple):
    """Search for matches: the index, and which matches."""

    fm_index: FmIndex
    contig_offsets: NDArray[np.int64]  # shape (n_contigs + 1,)
    min_length: int  # shortest match that is a seed, at least ``fm_index.k``
    parameters: Parameters


def find_mem_anchors(batch: MappingBatch, search: MemSearch, pool: WorkerPool) -> float:
    """Find the sorted anchors of all reads; fills ``batch.anchors``.

    Return the seconds that all threads together have worked.

    Parameters
    ----------
    batch : MappingBatch
        With codes.
    """
    n = len(batch)
    sums = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    results: list[Any] = []
    seconds = search_reads(batch, np.arange(n), search, pool, sums, results)
    take_anchors(batch, results, *sums)
    return seconds


def search_reads(
    batch: MappingBatch,
    reads: NDArray[np.int64],
    search: MemSearch,
    pool: WorkerPool,
    sums: tuple[NDArray[np.int64], ...],
    results: list[Any],
) -> float:
    """Find the anchors of some reads on the CPU threads.

    Return the seconds that all threads together have worked.

    Parameters
    ----------
    sums : tuple of int64, shape (n_reads,)
        Numbers of anchors and of seeds, and bases that unused seeds cover; filled for these reads.
    results : list
        What each thread has found is added, for `take_anchors`.
    """
    from f5py.mapping.index._seeds_numba import SeedCounts
    from f5py.mapping.mem._mem_anchors_numba import seed_reads_by_mems
    from f5py.mapping.mem.mem_arrays import MemIndex

    order = reads[longest_first(batch.lengths[reads], np.ones(len(reads), np.bool_))]
    return pool.run(
        collecting(seed_reads_by_mems, results),
        order,
        batch.codes,
        batch.offsets,
        MemIndex(search.fm_index, search.contig_offsets),
        search.min_length,
        search.parameters.integers,
        SeedCounts(*sums),
        order=batch.number,
    )
