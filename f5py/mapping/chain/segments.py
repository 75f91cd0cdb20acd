"""Segments: stretches of a read's anchors that no chain enters or leaves, to be scored on their own.

They end where the next anchor is on another contig or strand, or out of reach. Scores and predecessors within a segment
do not depend on anything outside of it, so that segments can be scored in any order and place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from f5py.mapping.batch import Anchors
from f5py.mapping.settings import BW, MAX_GAP, MAX_ITER, MAX_SKIP, Parameters
from f5py.threads.pool import WorkerPool, longest_first, threads_for

#: Segments with fewer anchors are scored where they are found: that takes no longer than to copy them.
SMALLEST = 8
#: So many anchors are divided and copied before workers would have come.
_FEW_ANCHORS = 1 << 20
#: What positions on the contig and on the read take in a GPU's buffers.
MOST_REACH = 1 << 30
MOST_READ_LENGTH = 1 << 24


def reach_of(parameters: Parameters) -> int:
    """Largest distance between neighbours in a chain, on contig and read."""
    return int(max(parameters.integers[MAX_GAP], parameters.integers[BW]))


def nothing_stops(parameters: Parameters) -> bool:
    """Return whether the search for a predecessor always goes through all anchors that `MAX_ITER` leaves."""
    return bool(parameters.integers[MAX_SKIP] >= parameters.integers[MAX_ITER])


@dataclass
class Segments:
    """Segments of a batch that are yet to be scored."""

    anchors: Anchors
    table: NDArray[np.int64]  # shape (n, N_COLUMNS): columns: `f5py.mapping.chain._segments_numba`
    # f, p: scores and predecessors of all anchors of the batch; those of small segments are there
    f: NDArray[np.int32]
    p: NDArray[np.int32]
    parameters: Parameters
    pool: WorkerPool
    number: int  # of the batch
    seconds: float = 0.0  # what all threads together have worked

    @classmethod
    def of(
        cls, anchors: Anchors, parameters: Parameters, pool: WorkerPool, number: int, smallest: int = SMALLEST
    ) -> Segments:
        """Divide the reads of a batch, and score small segments."""
        from f5py.mapping.chain._chaining_numba import AnchorArrays, ChainScores
        from f5py.mapping.chain._segments_numba import END, N_COLUMNS, segment_reads

        n = len(anchors.x)
        f, p = np.empty(n, np.int32), np.empty(n, np.int32)
        table = np.zeros((n // smallest, N_COLUMNS), np.int64)
        n_anchors = np.diff(anchors.offsets)
        seconds = threads_for(pool, n, _FEW_ANCHORS).run(
            segment_reads, longest_first(n_anchors, n_anchors > 0), AnchorArrays(anchors.x, anchors.y), anchors.offsets,
            parameters, smallest, ChainScores(f, p), table, order=number,
        )  # fmt: skip
        return cls(anchors, table[table[:, END] > 0], f, p, parameters, pool, number, seconds)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Numbers of anchors."""
        from f5py.mapping.chain._segments_numba import BEGIN, END

        return self.table[:, END] - self.table[:, BEGIN]

    @property
    def work(self) -> NDArray[np.int64]:
        """Numbers of pairs within reach."""
        from f5py.mapping.chain._segments_numba import WORK

        return self.table[:, WORK]

    @property
    def is_cut(self) -> NDArray[np.bool_]:
        """Whether the largest number of anchors that are tried leaves pairs out."""
        from f5py.mapping.chain._segments_numba import IS_CUT

        return self.table[:, IS_CUT] != 0

    def score(self, chosen: NDArray[np.int64]) -> None:
        """Score segments on the CPU threads."""
        from f5py.mapping.chain._chaining_numba import AnchorArrays, ChainScores
        from f5py.mapping.chain._segments_numba import score_segments

        anchors, parameters = self.anchors, self.parameters
        self.seconds += self.pool.run(
            score_segments, chosen, self.table, AnchorArrays(anchors.x, anchors.y), parameters.integers,
            parameters.gap_penalty, ChainScores(self.f, self.p), order=self.number,
        )  # fmt: skip

    def pack(self, chosen: NDArray[np.int64], places: NDArray[np.int64], packed: NDArray[np.int32]) -> None:
        """Copy anchors of segments as a GPU takes them; see `pack_segments`."""
        from f5py.mapping.chain._segments_numba import pack_segments

        self.seconds += threads_for(self.pool, int(places[-1]), _FEW_ANCHORS).run(
            pack_segments, _turns(chosen), chosen, self.table, places, self.anchors.x, self.anchors.y, packed,
            order=self.number,
        )  # fmt: skip

    def unpack(self, chosen: NDArray[np.int64], places: NDArray[np.int64], packed: NDArray[np.int32]) -> None:
        """Copy scores and predecessors of segments back."""
        from f5py.mapping.chain._segments_numba import unpack_segments

        self.seconds += threads_for(self.pool, int(places[-1]), _FEW_ANCHORS).run(
            unpack_segments, _turns(chosen), chosen, self.table, places, packed, self.f, self.p, order=self.number
        )


def _turns(chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    from f5py.mapping.chain._segments_numba import AT_A_TIME

    return np.arange(-(-len(chosen) // AT_A_TIME))
