"""Joins of a read's chains over long gaps, to be scored elsewhere than where chains are cut.

Where it is worth it, the anchors of a read's chains are chained once more, with the long bandwidth. They are divided
into segments, see `segments`, that can be scored in any order and place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.mapping.batch import Anchors, MappingBatch
from f5py.mapping.settings import BW_LONG, MAX_GAP, Parameters
from f5py.threads.pool import WorkerPool, longest_first, threads_for

if TYPE_CHECKING:
    from f5py.mapping.chain._joins_numba import CutChains, JoinPlaces, PackedJoins

#: So many anchors are copied before workers would have come.
_FEW_ANCHORS = 1 << 20


def long_reach_of(parameters: Parameters) -> int:
    """Largest distance between neighbours in a joined chain, on contig and read."""
    return int(max(parameters.integers[MAX_GAP], parameters.integers[BW_LONG]))


@dataclass
class Joins:
    """First chains of a batch, of which some are yet to be joined."""

    lengths: NDArray[np.int64]  # of all reads
    cut: CutChains
    reads: NDArray[np.int64]  # those to be joined, with most anchors first
    parameters: Parameters
    pool: WorkerPool
    number: int  # of the batch

    @classmethod
    def of(cls, batch: MappingBatch, parameters: Parameters, pool: WorkerPool) -> Joins:
        """Cut the first chains of all reads."""
        from f5py.mapping.chain._joins_numba import TO_JOIN, cut_reads

        anchors = batch.anchors
        assert anchors is not None
        cut = made_room(len(batch), anchors)
        pool.run(
            cut_reads, longest_first(batch.lengths, np.ones(len(batch), np.bool_)), batch.columns, anchors, parameters,
            cut, order=batch.number,
        )  # fmt: skip
        return cls(
            batch.lengths, cut, longest_first(cut.n_anchors, cut.states == TO_JOIN), parameters, pool, batch.number
        )

    def places_of(self, reads: NDArray[np.int64]) -> JoinPlaces:
        """Say where the anchors and segments of reads stand, one read after another."""
        from f5py.mapping.chain._joins_numba import JoinPlaces

        return JoinPlaces(offsets_of(self.cut.n_anchors[reads]), offsets_of(self.cut.n_segments[reads]))

    def pack(self, reads: NDArray[np.int64], places: JoinPlaces, packed: PackedJoins) -> None:
        """Copy the anchors of reads as a GPU takes them, and fill their segments."""
        from f5py.mapping.chain._joins_numba import pack_joins

        threads_for(self.pool, int(places.anchors[-1]), _FEW_ANCHORS).run(
            pack_joins, np.arange(len(reads)), reads, self.cut, self.parameters.integers, places, packed,
            order=self.number,
        )  # fmt: skip

    def unpack(self, reads: NDArray[np.int64], places: JoinPlaces, packed: PackedJoins) -> None:
        """Take the scores and predecessors of reads, which are joined then."""
        from f5py.mapping.chain._joins_numba import unpack_joins

        threads_for(self.pool, int(places.anchors[-1]), _FEW_ANCHORS).run(
            unpack_joins, np.arange(len(reads)), reads, self.cut, places, packed, order=self.number
        )


def made_room(n_reads: int, anchors: Anchors) -> CutChains:
    """Make room for the first chains of so many reads: of all that have these anchors, or none.

    With none the chains are cut where they are needed.
    """
    from f5py.mapping.chain._joins_numba import CutChains

    n = len(anchors.x) if n_reads else 0
    n_chains, n_anchors, n_segments, work = np.empty((4, n_reads), np.int64)
    return CutChains(
        np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32),
        np.empty(n, np.int32), n_chains, n_anchors, n_segments, work, np.empty(n_reads, np.uint8), anchors.offsets,
    )  # fmt: skip
