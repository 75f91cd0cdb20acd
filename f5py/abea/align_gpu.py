"""Adaptive banded event alignment on a GPU, with the CPU workers beside it.

Batches come from several threads, and each takes one of the arena's two halves for itself: while the kernels work on
one batch in the stream of its half, the next batch is packed into the pinned buffers of the other. A batch's long and
over-segmented reads, and those that do not fit, are aligned by the CPU workers meanwhile. Both aligners do the same
single-precision operations in the same order, so who aligns a read does not show in the result. Whatever fails on the
GPU, or in the libraries on the way to it, the CPU workers do its share, and all that follows.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from f5py import console
from f5py.abea import kernels
from f5py.abea.align import F5C_LIMITS, AlignmentLimits, CpuAligner
from f5py.abea.gpu_buffers import Half
from f5py.core.batch import Cause, ReadBatch
from f5py.core.offsets import offsets_of
from f5py.core.workers import WorkerPool
from f5py.gpu.arena import ArenaSize, capacity, memory_fraction
from f5py.gpu.device import GpuDevice, GpuUnavailableError, first_line, free_pools, is_out_of_memory, remedy
from f5py.gpu.placement import Placement, Reason, place
from f5py.pore_model.model import PoreModel

_WHO = "init_cuda"
_PRE_THREADS = 128
_WARP = 32
_HALVES = 2
#: Pieces that packing and unpacking are divided into for the threads.
_CHUNKS = 128
#: How much longer the GPU takes for a band of a single read than a CPU thread; it wins by the number of reads.
_BAND_LATENCY_RATIO = 3.0
#: Fewer bases than this are not worth an arena.
_MIN_BASES = 100_000
_SHRINK = 0.7
_PER_BASE_RESULTS = ("first_event", "last_event")
_RESULTS = (*_PER_BASE_RESULTS, "n_pairs", "span", "verdict")


@dataclass
class GpuLimits:
    """Which reads may go to the GPU, and how its memory is laid out: the ``--cuda-*`` options."""

    max_lf: float = 3.0
    avg_epk: float = 2.0
    max_epk: float = 5.0
    mem_frac: float | None = None


@dataclass
class BatchTiming:
    """Seconds that the parts of one batch took; `gpu` runs beside the others."""

    pack: float = 0.0
    gpu: float = 0.0
    cpu: float = 0.0
    unpack: float = 0.0


@dataclass
class _InFlight:
    """A batch whose kernels have been launched."""

    batch: ReadBatch
    placement: Placement
    reads: NDArray[np.int64]
    half: Half
    timing: BatchTiming = field(default_factory=BatchTiming)
    error: Exception | None = None


class GpuAligner:
    """The aligner backend that uses a GPU and the worker threads together.

    Parameters
    ----------
    device : GpuDevice
        The current device of the calling thread.
    model : PoreModel
    pool : WorkerPool
    limits : GpuLimits
    max_reads, max_bases : int
        What a batch can hold (-K and -B); the arena is not made larger than that needs.
    zero_copy : bool or None
        Let the kernels work on host memory instead of copies; None: on integrated GPUs.
    alignment : AlignmentLimits

    Attributes
    ----------
    capacity : ArenaSize
        What one half could hold if it took all the memory that it may.
    on_batch : callable or None
        Called with (batch, placement, timing) when a batch is finished.

    Raises
    ------
    GpuUnavailableError
        If there is too little memory or the kernels do not compile.
    """

    def __init__(
        self,
        device: GpuDevice,
        model: PoreModel,
        pool: WorkerPool,
        limits: GpuLimits,
        max_reads: int,
        max_bases: int,
        zero_copy: bool | None = None,
        alignment: AlignmentLimits = F5C_LIMITS,
    ) -> None:
        import cupy

        self.device = device
        self.name = f"GPU {device.number}"
        self.limits = limits
        self._cpu = CpuAligner(model, pool, alignment)
        self._pool = pool
        self._k = model.k
        self.on_batch: Callable[[ReadBatch, Placement, BatchTiming], None] | None = None
        self._in_flight: dict[int, _InFlight] = {}
        self._broken = False
        try:
            self._kernels = kernels.functions(limits=alignment)
            self._model = cupy.asarray(kernels.model_table(model))
        except cupy.cuda.compiler.CompileException as problem:
            raise GpuUnavailableError(f"the kernels do not compile: {first_line(problem)}") from problem
        except Exception as problem:
            raise GpuUnavailableError(f"{device.name} does not work: {remedy(problem)}") from problem
        self._halves = self._allocate(max_reads, max_bases, device.integrated if zero_copy is None else zero_copy)
        self._free: queue.SimpleQueue[Half] = queue.SimpleQueue()
        for half in self._halves:
            self._free.put(half)
        self._observing = threading.Lock()

    @property
    def size(self) -> ArenaSize:
        """Capacity of one half of the arena."""
        return self._halves[0].size

    def _allocate(self, max_reads: int, max_bases: int, zero_copy: bool) -> list[Half]:
        """Both halves, as large as memory allows and a batch can need; smaller ones if that fails."""
        fraction = memory_fraction(self.limits.mem_frac, self.device.integrated)
        full = self.capacity = capacity(self.device.free_memory * fraction, self.limits.avg_epk, max_reads, _HALVES)
        console.note(
            _WHO,
            f"Running on {self.device.name} (device id {self.device.number}), "
            f"{self.device.free_memory / 2**30:.1f} GB free of {self.device.total_memory / 2**30:.1f} GB",
        )
        console.note(_WHO, f"Max GPU capacity {full.bases / 1e6:.1f}M bases in each of {_HALVES} halves")
        # A batch ends with the read that reaches -B.
        bases = min(full.bases, max_bases + max_bases // 8 + max_reads)
        while bases >= min(_MIN_BASES, max_bases):
            size = ArenaSize(bases, int(bases * self.limits.avg_epk), max_reads)
            try:
                halves = [Half(size, zero_copy) for _ in range(_HALVES)]
            except Exception as problem:
                if not is_out_of_memory(problem):
                    raise GpuUnavailableError(f"{self.device.name} does not work: {remedy(problem)}") from problem
                free_pools()
                console.info(_WHO, f"{bases / 1e6:.1f}M bases do not fit ({first_line(problem)}); trying fewer")
                bases = int(bases * _SHRINK)
            else:
                console.note(_WHO, f"Arena of {_HALVES} x {bases / 1e6:.1f}M bases allocated")
                return halves
        raise GpuUnavailableError(
            f"there is too little free memory on {self.device.name}; end other programs on it, or lower -B"
        )

    def start(self, batch: ReadBatch, reads: NDArray[np.int64], keep_pairs: bool) -> float:
        """Launch the GPU's share of `reads`, then align the CPU's share; see `Aligner.start`."""
        if self._broken or keep_pairs:
            return self._cpu.start(batch, reads, keep_pairs)
        placement = place(batch, reads, self.limits.max_lf, self.limits.max_epk, self.size.bases, self.size.events)
        gpu_reads = placement.having(Reason.GPU)[: self.size.reads]
        if self._is_small(batch, gpu_reads):
            return self._cpu.start(batch, reads, keep_pairs)
        flight = _InFlight(batch, placement, gpu_reads, self._free.get())
        self._in_flight[id(batch)] = flight
        started = time.perf_counter()
        try:
            self._use_device()
            self._launch(flight)
        except Exception as problem:
            flight.error = problem
        flight.timing.pack = time.perf_counter() - started
        started = time.perf_counter()
        seconds = self._cpu.start(batch, reads[~np.isin(reads, gpu_reads)], False)
        flight.timing.cpu = time.perf_counter() - started
        return seconds

    def _is_small(self, batch: ReadBatch, reads: NDArray[np.int64]) -> bool:
        """Whether the CPU threads are done with all of `reads` before the GPU would be done with the longest one."""
        bands = (batch.read_length + batch.n_events)[reads]
        return len(bands) == 0 or bands.sum() / self._pool.n_threads < _BAND_LATENCY_RATIO * bands.max()

    def finish(self, batch: ReadBatch) -> float:
        """Wait for the GPU's share and bring it into the batch; see `Aligner.finish`."""
        flight = self._in_flight.pop(id(batch), None)
        if flight is None:
            return 0.0
        if flight.error is None:
            try:
                self._use_device()
                flight.half.stream.synchronize()
                started = time.perf_counter()
                self._unpack(flight)
                flight.timing.unpack = time.perf_counter() - started
                flight.timing.gpu = self._elapsed(flight.half)
            except Exception as problem:
                flight.error = problem
        self._free.put(flight.half)
        if flight.error is not None:
            self._give_up(flight.error)
            batch.n_pairs[flight.reads] = 0
            batch.events_per_base[flight.reads] = 0.0
            batch.verdict[flight.reads] = Cause.NOT_SPANNING
            return self._cpu.start(batch, flight.reads, False)
        if self.on_batch is not None:
            with self._observing:
                self.on_batch(batch, flight.placement, flight.timing)
        return 0.0

    def _use_device(self) -> None:
        import cupy

        cupy.cuda.Device(self.device.number).use()

    def _elapsed(self, half: Half) -> float:
        import cupy

        return cupy.cuda.get_elapsed_time(half.started, half.ended) / 1e3

    @property
    def is_broken(self) -> bool:
        """Whether the device has failed; the CPU threads then do what it is given."""
        return self._broken

    def _give_up(self, problem: Exception) -> None:
        with self._observing:
            if not self._broken:
                console.warning("align_cuda", f"{self.name} failed: {remedy(problem)}; the run goes on without it")
            self._broken = True

    def _launch(self, flight: _InFlight) -> None:
        """Pack the reads into the half's pinned buffers and queue copies, kernels and copies back."""
        from f5py.abea._packing_numba import pack_reads

        batch, reads, half = flight.batch, flight.reads, flight.half
        n_reads = len(reads)
        lengths = batch.read_length[reads]
        n_events = batch.n_events[reads]
        p, q = offsets_of(lengths), offsets_of(n_events)
        host = half.host
        host["p"][: n_reads + 1] = p
        host["q"][: n_reads + 1] = q
        work = n_events + lengths
        host["order"][:n_reads] = np.argsort(-work, kind="stable")
        host["shift"][:n_reads] = batch.shift[reads]
        host["scale"][:n_reads] = batch.scale[reads]
        penalties = kernels.transition_penalties(n_events, lengths - self._k + 1)
        host["lp_step"][:n_reads], host["lp_stay"][:n_reads] = penalties

        def pack(chunk: int) -> None:
            pack_reads(
                *_chunk(chunk, n_reads),
                reads,
                batch.base_offsets,
                batch.bases,
                p,
                host["bases"],
                batch.event_offsets,
                batch.event_mean,
                q,
                host["event_mean"],
            )

        self._pool.each(pack, range(_CHUNKS), order=batch.number)
        counts = {"bases": p[-1], "event_mean": q[-1], "p": n_reads + 1, "q": n_reads + 1}
        counts |= dict.fromkeys(("order", "shift", "scale", "lp_step", "lp_stay"), n_reads)
        with half.stream:
            half.started.record()
            for name, count in counts.items():
                half.upload(name, int(count))
            self.launch_kernels(half, n_reads)
            for name in _RESULTS:
                half.download(name, int(p[-1]) if name in _PER_BASE_RESULTS else n_reads)
            half.ended.record()

    def launch_kernels(self, half: Half, n_reads: int) -> None:
        """Queue the three kernels for the `n_reads` reads in a half, in the current stream."""
        d = half.device
        n, k = np.int32(n_reads), np.int32(self._k)
        layout = d["p"], d["q"], d["order"], n, k
        ends = d["best_event"], d["corner"]
        self._kernels["abea_pre"](
            (n_reads,), (_PRE_THREADS,), (d["bases"], d["p"], n, k, self._model, d["shift"], d["scale"], d["kmers"])
        )
        self._kernels["abea_core"](
            (n_reads,),
            (_WARP,),
            (d["event_mean"], d["kmers"], *layout, d["lp_step"], d["lp_stay"], d["trace"], *ends),
        )
        self._kernels["abea_post"](
            (n_reads,),
            (_WARP,),
            (d["trace"], d["event_mean"], d["kmers"], *layout, *ends, *(d[name] for name in _RESULTS)),
        )

    def _unpack(self, flight: _InFlight) -> None:
        from f5py.abea._packing_numba import unpack_reads

        batch, reads, host = flight.batch, flight.reads, flight.half.host
        n_reads = len(reads)

        def unpack(chunk: int) -> None:
            unpack_reads(
                *_chunk(chunk, n_reads),
                reads,
                self._k,
                host["p"],
                host["first_event"],
                host["last_event"],
                batch.base_offsets,
                batch.first_event,
                batch.last_event,
            )

        self._pool.each(unpack, range(_CHUNKS), order=batch.number)
        batch.n_pairs[reads] = host["n_pairs"][:n_reads]
        batch.verdict[reads] = host["verdict"][:n_reads]
        batch.events_per_base[reads] = host["span"][:n_reads] / (batch.read_length[reads] - self._k + 1)

    def close(self) -> None:
        """Wait for what is running and free the arena."""
        in_flight = list(self._in_flight.values())
        self._in_flight.clear()
        self._halves.clear()
        if self._broken:
            return
        self._use_device()
        for flight in in_flight:
            flight.half.stream.synchronize()
        free_pools()


def _chunk(chunk: int, n_reads: int) -> tuple[int, int]:
    """First and end of the reads that one of `_CHUNKS` copies handles."""
    return chunk * n_reads // _CHUNKS, (chunk + 1) * n_reads // _CHUNKS
