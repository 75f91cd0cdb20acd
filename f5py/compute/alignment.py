"""Base stage of all signal commands: events, scaling, and the alignment of events to the read's bases."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from f5py.abea.align import AlignmentLimits
from f5py.compute.chemistry import Chemistry
from f5py.compute.cpu import SignalStages, StageTimes
from f5py.compute.diagnosis import FitCheck, RunCounts
from f5py.compute.gpu.device import DeviceBackend, load_early, may_use_gpus, n_devices_likely, open_device, open_gpus
from f5py.compute.gpu.expected_work import is_worth_a_start, seconds_of_threads, starts_gpu_at_once
from f5py.compute.gpu.placement import Backend
from f5py.compute.gpu.selection import AutoGpuScheduler, BatchSource
from f5py.compute.provenance import Provenance, effective, in_words
from f5py.compute.statistics import RunStatistics
from f5py.core.batch import ReadBatch
from f5py.options.shared import AlignmentOptions, device_numbers
from f5py.pore_model.model import PoreModel
from f5py.signal.scaling import QualityLimits
from f5py.threads.pipeline import WaitTimes
from f5py.threads.pool import WorkerPool, part_of_threads

if TYPE_CHECKING:
    from f5py.compute.gpu.advice import GpuAdvisor


def begin_gpu(options: AlignmentOptions, of_all: bool) -> bool:
    """Preload GPU libraries if a GPU will be started at once; return whether one will. Call it before opening inputs.

    The run covers the whole input with `of_all`.
    """
    return load_early(options, lambda: starts_gpu_at_once(options, of_all))


class AlignmentStage:
    """Fill a loaded batch up to the recalibrated alignment of events to the read's bases.

    Raises `PoreModelError` for an unusable model file, `UnsupportedDataError` if the chemistry has no model.
    """

    #: The subcommand that the stage belongs to.
    command = "resquiggle"
    #: Parts of the work on a batch after which progress is told.
    n_parts = 2

    def __init__(
        self,
        options: AlignmentOptions,
        chemistry: Chemistry,
        keep_samples: bool = False,
        model: PoreModel | None = None,
        means_only: bool = False,
        results: str = "",
        finish: Callable[[ReadBatch, Any], float] | None = None,
    ) -> None:
        self.chemistry = chemistry
        self.model = chemistry.nucleotide_model(options.kmer_model) if model is None else model
        self.times = StageTimes(options.threads)
        self.counts = RunCounts()
        self.pool = WorkerPool(options.threads, part_of_threads(options.threads, 3))
        self._options = options
        self._after_part: Callable[[ReadBatch], None] = lambda batch: None
        #: For a report, if one is wanted.
        self.statistics: RunStatistics | None = None
        self._checks_chemistry = True
        self._check = FitCheck(chemistry, self.model.name, options)
        #: Up to the alignment of events to bases.
        self.stages = SignalStages(
            chemistry.event_parameters,
            chemistry.rna,
            self.model,
            self.pool,
            self.times,
            AlignmentLimits(options.max_events_per_base, options.min_mean_emission, options.max_gap),
            QualityLimits(options.min_recalib_events, options.qc_max_var, options.qc_max_events_per_base),
            keep_pairs=options.print_banded_aln,
            keep_samples=keep_samples,
            means_only=means_only,
            skip_event_copy=means_only and bool(results),
            results=results,
            finish=finish,
            after_part=lambda batch: self.after_part(batch),
        )
        self._backend: Backend = self.stages
        self._advisor: GpuAdvisor | None = None
        self._opening = threading.Lock()
        #: What the run waits for.
        self.waits = WaitTimes()
        #: GPUs that may be used, as far as is known before any is started.
        self.n_gpus = 0

    def prepare(self, statistics: RunStatistics | None, checks_chemistry: bool) -> None:
        """Set the statistics to fill, and whether to check the chemistry by the first reads."""
        self.statistics, self._checks_chemistry = statistics, checks_chemistry

    def tell_parts(self, listener: Callable[[ReadBatch], None]) -> None:
        """Let a function be called with the batch after each of `n_parts` parts of the work on it."""
        self._after_part = listener

    def after_part(self, batch: ReadBatch) -> None:
        """Report that a part of a batch's work is done."""
        self._after_part(batch)

    @property
    def facts(self) -> Provenance:
        """Provenance of the results."""
        options = self._options
        return Provenance(
            self.command, self.chemistry, {"pore model": self.model.name}, effective(options), in_words(options)
        )

    def use_gpu(self, source: BatchSource, of_all: bool = True) -> bool:
        """Use GPUs if allowed. With ``--gpu auto`` start them only once the expected gain exceeds their start time.

        The source yields the whole input with `of_all`. Returns whether batches need estimates of the total.
        """
        use = self._options.gpu_use
        if not may_use_gpus(use):
            return False
        is_asked_for = use == "on"
        numbers = device_numbers(self._options.cuda_dev_id)
        self.n_gpus = n_devices_likely() if numbers is None else len(numbers)
        expected = seconds_of_threads(self._options) if of_all else None
        is_long = is_worth_a_start(expected)
        gpus = open_gpus(numbers, lambda number: self._open_gpu(number, source))
        self._backend = AutoGpuScheduler(
            self.stages, gpus, at_once=is_long, alone=is_asked_for, expects_little=expected is not None
        )
        return not (is_asked_for or is_long)

    def _open_gpu(self, number: int, source: BatchSource) -> DeviceBackend:
        """Open a device; called by several threads."""
        from f5py.compute.gpu.advice import GpuAdvisor
        from f5py.compute.gpu.backend import GpuBackend, GpuLimits

        options = replace(self._options, batchsize=source.batch_size, max_bases=source.max_bases)
        limits = GpuLimits(options.cuda_max_lf, options.cuda_avg_epk, options.cuda_max_epk, options.cuda_mem_frac)
        gpu = GpuBackend(
            open_device(number), self.stages, limits, source.batch_size, source.max_bases, on_batch=self._observe
        )
        with self._opening:
            if self._advisor is None:
                self._advisor = GpuAdvisor(gpu.capacity, options)
        return gpu

    def _observe(self, batch: ReadBatch, placement: Any, timing: Any) -> None:
        """Pass the measurements of a batch to the advisor."""
        if self._advisor is not None:
            self._advisor.observe(batch, placement, timing)

    def check_batch(self, batch: ReadBatch) -> None:
        """Check a loaded batch; called in order."""
        if self._checks_chemistry and len(batch):
            self._check.check_inputs(batch)
            self._check.check_letters(batch)

    def compute(self, batch: ReadBatch) -> None:
        """Fill the batch's arrays; thread-safe for distinct batches."""
        if self.stages.keep_samples:
            batch.expand_samples(self.pool)
        self._backend.compute(batch)

    def count_batch(self, batch: ReadBatch) -> None:
        """Check the chemistry by a computed batch and count its reads; called in order."""
        if len(batch) == 0:
            return
        if self._checks_chemistry:
            self._check.check_fit(batch)
        self.count(batch, self.counts, self.statistics)

    def count(self, batch: ReadBatch, counts: RunCounts, statistics: RunStatistics | None) -> None:
        """Add a computed batch to `counts` and `statistics`; called in order."""
        counts.add(batch)
        if statistics is not None:
            statistics.add(batch)

    def stop(self) -> None:
        """Cancel the batches in progress."""
        self.pool.stop()

    def close(self) -> None:
        """Close the backend and end the worker threads."""
        if self._advisor is not None:
            self._advisor.summarize(self.waits.bound == "computing")
        try:
            self._backend.close()
        finally:
            self.pool.close()
