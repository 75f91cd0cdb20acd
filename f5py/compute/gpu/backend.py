"""Compute batches on a GPU and the CPU threads.

Batches come from several threads, and each uses one part of the arena: while kernels work on batches in the streams of
their parts, the next batch is packed into another. Long and over-segmented reads, and reads that do not fit, are
computed by the CPU threads meanwhile, with the same bytes as result. After a failure of the GPU or its libraries the
CPU threads compute the batch and all that follow.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from f5py.abea.align import macros, model_table
from f5py.compute.cpu import BatchSlice, SignalStages, StageTimes
from f5py.compute.gpu.arena import ArenaSize, Density, capacity, memory_fraction, parts_for
from f5py.compute.gpu.batch_slice import BatchTiming, GpuBatchSlice
from f5py.compute.gpu.buffers import ArenaPart, DeviceTables
from f5py.compute.gpu.device import GpuDevice, GpuFailure, GpuUnavailableError, first_line, guarded, remedy
from f5py.compute.gpu.part_pool import GpuPartPool
from f5py.compute.gpu.placement import Placement, PlacementReason, place
from f5py.compute.gpu.self_check import differences, synthetic_batch
from f5py.compute.gpu.sources import functions
from f5py.core.batch import ReadBatch, ReadStatus
from f5py.messages import console

_WHO = "init_cuda"
#: A batch is left to the CPU threads if they need less than so many times what one of them needs for its longest read.
_SMALL_RATIO = 3.0
_MIN_READS, _MIN_BATCH = 16, 20_000
#: Fewer bases than this are not worth an arena.
_MIN_BASES = 100_000
#: Samples per base that the arena has room for: more than pores of DNA and RNA have on average.
_DNA_SAMPLES, _RNA_SAMPLES = 16.0, 56.0


@dataclass(frozen=True)
class GpuLimits:
    """Limits on reads for the GPU, and its memory layout: the ``--cuda-*`` options."""

    max_lf: float = 3.0
    avg_epk: float = 2.0
    max_epk: float = 5.0
    mem_frac: float | None = None


class GpuBackend(GpuPartPool[ArenaPart]):
    """Compute batches of signals on one device; see `f5py.compute.gpu.placement.Backend`.

    Raises `GpuUnavailableError` if there is too little memory or the kernels do not compile. `max_reads` and
    `max_bases` bound the arena. With `zero_copy`, by default on integrated GPUs, kernels work on host memory.
    `capacity` is that of one part if all used the allowed memory.
    """

    def __init__(
        self,
        device: GpuDevice,
        stages: SignalStages,
        limits: GpuLimits,
        max_reads: int,
        max_bases: int,
        zero_copy: bool | None = None,
        on_batch: Callable[[ReadBatch, Placement, BatchTiming], None] | None = None,
    ) -> None:
        super().__init__(device, "align_cuda", option="-B")
        self.limits = limits
        self._on_batch: Callable[[ReadBatch, Placement, BatchTiming], None] | None = None
        self._stages = stages
        try:
            self._tables = DeviceTables(functions(device.number, macros(limits=stages.limits), stages.results))
            self._tables.cached("model", lambda: model_table(stages.model))
        except GpuUnavailableError:
            raise
        except Exception as problem:
            raise GpuUnavailableError(f"{device.name} does not work: {remedy(problem)}") from problem
        # room for the batch that the device is checked by, too
        zero_copy = device.integrated if zero_copy is None else zero_copy
        self._allocate(max(max_reads, _MIN_READS), max(max_bases, _MIN_BATCH), zero_copy)
        self.size: ArenaSize = self._parts[0].size
        self._checked(self._check, _settings(stages))
        self._on_batch = on_batch

    def _check(self) -> None:
        """Compare the results of a small synthetic batch with the CPU threads'."""
        stages = replace(self._stages, times=StageTimes(1), after_part=lambda batch: None, skip_event_copy=False)
        expected, found = (synthetic_batch(stages.model, stages.rna) for _ in range(2))
        stages.compute(expected)
        reads = np.arange(len(found))
        placement = Placement(reads, np.full(len(reads), PlacementReason.GPU, np.uint8))
        with self._part() as part:
            self._compute(found, placement, part, stages)
        if differing := differences(found, expected):
            raise self._differs(f"computes other numbers than the CPU ({', '.join(differing)})")

    def _allocate(self, max_reads: int, max_bases: int, zero_copy: bool) -> None:
        """Allocate all parts for the largest batch, or smaller ones if memory does not suffice."""
        samples = _RNA_SAMPLES if self._stages.rna else _DNA_SAMPLES
        kind = self._stages.results
        density = Density(
            self.limits.avg_epk, samples, self._stages.means_only, scores=kind in ("calls", "sites"),
            rows=kind == "rows", site_scores=kind == "sites",
        )  # fmt: skip
        fraction = memory_fraction(self.limits.mem_frac, self.device.integrated)
        n_parts = parts_for(kind, self.device.integrated)
        full = self.capacity = capacity(self.device.free_memory * fraction, density, max_reads, n_parts)
        console.note(
            _WHO,
            f"Running on {self.device.name} (device id {self.device.number}), "
            f"{self.device.free_memory / 2**30:.1f} GB free of {self.device.total_memory / 2**30:.1f} GB",
        )
        console.note(_WHO, f"Max GPU capacity {full.bases / 1e6:.1f}M bases in each of {n_parts} parts")
        # A batch ends with the read that reaches -B.
        bases = min(full.bases, max_bases + max_bases // 8 + max_reads)
        bases = self._take_parts(
            n_parts, bases, min(_MIN_BASES, max_bases),
            lambda size: ArenaPart(density.size(size, max_reads), zero_copy),
            lambda size, problem: console.info(
                _WHO, f"{size / 1e6:.1f}M bases do not fit ({first_line(problem)}); trying fewer"
            ),
        )  # fmt: skip
        console.note(_WHO, f"Arena of {n_parts} x {bases / 1e6:.1f}M bases allocated")

    def compute(self, batch: ReadBatch) -> None:
        stages = self._stages
        reads = np.flatnonzero((batch.status == ReadStatus.OK) & (batch.n_samples > 0))
        placement = place(batch, reads, stages.model.k, self.limits.max_lf, self.size, stages.pool.n_threads)
        if self._broken or stages.keep_pairs or self._is_small(batch, placement):
            stages.compute(batch)
            return
        before = batch.status.copy(), batch.cause.copy()
        try:
            with self._part() as part:
                self._compute(batch, placement, part, stages)
        except GpuFailure as problem:
            self.give_up(problem)
            batch.status, batch.cause = before
            stages.compute(batch)

    def _compute(self, batch: ReadBatch, placement: Placement, part: ArenaPart, stages: SignalStages) -> None:
        started, waited_before = time.perf_counter(), part.waited
        gpu_slice: GpuBatchSlice = self._guarded(
            GpuBatchSlice, self._tables, part, stages, batch, placement, self.limits.max_epk
        )
        stages.compute(batch, cast(BatchSlice, _GuardedSlice(gpu_slice, self._guarded)))
        if not stages.keep_samples:
            batch.release("samples")
        if self._on_batch is not None:
            gpu_slice.timing.waited = part.waited - waited_before
            gpu_slice.timing.total = time.perf_counter() - started
            self._on_batch(batch, placement, gpu_slice.timing)

    def _guarded(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function that uses the device, turning every exception into `GpuFailure`."""
        return guarded(self.device.number, function, *arguments)

    def _is_small(self, batch: ReadBatch, placement: Placement) -> bool:
        """Return whether the CPU threads would finish the GPU's reads before it finished the longest one."""
        n_samples = batch.n_samples[placement.having(PlacementReason.GPU)]
        return len(n_samples) == 0 or (n_samples.sum() / self._stages.pool.n_threads < _SMALL_RATIO * n_samples.max())


def _settings(stages: SignalStages) -> bytes:
    """Key of a check besides code and device; one motif represents all."""
    said = stages.parameters, stages.rna, stages.limits, stages.quality, stages.means_only, stages.results
    model = stages.model
    return repr((said, model.k)).encode() + model.level_mean.tobytes() + model.level_stdv.tobytes()


class _GuardedSlice:
    """Turns the exceptions of a `GpuBatchSlice` into `GpuFailure`."""

    def __init__(self, gpu_slice: GpuBatchSlice, guarded: Callable[..., Any]) -> None:
        self._slice = gpu_slice
        self._guarded = guarded

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._slice, name)
        return partial(self._guarded, found) if callable(found) else found
