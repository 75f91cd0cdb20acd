"""Chains of anchors on a GPU, with the CPU threads beside it.

The anchors of a batch are divided into segments that do not depend on each other (`f5py.mapping.chain.segments`). Those
that are short enough go to the GPU, ordered by work, in as many rounds as the arena's part needs; the CPU threads score
the others meanwhile. Where nothing stops the search for a predecessor, the kernels transform forward; else they look
back and stop where the CPU stops. All is done in whole numbers: who scores a segment does not show in the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.arena import memory_fraction
from f5py.compute.gpu.buffers import TransferredArrays
from f5py.compute.gpu.device import GpuDevice, GpuFailure, GpuUnavailableError, guarded
from f5py.compute.gpu.parts import PartsOfGpu, rounds
from f5py.compute.gpu.sources import functions
from f5py.core.mapping_batch import Anchors, MappingBatch
from f5py.core.offsets import offsets_of
from f5py.mapping.chain.chaining import score_chains
from f5py.mapping.chain.segments import MOST_REACH, MOST_READ_LENGTH, SMALLEST, Segments, nothing_stops, reach_of
from f5py.mapping.settings import BW, MAX_ITER, MAX_SKIP, Parameters
from f5py.threads.pool import WorkerPool

#: Parts of the arena, in each of which a batch can be.
_N_PARTS = 2
#: Anchors of a part, at most and at least.
_MOST_ANCHORS, _FEWEST_ANCHORS = 4 << 20, 1 << 15
#: Bytes of an anchor: itself, its chain and its mark; and of a segment.
_ANCHOR, _SEGMENT = 20, 8
#: Segments with more anchors go to the CPU threads where the kernels look back, a warp for each.
_MOST_OF_SEGMENT = 16_384
#: A batch is left to the CPU threads if each of them has fewer pairs to try: it is done before a GPU would be.
_FEW_PAIRS = 100_000
#: Pairs that are tried for an anchor, where the search may stop, at most for most anchors.
_TRIED = 64
#: Segments with so many anchors in reach on average get a block each.
_WIDE = 256
_BLOCK_THREADS, _THREADS, _WARPS = 256, 128, 4
_MOST_COUNT = 1 << 30
_BLOCK, _WARP, _BACK = range(3)
_KERNELS = ("chain_forward_block", "chain_forward_warp", "chain_back")


class _Part(TransferredArrays):
    """One part of the arena.

    Attributes
    ----------
    n_anchors, n_segments : int
        What there is room for.
    """

    def __init__(self, n_anchors: int, zero_copy: bool) -> None:
        self.n_anchors, self.n_segments = n_anchors, n_anchors // SMALLEST
        arrays = (("anchors chains", 2 * n_anchors, np.int32), ("segments", 2 * self.n_segments, np.int32))
        super().__init__(arrays, zero_copy)

    def _add_more(self) -> None:
        import cupy

        self.device["marks"] = cupy.empty(self.n_anchors, np.int32)

    def pairs(self, name: str, n: int) -> NDArray[np.int32]:
        """Return the first `n` pairs of numbers of an array of the host."""
        return self.host[name][: 2 * n].reshape(n, 2)


class GpuChaining(PartsOfGpu[_Part]):
    """Fills the scores and predecessors of a batch's anchors; see `f5py.compute.gpu.selection.GpuBackendLike`.

    Parameters
    ----------
    device, max_bases, mem_frac, zero_copy
        As for `f5py.compute.gpu.mapping.mems.GpuMems`.

    Attributes
    ----------
    n_scored : list of int
        Anchors that the kernels have scored, by kernel.

    Raises
    ------
    GpuUnavailableError
        There is too little memory, the kernels do not compile, or do not compute what the CPU does.
    """

    def __init__(
        self,
        device: GpuDevice,
        parameters: Parameters,
        pool: WorkerPool,
        max_bases: int = _MOST_ANCHORS,
        mem_frac: float | None = None,
        zero_copy: bool | None = None,
    ) -> None:
        super().__init__(device)
        self.n_scored = [0, 0, 0]
        self._parameters, self._pool = parameters, pool
        if reach_of(parameters) >= MOST_REACH:
            raise GpuUnavailableError(f"-g and -r are {MOST_REACH} or more")
        self._started(self._start)
        zero_copy = device.integrated if zero_copy is None else zero_copy
        room = int(
            device.free_memory
            * memory_fraction(mem_frac, device.integrated)
            / _N_PARTS
            / (_ANCHOR + _SEGMENT / SMALLEST)
        )
        n = min(room, _MOST_ANCHORS, max(max_bases, _FEWEST_ANCHORS))
        n = self._take_parts(_N_PARTS, n, _FEWEST_ANCHORS, lambda size: _Part(size, zero_copy))
        self._tell_size(n, "anchors")
        self._checked(self._check, parameters.integers.tobytes() + parameters.gap_penalty.tobytes())

    def _start(self) -> None:
        import cupy

        self._functions = functions(self.device.number, (), "chains")
        bandwidth = int(self._parameters.integers[BW])
        self._penalties = cupy.asarray(self._parameters.gap_penalty[: bandwidth + 1])
        cupy.cuda.get_current_stream().synchronize()

    def _check(self) -> None:
        """Score made-up anchors as well as the CPU threads do: no driver or device may change a number."""
        anchors = made_anchors()
        found, expected = (Segments.of(anchors, self._parameters, self._pool, -1) for _ in range(2))
        everything = np.arange(len(found.table))
        expected.score(everything)
        self._score(found, everything, everything[:0])
        self.n_scored = [0, 0, 0]
        if not (np.array_equal(found.f, expected.f) and np.array_equal(found.p, expected.p)):
            raise self._differs("scores chains in another way than the CPU")

    @property
    def n_bytes(self) -> int:
        """Bytes of the device's memory that are taken."""
        return sum(_ANCHOR * part.n_anchors + _SEGMENT * part.n_segments for part in self._parts)

    def compute(self, batch: MappingBatch) -> None:
        """Fill the scores and predecessors of a batch's anchors. May be called from several threads."""
        anchors = batch.anchors
        assert anchors is not None
        if self._broken or batch.lengths.max(initial=0) >= MOST_READ_LENGTH:
            score_chains(batch, self._parameters, self._pool)
            return
        segments = Segments.of(anchors, self._parameters, self._pool, batch.number)
        sizes, work = segments.sizes, segments.work
        order = np.argsort(-work, kind="stable")
        is_forward, most = nothing_stops(self._parameters), self._parts[0].n_anchors
        is_short = sizes[order] <= (most if is_forward else min(most, _MOST_OF_SEGMENT))
        tried = work if is_forward else np.minimum(work, _TRIED * sizes)
        if tried[order[is_short]].sum() <= _FEW_PAIRS * self._pool.n_threads:
            segments.score(order)
        else:
            try:
                self._score(segments, order[is_short], order[~is_short])
            except GpuFailure as problem:
                self.give_up(problem)
                segments.score(order)
        batch.anchors = anchors._replace(f=segments.f, p=segments.p)

    def _score(self, segments: Segments, here: NDArray[np.int64], elsewhere: NDArray[np.int64]) -> None:
        """Score segments on the GPU, and others by the CPU threads meanwhile."""
        number = self.device.number
        with self._part() as part:
            for chosen in rounds(here, segments.sizes, part.n_anchors, part.n_segments):
                kinds = self._kinds(segments)[chosen]
                by_kind = np.argsort(kinds, kind="stable")
                chosen, kinds = chosen[by_kind], kinds[by_kind]
                places = offsets_of(segments.sizes[chosen])
                n = int(places[-1])
                segments.pack(chosen, places, part.pairs("anchors", n))
                guarded(number, self._launch, part, places, kinds, segments.is_cut[chosen])
                segments.score(elsewhere)
                elsewhere = elsewhere[:0]
                guarded(number, part.stream.synchronize)
                segments.unpack(chosen, places, part.pairs("chains", n))
            segments.score(elsewhere)

    def _kinds(self, segments: Segments) -> NDArray[np.int64]:
        """Choose the kernel that scores each segment."""
        if not nothing_stops(self._parameters):
            return np.full(len(segments.table), _BACK)
        return np.where(segments.work >= _WIDE * segments.sizes, _BLOCK, _WARP)

    def _launch(
        self, part: _Part, places: NDArray[np.int64], kinds: NDArray[np.int64], is_cut: NDArray[np.bool_]
    ) -> None:
        """Queue the copies and kernels of a round."""
        integers = self._parameters.integers
        n, n_segments = int(places[-1]), len(kinds)
        table = part.pairs("segments", n_segments)
        table[:, 0], table[:, 1] = places[:-1], 2 * np.diff(places) + is_cut
        part.upload("segments", 2 * n_segments)
        part.upload("anchors", 2 * n)
        ends = np.searchsorted(kinds, range(_BACK + 2))
        bandwidth, max_iter, max_skip = (min(int(integers[at]), _MOST_COUNT) for at in (BW, MAX_ITER, MAX_SKIP))
        limits = (reach_of(self._parameters), bandwidth, max_iter)
        of_search: tuple[Any, ...] = (max_skip, self._penalties, "marks")
        with part.stream:
            for kind, name in enumerate(_KERNELS):
                first, count = int(ends[kind]), int(ends[kind + 1] - ends[kind])
                if count > 0:
                    n_blocks, n_threads = (count, _BLOCK_THREADS) if kind == _BLOCK else (-(-count // _WARPS), _THREADS)
                    part.launch(
                        self._functions[name], n_blocks, n_threads, "anchors", "segments", first, count, *limits,
                        *(of_search if kind == _BACK else (self._penalties,)), "chains",
                    )  # fmt: skip
        part.download("chains", 2 * n)
        sizes = np.diff(places)
        with self._lock:
            for kind in range(_BACK + 1):
                self.n_scored[kind] += int(sizes[kinds == kind].sum())


def made_anchors() -> Anchors:
    """Anchors as reads with repeats have them, the same ones every time."""
    rng = np.random.default_rng(3)
    n_reads, n = 6, 300
    start = rng.integers(0, 1 << 20, (n_reads, 1)) + (np.arange(n_reads)[:, None] % 2 << 32)
    steps = rng.integers(0, 60, (n_reads, n))
    steps[:, [100, 210]] = 9000  # out of reach
    steps = np.cumsum(steps, axis=1)
    on_read = steps + rng.integers(-4, 5, (n_reads, n)) + 60
    # every third anchor is one of a repeat: it lies as often on one place of the contig as on another one
    shifted = np.where(np.arange(n) % 3 == 0, rng.choice([0, 40, 300, 2000], (n_reads, n)), 0)
    x = (start + steps + shifted).astype(np.uint64)
    order = np.argsort(x, axis=1, kind="stable")
    x, on_read = np.take_along_axis(x, order, 1), np.take_along_axis(on_read, order, 1)
    nothing = np.empty(0, np.int64)
    chains = np.empty(0, np.int32)
    return Anchors(
        x.ravel(), (np.int64(15) << 32 | on_read).ravel(), np.arange(n_reads + 1) * n, nothing, nothing, nothing,
        chains, chains,
    )  # fmt: skip
