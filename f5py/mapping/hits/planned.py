"""Stretches that will be aligned, listed before, so that they can be aligned elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.mapping.batch import MappingBatch
from f5py.mapping.hits.hits import contigs_of
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.index.seeds import collecting
from f5py.mapping.settings import Parameters
from f5py.threads.pool import WorkerPool, longest_first

_AT_A_TIME = 16


@dataclass
class Stretches:
    """Stretches that `align_hits` will align, as far as no score drops."""

    batch: MappingBatch
    index: ReferenceIndex
    pool: WorkerPool
    keys: NDArray[np.int64]  # shape (n, 7): see `f5py.mapping.align._pair_alignment_numba.Made`
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
        from f5py.mapping.hits._planned_numba import N_KEYS, gather_keys, plan_reads

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
            gather_keys(done, n_planned, offsets, found, keys)
        return cls(batch, index, pool, keys, offsets)

    def pack(self, chosen: NDArray[np.int64], places: NDArray[np.int64], packed: NDArray[np.uint8]) -> None:
        """Copy the bases of stretches to where they stand one after another, the target's before the query's."""
        from f5py.mapping.hits._planned_numba import Plan, pack_stretches

        batch = self.batch
        self.pool.run(
            pack_stretches, np.arange(-(-len(chosen) // _AT_A_TIME)), _AT_A_TIME,
            Plan(self.keys, self.read_of, chosen, places), batch.codes, batch.offsets, self.index.bases, packed,
            order=batch.number,
        )  # fmt: skip
