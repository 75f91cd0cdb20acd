"""What all commands on signals have in common: events, scaling, and the alignment of events to the read's bases."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from f5py import console
from f5py.abea.align import AlignmentLimits, CpuAligner, finish_alignment, start_alignment
from f5py.core.batch import ReadBatch
from f5py.core.options.shared import AlignmentOptions, device_numbers
from f5py.core.workers import WorkerPool
from f5py.gpu.device import NO_CUPY, is_present, n_devices_likely, open_device
from f5py.gpu.placement import Aligner
from f5py.gpu.selection import BatchLimits, GpuAlignerLike, GpusWhenTheyPay, opened
from f5py.pipeline.chemistry import Chemistry
from f5py.pipeline.counts import RunCounts
from f5py.pipeline.diagnosis import FitCheck
from f5py.pipeline.statistics import RunStatistics
from f5py.pore_model.model import PoreModel
from f5py.signal.events import detect_events, reverse_events
from f5py.signal.scaling import QualityLimits, estimate_scaling, rank_kmers, recalibrate

if TYPE_CHECKING:
    from f5py.abea.watch import GpuWatch


class StageTimes:
    """Seconds of each compute stage: those of all worker threads together, divided by their number.

    Several batches are computed at the same time, so that wall times would count the same second more than once.
    """

    def __init__(self, n_threads: int) -> None:
        self.seconds: dict[str, float] = {"Events": 0.0, "Alignment": 0.0, "Estimate scaling": 0.0}
        self.output = 0.0
        self._n_threads = n_threads
        self._lock = threading.Lock()

    def add(self, name: str, thread_seconds: float) -> None:
        """Add to a stage what the threads together have worked."""
        with self._lock:
            self.seconds[name] = self.seconds.get(name, 0.0) + thread_seconds / self._n_threads


class AlignmentStage:
    """Fills a loaded batch's arrays up to the recalibrated alignment of events to the read's bases.

    Parameters
    ----------
    options : AlignmentOptions
    chemistry : Chemistry
    keep_samples : bool
        Do not release the samples after event detection.
    model : PoreModel, optional
        Instead of the one that the options name.

    Raises
    ------
    PoreModelError
        The model file is unusable.
    UnsupportedDataError
        There is no model for the chemistry.
    """

    #: The subcommand that the stage belongs to.
    command = "resquiggle"
    #: Parts of the work on a batch after which progress is told.
    n_parts = 2
    #: Of the events only the means are needed.
    _means_only = False

    def __init__(
        self,
        options: AlignmentOptions,
        chemistry: Chemistry,
        keep_samples: bool = False,
        model: PoreModel | None = None,
    ) -> None:
        self.chemistry = chemistry
        self.model = chemistry.nucleotide_model(options.kmer_model) if model is None else model
        self.times = StageTimes(options.threads)
        self.counts = RunCounts()
        self.pool = WorkerPool(options.threads)
        self._options = options
        self._keep_samples = keep_samples
        #: Called with the name of a part of the work before it begins, see `f5py.commands.compile_ahead`.
        self.before_stage: Callable[[str], None] = lambda part: None
        #: Called with the batch after each of `n_parts` parts of the work on it.
        self.after_part: Callable[[ReadBatch], None] = lambda batch: None
        #: For a report, if one is wanted.
        self.statistics: RunStatistics | None = None
        #: Whether the first reads tell if the run is of this chemistry: those of the file do, those of a part do not.
        self.judges_fit = True
        self._check = FitCheck(chemistry, self.model.name)
        self._limits = AlignmentLimits(options.max_events_per_base, options.min_mean_emission, options.max_gap)
        self._quality = QualityLimits(options.min_recalib_events, options.qc_max_var, options.qc_max_events_per_base)
        self._cpu = CpuAligner(self.model, self.pool, self._limits)
        self._aligner: Aligner = self._cpu
        self._watch: GpuWatch | None = None
        #: GPUs that may be used, as far as is known before any is started.
        self.n_gpus = 0

    def use_gpu(self, source: BatchLimits) -> None:
        """Align on GPUs, if the options allow it and there are any: from when that pays, or at once if they say so.

        Parameters
        ----------
        source : BatchLimits
            Where the batches come from.
        """
        use = self._options.gpu_use
        if use == "off":
            return
        is_asked_for = use == "on"
        if importlib.util.find_spec("cupy") is None:
            if is_asked_for or is_present():
                say = console.warning if is_asked_for else console.info
                say("init_cuda", f"no GPU is used: {NO_CUPY}; events are aligned by the CPU threads")
            return
        numbers = device_numbers(self._options.cuda_dev_id)
        self.n_gpus = n_devices_likely() if numbers is None else len(numbers)
        gpus = opened(numbers, lambda number: self._open_gpu(number, source), is_asked_for)
        self._aligner = GpusWhenTheyPay(self._cpu, gpus, is_asked_for)

    def _open_gpu(self, number: int, source: BatchLimits) -> GpuAlignerLike:
        from f5py.abea.align_gpu import GpuAligner, GpuLimits
        from f5py.abea.watch import GpuWatch

        options = self._options
        device = open_device(number)
        limits = GpuLimits(options.cuda_max_lf, options.cuda_avg_epk, options.cuda_max_epk, options.cuda_mem_frac)
        if self._watch is not None:
            limits = self._watch.limits  # what is tuned holds for all
        gpu = GpuAligner(
            device, self.model, self.pool, limits, options.batchsize, options.max_bases, alignment=self._limits
        )
        if self._watch is None:
            self._watch = GpuWatch(gpu, source, options)
        gpu.on_batch = self._watch.observe
        return gpu

    def admit(self, batch: ReadBatch) -> None:
        """Look at a loaded batch; to be called in order."""
        if self.judges_fit:
            self._check.letters(batch)

    def compute(self, batch: ReadBatch) -> None:
        """Fill the batch's arrays. May be called in several threads, with a batch in each."""
        pool, times, model = self.pool, self.times, self.model
        times.add("Events", detect_events(batch, self.chemistry.event_parameters, pool, self._means_only))
        self.after_part(batch)
        if not self._keep_samples:
            batch.release("samples")
        times.add("Estimate scaling", rank_kmers(batch, model, pool) + estimate_scaling(batch, model, pool))
        if self.chemistry.rna:
            times.add("Events", reverse_events(batch, pool))
        self.before_stage("alignment")
        times.add("Alignment", start_alignment(batch, self._aligner, self._options.print_banded_aln, self._limits))
        times.add("Alignment", finish_alignment(batch, self._aligner))
        times.add("Estimate scaling", recalibrate(batch, model, self._quality, pool))
        self.after_part(batch)

    def settle(self, batch: ReadBatch) -> None:
        """Judge and count the reads of a computed batch; to be called in order."""
        if self.judges_fit:
            self._check.fit(batch)
        self.count(batch, self.counts, self.statistics)

    def count(self, batch: ReadBatch, counts: RunCounts, statistics: RunStatistics | None) -> None:
        """Add a computed batch to `counts` and to `statistics`; to be called in order."""
        counts.add(batch)
        if statistics is not None:
            statistics.add(batch)

    def stop(self) -> None:
        """Let what is being computed end soon, because it is not wanted any more."""
        self.pool.stop()

    def close(self) -> None:
        """Close the aligner and end the worker threads."""
        if self._watch is not None:
            self._watch.summarise()
        try:
            self._aligner.close()
        finally:
            self.pool.close()
