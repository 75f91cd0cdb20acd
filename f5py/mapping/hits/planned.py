"""Stretches that will be aligned, listed before, so that they can be aligned elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.jit.kernel import exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping.align._stretches_numba import AnchoredRead, list_stretches
from f5py.mapping.batch import MappingBatch
from f5py.mapping.hit_table import COUNT
from f5py.mapping.hits.hits import contigs_of
from f5py.mapping.index.packed_bases import both_strands
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.index.seeds import collecting, copy_to_places
from f5py.mapping.settings import HPC, Parameters
from f5py.threads.pool import WorkerPool, longest_first

N_KEYS = 7


@exact_kernel
def plan_reads(queue, reads, columns, chained, contigs, integers, n_planned):
    """List the stretches that `align_reads` will align, as far as no score drops.

    Return the reads in the order of this thread, and keys of
    `f5py.mapping.align._pair_alignment_numba.KnownAlignments`.

    Parameters
    ----------
    n_planned : int64, shape (n_reads,)
        Filled.
    """
    done = np.empty(reads.shape[0], np.int64)
    n_done = 0
    keys = np.empty((256, N_KEYS), np.int64)
    n_keys = 0
    strands = np.empty(0, np.uint8)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        done[n_done] = read
        n_done += 1
        n_planned[read] = 0
        if chained.offsets[read] == chained.offsets[read + 1]:
            continue
        begin = columns.offsets[read]
        length = columns.offsets[read + 1] - begin
        # homopolymers alone are looked at
        if integers[HPC]:
            strands = both_strands(columns.codes[begin : begin + length], strands)
        x = chained.x[chained.anchor_offsets[read] : chained.anchor_offsets[read + 1]]
        # flags are set again where the hits are aligned
        y = chained.y[chained.anchor_offsets[read] : chained.anchor_offsets[read + 1]].copy()
        anchored = AnchoredRead(x, y, strands, length)
        for h in range(chained.offsets[read], chained.offsets[read + 1]):
            hit = chained.table[h]
            needed = n_keys + hit[COUNT] + 1
            if keys.shape[0] < needed:
                larger = np.empty((2 * needed, N_KEYS), np.int64)
                for j in range(n_keys):
                    for k in range(N_KEYS):
                        larger[j, k] = keys[j, k]
                keys = larger
            found = list_stretches(hit, anchored, contigs, integers, keys[n_keys:])
            n_keys += found
            n_planned[read] += found
    return done[:n_done], keys[:n_keys]


@dataclass
class Stretches:
    """Stretches that `align_hits` will align, as far as no score drops."""

    batch: MappingBatch
    index: ReferenceIndex
    pool: WorkerPool
    keys: NDArray[np.int64]  # shape (n, 7): see `f5py.mapping.align._pair_alignment_numba.KnownAlignments`
    offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    read_of: NDArray[np.int64] = field(init=False)  # shape (n,)
    results: NDArray[np.int64] = field(init=False)  # shape (n, 7): see there; nothing has been made yet

    def __post_init__(self) -> None:
        self.read_of = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        self.results = np.zeros((len(self.keys), 7), np.int64)
        self.results[:, 5] = -1

    @classmethod
    def of(cls, batch: MappingBatch, index: ReferenceIndex, parameters: Parameters, pool: WorkerPool) -> Stretches:
        """List the stretches of a batch with chained hits."""
        assert batch.chained is not None
        n = len(batch)
        n_planned = np.zeros(n, np.int64)
        results: list[Any] = []
        pool.run(
            collecting(plan_reads, results), longest_first(batch.lengths, np.ones(n, np.bool_)), batch.columns,
            batch.chained, contigs_of(index), parameters.integers, n_planned, order=batch.number,
        )  # fmt: skip
        offsets = offsets_of(n_planned)
        keys = np.empty((offsets[-1], N_KEYS), np.int64)
        for done, found in results:
            copy_to_places(done, N_KEYS * n_planned, N_KEYS * offsets, found.reshape(-1), keys.reshape(-1))
        return cls(batch, index, pool, keys, offsets)
