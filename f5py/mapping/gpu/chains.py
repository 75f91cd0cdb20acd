"""Scores of chains on a GPU, with the CPU threads beside it.

The anchors of a batch are divided into independent segments (`f5py.mapping.chain.segments`). They go to the GPU, the
longest first, in as many rounds as the arena's part needs. Where nothing stops the search for a predecessor, the
kernels transform forward; else they look back and stop where the CPU stops. Then the anchors of a segment wait for each
other, and the CPU threads meanwhile score the longest segments, if they are faster than the GPU, and those that do not
fit into a part. Arithmetic is in whole numbers, so the results are the same on both.
"""

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.arena import memory_fraction
from f5py.compute.gpu.buffers import TransferredArrays, copy_to_device
from f5py.compute.gpu.device import GpuDevice, GpuFailure, GpuUnavailableError, guarded
from f5py.compute.gpu.part_pool import GpuPartPool, rounds
from f5py.compute.gpu.sources import functions
from f5py.core.offsets import offsets_of
from f5py.mapping.batch import Anchors, MappingBatch
from f5py.mapping.chain.chaining import score_chains
from f5py.mapping.chain.segments import MOST_REACH, MOST_READ_LENGTH, SMALLEST, Segments, nothing_stops, reach_of
from f5py.mapping.settings import BW, MAX_ITER, MAX_SKIP, Parameters
from f5py.threads.pool import WorkerPool

#: Parts of the arena, in each of which a batch can be.
_N_PARTS = 2
#: Anchors of a part, at most and at least. A batch has hardly more than one for so many bases, unless there are many
#: repeats; and what is allocated delays the start.
_MOST_ANCHORS, _FEWEST_ANCHORS, _BASES_OF_ANCHOR = 4 << 20, 1 << 15, 4
#: Bytes of an anchor: itself, its chain and its mark; and of a segment.
_ANCHOR, _SEGMENT = 20, 8
#: A batch is left to the CPU threads if each of them has fewer pairs to try: it is done before a GPU would be.
_FEW_PAIRS = 100_000
#: Pairs that are tried for an anchor, where the search may stop, at most for most anchors.
_TRIED = 64
#: Segments with so many anchors in reach on average get a block each.
_WIDE = 256
_BLOCK_THREADS, _THREADS, _WARPS = 256, 128, 4
_MOST_COUNT = 1 << 30
_BLOCK, _WARP, _BACK_BLOCK, _BACK_WARP = range(4)
#: The same where the kernel looks back.
_WIDE_BACK = 1000
#: Warps of a block there, and macros that say otherwise than `kernels/map_look_back.cu`.
_BACK_WARPS = 8
_BACK_MACROS: tuple[str, ...] = ()
#: Predecessors are tried in rows of 32. One row is tried for an anchor, and one more for so many pairs in reach: where
#: many are in reach, the search goes farther before it stops (0.9 to 1.2 times as far as that for reads of repeats).
_PAIRS_OF_ROW = 300
#: Nanoseconds that an anchor and a row take for a block of the GPU, a warp of the GPU, and a thread of the CPU.
_BLOCK_NS, _WARP_NS, _CPU_NS = (450, 25), (100, 250), (220, 68)


class _ChainPart(TransferredArrays):
    """Part of the arena, with room for anchors and segments."""

    def __init__(self, n_anchors: int, zero_copy: bool) -> None:
        self.n_anchors, self.n_segments = n_anchors, n_anchors // SMALLEST
        arrays = (("anchors chains", 2 * n_anchors, np.int32), ("segments", 2 * self.n_segments, np.int32))
        super().__init__(arrays, zero_copy, scratch=[("marks", n_anchors, np.int32)])


