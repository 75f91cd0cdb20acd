"""Scores of joins of chains over long gaps on a GPU.

The CPU threads cut the first chains of a batch and sort the anchors of those worth joining
(`f5py.mapping.chain.joins`). The GPU scores them, a warp each for independent segments. Reads that do not fit, or would
take a warp long, are left to the CPU threads. Both compute the same numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.buffers import TransferredArrays, copy_to_device
from f5py.compute.gpu.device import GpuDevice, guarded
from f5py.compute.gpu.part_pool import GpuPartPool, rounds
from f5py.compute.gpu.sources import functions
from f5py.mapping.batch import MappingBatch
from f5py.mapping.chain.chaining import score_chains
from f5py.mapping.chain.joins import Joins, long_reach_of
from f5py.mapping.chain.segments import MOST_REACH, MOST_READ_LENGTH
from f5py.mapping.gpu.chains import trial_anchors
from f5py.mapping.settings import AVA, BW, BW_LONG, GAP_PENALTY, INNER_DISTANCE, MAX_SKIP, RMQ_CAPACITY, Parameters
from f5py.threads.pool import WorkerPool

#: Parts of the arena, in each of which a batch can be.
_N_PARTS = 2
#: Anchors of a part, at most and at least; a batch has hardly more than one for so many bases.
_MOST_ANCHORS, _FEWEST_ANCHORS, _BASES_OF_ANCHOR = 1 << 20, 1 << 12, 8
#: Bytes of the device that an anchor takes.
_ANCHOR = 48
#: A batch is left to the CPU threads if each of them has fewer anchors: it is done before a GPU would be.
_FEW_ANCHORS = 1000
#: So is a read with more pairs of anchors in reach: a warp may have to look through all of them.
_MOST_WORK = 1 << 25
_THREADS, _WARPS = 128, 4
_MOST_SKIPPED = 1 << 30


class _JoinPart(TransferredArrays):
    """Part of the arena, with room for anchors."""

    def __init__(self, n_anchors: int, zero_copy: bool) -> None:
        self.n_anchors = n_anchors
        arrays = (("anchors chains segments", 2 * n_anchors, np.int32),)
        scratch = (
            ("keys", n_anchors, np.int64), ("firsts marks", n_anchors, np.int32), ("priorities", n_anchors, np.float64),
        )  # fmt: skip
        super().__init__(arrays, zero_copy, scratch=scratch)


class GpuJoins(GpuPartPool[_JoinPart]):
    """Backend that scores the joins of a batch, with at most `memory` bytes of the device."""

    def __init__(
        self, device: GpuDevice, parameters: Parameters, pool: WorkerPool, memory: int, max_bases: int,
        zero_copy: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(device)
        self.n_joined = 0  # reads with joins scored by the kernel
        self._parameters, self._pool = parameters, pool
        self._functions = self._started(lambda: functions(device.number, (), "joins"))
        (self._penalties,) = self._started(lambda: copy_to_device(parameters.gap_penalty))
        most = min(memory // _N_PARTS // _ANCHOR, _MOST_ANCHORS, max(max_bases // _BASES_OF_ANCHOR, _FEWEST_ANCHORS))
        self._take_parts(_N_PARTS, most, _FEWEST_ANCHORS, lambda size: _JoinPart(size, zero_copy))
        self._checked(self._check, parameters.integers.tobytes() + parameters.floats.tobytes())

    @staticmethod
    def suits(parameters: Parameters) -> bool:
        """Return whether there are joins, and positions and distances fit into the GPU's buffers."""
        integers = parameters.integers
        return bool(integers[BW_LONG] > integers[BW]) and not integers[AVA] and long_reach_of(parameters) < MOST_REACH

    @staticmethod
    def has_room(memory: int) -> bool:
        """Return whether a part fits into so many bytes."""
        return memory >= _N_PARTS * _ANCHOR * _FEWEST_ANCHORS

    @property
    def n_bytes(self) -> int:
        """Bytes of device memory in use."""
        return sum(_ANCHOR * part.n_anchors for part in self._parts)

    def _check(self) -> None:
        """Compare the scores of made-up joins with those of the CPU threads."""
        joins = trial_joins(self._parameters, self._pool)
        self._join(joins, joins.reads)
        self.n_joined = 0
        if not are_joined_alike(joins):
            raise self._differs("joins chains in another way than the CPU")

    def join(self, joins: Joins) -> None:
        """Score the joins of the batch's reads that suit the GPU; thread-safe. Raises `GpuFailure`."""
        cut, reads = joins.cut, joins.reads
        n = cut.n_anchors[reads]
        fits = (n <= min(self._parts[0].n_anchors, RMQ_CAPACITY)) & (cut.work[reads] <= _MOST_WORK)
        fits &= joins.lengths[reads] < MOST_READ_LENGTH
        if n[fits].sum() > _FEW_ANCHORS * self._pool.n_threads:
            self._join(joins, reads[fits])

    def _join(self, joins: Joins, reads: NDArray[np.int64]) -> None:
        from f5py.mapping.chain.joins import PackedJoins

        number, n_anchors = self.device.number, joins.cut.n_anchors
        with self._part() as part:
            for some in rounds(reads, n_anchors, part.n_anchors, len(reads)):
                places = joins.places_of(some)
                n, n_segments = (int(offsets[-1]) for offsets in places)
                packed = PackedJoins(
                    part.pairs("anchors", n), part.pairs("segments", n_segments), part.pairs("chains", n)
                )
                joins.pack(some, places, packed)
                guarded(number, self._launch, part, n, n_segments)
                guarded(number, part.wait)
                joins.unpack(some, places, packed)
        with self._lock:
            self.n_joined += len(reads)

    def _launch(self, part: _JoinPart, n: int, n_segments: int) -> None:
        """Queue the copies and the kernel of a round."""
        integers = self._parameters.integers
        part.upload("anchors", 2 * n)
        part.upload("segments", 2 * n_segments)
        half_gap = 0.5 * np.float64(self._parameters.floats[GAP_PENALTY])
        with part.stream:
            part.launch(
                self._functions["join_chains"], -(-n_segments // _WARPS), _THREADS, "anchors", "segments", n_segments,
                long_reach_of(self._parameters), int(integers[BW_LONG]), INNER_DISTANCE,
                min(int(integers[MAX_SKIP]), _MOST_SKIPPED), half_gap, self._penalties, "keys", "firsts", "marks",
                "priorities", "chains",
            )  # fmt: skip
        part.download("chains", 2 * n)

    def _release(self) -> None:
        self._penalties = None
        super()._release()


def trial_joins(parameters: Parameters, pool: WorkerPool) -> Joins:
    """Cut the chains of made-up anchors, the same ones every time, at gaps to be joined."""
    anchors = trial_anchors()
    last = (anchors.y & 0xFFFFFFFF).reshape(len(anchors.offsets) - 1, -1).max(axis=1)
    batch = MappingBatch.of_codes([np.zeros(n + 2000, np.uint8) for n in last])
    batch.anchors = anchors
    score_chains(batch, parameters, pool)
    return Joins.of(batch, parameters, pool)


def are_joined_alike(joins: Joins) -> bool:
    """Return whether the joins have the CPU's scores and predecessors."""
    from f5py.mapping._sorting_numba import SORT_SCRATCH
    from f5py.mapping.chain._chains_numba import score_long_joins

    cut, (integers, floats, gap_penalty) = joins.cut, joins.parameters
    scratch = np.empty(SORT_SCRATCH, np.int64)
    for read in joins.reads:
        n = int(cut.n_anchors[read])
        there = slice(cut.offsets[read], cut.offsets[read] + n)
        f, p = np.empty((2, n), np.int32)
        score_long_joins((cut.x[there], cut.y[there]), n, integers, floats, gap_penalty, (f, p), scratch)
        if not (np.array_equal(cut.f[there], f) and np.array_equal(cut.p[there], p)):
            return False
    return True
