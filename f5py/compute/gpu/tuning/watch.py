"""Messages and tuning after each batch that a GPU has taken part in."""

from __future__ import annotations

import threading
from dataclasses import replace

from f5py.compute.gpu.backend import GpuBackend
from f5py.compute.gpu.placement import Placement, Reason
from f5py.compute.gpu.selection import BatchSource
from f5py.compute.gpu.share import BatchTiming
from f5py.compute.gpu.tuning.advisor import Advisor, BatchReport, TunedOptions
from f5py.core.batch import ReadBatch
from f5py.messages import console
from f5py.options.shared import AlignmentOptions


class GpuWatch:
    """Prints each batch's share and times, advises, and with auto-tune sets the options of the next batches.

    Parameters
    ----------
    gpu : GpuBackend
        The first one, whose memory the advice is about; its limits may be changed, and those that share them.
    source : BatchSource
        Its limits may be changed.
    options : AlignmentOptions
        The share and times of each batch are only told with ``-v``.
    """

    def __init__(self, gpu: GpuBackend, source: BatchSource, options: AlignmentOptions) -> None:
        self._capacity = gpu.capacity
        self._lock = threading.Lock()
        self._source = source
        self.limits = limits = gpu.limits
        self._options = TunedOptions(
            source.batch_size, source.max_bases, limits.max_lf, limits.avg_epk, limits.max_epk, options.ultra_thresh,
            options.threads,
        )  # fmt: skip
        # The arena is laid out once, for as many reads and bases as a batch may have now.
        bounds = {"batchsize": (16, gpu.size.reads), "max_bases": (100_000, gpu.size.bases)}
        self._advisor = Advisor(options.auto_tune, bounds=bounds, fixed=("ultra_thresh", "cuda_avg_epk"))
        self._auto_tune = options.auto_tune
        self._is_verbose = options.verbose > 0

    def observe(self, batch: ReadBatch, placement: Placement, timing: BatchTiming) -> None:
        """Take note of a finished batch. May be called in several threads."""
        lengths = batch.read_length
        gpu = placement.having(Reason.GPU)
        gpu_bases = int(lengths[gpu].sum())
        if self._is_verbose:
            cpu_bases = int(lengths[placement.reads].sum()) - gpu_bases
            console.note(
                "align_cuda",
                f"Load : CPU {len(placement.reads) - len(gpu)} entries ({cpu_bases / 1e6:.1f}M bases), "
                f"GPU {len(gpu)} entries ({gpu_bases / 1e6:.1f}M bases)",
            )
            console.note("load_balance", f"Processing time : CPU {timing.cpu:.3f} sec, GPU {timing.gpu:.3f} sec")
        report = BatchReport(
            n_reads=len(batch),
            n_bases=len(batch.bases),
            gpu_reads=len(gpu),
            gpu_bases=gpu_bases,
            gpu_events=int(batch.n_events[gpu].sum()),
            capacity_bases=self._capacity.bases,
            capacity_events=self._capacity.events,
            n_cpu_long=placement.count(Reason.LONG),
            n_cpu_many_events=placement.count(Reason.MANY_EVENTS),
            n_cpu_no_memory=placement.count(Reason.NO_MEMORY),
            n_cpu_ultra=0,
            cpu_seconds=timing.cpu,
            gpu_seconds=timing.gpu,
            options=replace(self._options, batchsize=self._source.batch_size, max_bases=self._source.max_bases),
            waited_share=timing.waited / timing.total if timing.total else 0.0,
        )
        with self._lock:
            options = self._advisor.observe(report)
            if self._auto_tune and options != self._options:
                self._options = options
                self._source.batch_size = int(options.batchsize)
                self._source.max_bases = int(options.max_bases)
                self.limits.max_lf = options.cuda_max_lf
                self.limits.max_epk = options.cuda_max_epk

    def summarise(self, is_bound: bool) -> None:
        """Advise at the end of a run, see `Advisor.summarise`."""
        self._advisor.summarise(is_bound)