class GpuChaining(GpuPartPool[_ChainPart]):
    """Backend that fills the scores and predecessors of a batch's anchors."""

    def __init__(
        self,
        device: GpuDevice,
        parameters: Parameters,
        pool: WorkerPool,
        max_bases: int = _BASES_OF_ANCHOR * _MOST_ANCHORS,
        mem_frac: float | None = None,
        zero_copy: bool | None = None,
    ) -> None:
        super().__init__(device)
        self.n_scored = [0, 0, 0, 0]  # anchors scored by each kernel
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
        n = min(room, _MOST_ANCHORS, max(max_bases // _BASES_OF_ANCHOR, _FEWEST_ANCHORS))
        n = self._take_parts(_N_PARTS, n, _FEWEST_ANCHORS, lambda size: _ChainPart(size, zero_copy))
        self._note_size(n, "anchors")
        self._checked(self._check, parameters.integers.tobytes() + parameters.gap_penalty.tobytes())

    def _start(self) -> None:
        self._functions = functions(self.device.number, _BACK_MACROS, "chains")
        bandwidth = int(self._parameters.integers[BW])
        (self._penalties,) = copy_to_device(self._parameters.gap_penalty[: bandwidth + 1])

    def _check(self) -> None:
        """Compare the scores of made-up anchors with those of the CPU threads."""
        anchors = trial_anchors()
        found, expected = (Segments.of(anchors, self._parameters, self._pool, -1) for _ in range(2))
        everything = np.arange(len(found.table))
        expected.score(everything)
        # both kernels
        kinds = self._kinds(found) // _BACK_BLOCK * _BACK_BLOCK + everything % 2
        self._score(found, kinds, everything, everything[:0])
        self.n_scored = [0, 0, 0, 0]
        if not (np.array_equal(found.f, expected.f) and np.array_equal(found.p, expected.p)):
            raise self._differs("scores chains in another way than the CPU")

    @property
    def n_bytes(self) -> int:
        """Bytes of device memory in use."""
        return sum(_ANCHOR * part.n_anchors + _SEGMENT * part.n_segments for part in self._parts)

    def compute(self, batch: MappingBatch) -> None:
        """Fill the scores and predecessors of a batch's anchors; thread-safe."""
        anchors = batch.anchors
        assert anchors is not None
        if self._broken or batch.lengths.max(initial=0) >= MOST_READ_LENGTH:
            score_chains(batch, self._parameters, self._pool)
            return
        segments = Segments.of(anchors, self._parameters, self._pool, batch.number)
        kinds = self._kinds(segments)
        here, elsewhere = self._shared_out(segments, kinds)
        tried = segments.work if nothing_stops(self._parameters) else np.minimum(segments.work, _TRIED * segments.sizes)
        if tried[here].sum() <= _FEW_PAIRS * self._pool.n_threads:
            segments.score(np.concatenate((elsewhere, here)))
        else:
            try:
                self._score(segments, kinds, here, elsewhere)
            except GpuFailure as problem:
                self.give_up(problem)
                segments.score(np.concatenate((elsewhere, here)))
        batch.anchors = anchors._replace(f=segments.f, p=segments.p)

    def _shared_out(self, segments: Segments, kinds: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Divide the segments between the GPU and the CPU threads, the longest first."""
        sizes, work = segments.sizes, segments.work
        if nothing_stops(self._parameters):
            order = np.argsort(-work, kind="stable")
            fits = sizes[order] <= self._parts[0].n_anchors
            return order[fits], order[~fits]
        rows = sizes + work / _PAIRS_OF_ROW
        cpu, block, warp = (sizes * of_anchor + rows * of_row for of_anchor, of_row in (_CPU_NS, _BLOCK_NS, _WARP_NS))
        gpu = np.where(kinds == _BACK_BLOCK, block, warp)
        gpu[sizes > self._parts[0].n_anchors] = np.inf
        order = np.argsort(-gpu, kind="stable")
        # If the CPU threads take the first 0, 1, ... of them: all of the GPU's run at the same time.
        of_gpu = np.append(gpu[order], 0)
        of_threads = offsets_of(cpu[order]) / self._pool.n_threads
        longest = np.maximum.accumulate(np.append(0, cpu[order]))
        n = int(np.argmin(np.maximum(of_gpu, np.maximum(of_threads, longest))))
        return order[n:], order[:n]

    def _score(
        self, segments: Segments, kinds: NDArray[np.int64], here: NDArray[np.int64], elsewhere: NDArray[np.int64]
    ) -> None:
        """Score segments on the GPU, and others on the CPU threads at the same time."""
        number = self.device.number
        with self._part() as part:
            for chosen in rounds(here, segments.sizes, part.n_anchors, part.n_segments):
                chosen = chosen[np.argsort(kinds[chosen], kind="stable")]
                places = offsets_of(segments.sizes[chosen])
                n = int(places[-1])
                segments.pack(chosen, places, part.pairs("anchors", n))
                guarded(number, self._launch, part, places, kinds[chosen], segments.is_cut[chosen])
                segments.score(elsewhere)
                elsewhere = elsewhere[:0]
                guarded(number, part.wait)
                segments.unpack(chosen, places, part.pairs("chains", n))
            segments.score(elsewhere)

    def _kinds(self, segments: Segments) -> NDArray[np.int64]:
        """Choose the kernel for each segment."""
        first, wide = (_BLOCK, _WIDE) if nothing_stops(self._parameters) else (_BACK_BLOCK, _WIDE_BACK)
        return np.where(segments.work >= wide * segments.sizes, first, first + 1)

    def _launch(
        self, part: _ChainPart, places: NDArray[np.int64], kinds: NDArray[np.int64], is_cut: NDArray[np.bool_]
    ) -> None:
        """Queue the copies and kernels of a round."""
        integers = self._parameters.integers
        n, n_segments = int(places[-1]), len(kinds)
        table = part.pairs("segments", n_segments)
        table[:, 0], table[:, 1] = places[:-1], 2 * np.diff(places) + is_cut
        part.upload("segments", 2 * n_segments)
        part.upload("anchors", 2 * n)
        ends = np.searchsorted(kinds, range(_BACK_WARP + 2))
        counts = np.diff(ends).tolist()
        bandwidth, max_iter, max_skip = (min(int(integers[at]), _MOST_COUNT) for at in (BW, MAX_ITER, MAX_SKIP))
        limits = (reach_of(self._parameters), bandwidth, max_iter)
        segments = ("anchors", "segments")
        with part.stream:
            if counts[_BLOCK] > 0:
                part.launch(
                    self._functions["chain_forward_block"], counts[_BLOCK], _BLOCK_THREADS, *segments, 0,
                    counts[_BLOCK], *limits, self._penalties, "chains",
                )  # fmt: skip
            if counts[_WARP] > 0:
                part.launch(
                    self._functions["chain_forward_warp"], -(-counts[_WARP] // _WARPS), _THREADS, *segments,
                    counts[_BLOCK], counts[_WARP], *limits, self._penalties, "chains",
                )  # fmt: skip
            if counts[_BACK_BLOCK] + counts[_BACK_WARP] > 0:  # one kernel, so that all start at once
                part.launch(
                    self._functions["chain_back"], counts[_BACK_BLOCK] - (-counts[_BACK_WARP] // _BACK_WARPS),
                    32 * _BACK_WARPS, *segments, n_segments, counts[_BACK_BLOCK], *limits, max_skip, self._penalties,
                    "marks", "chains",
                )  # fmt: skip
        part.download("chains", 2 * n)
        n_anchors = np.diff(places[ends]).tolist()
        with self._lock:
            self.n_scored = [sum(both) for both in zip(self.n_scored, n_anchors, strict=True)]


def trial_anchors() -> Anchors:
    """Make anchors like those of reads with repeats, the same ones every time."""
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
