"""What is said and tuned after each batch that a GPU has taken part in."""

from __future__ import annotations

from dataclasses import replace

from f5py import console
from f5py.abea.align_gpu import BatchTiming, GpuAligner
from f5py.core.batch import ReadBatch
from f5py.gpu.advisor import Advisor, BatchReport, TunedOptions
from f5py.gpu.placement import Placement, Reason
from f5py.gpu.selection import BatchLimits


class GpuWatch:
    """Prints each batch's share and times, advises, and with auto-tune sets the options of the next batches.

    Parameters
    ----------
    aligner : GpuAligner
        Its limits may be changed.
    source : BatchLimits
        Its limits may be changed.
    ultra_thresh, threads : int
    auto_tune : bool
    """

    def __init__(
        self, aligner: GpuAligner, source: BatchLimits, ultra_thresh: int, threads: int, auto_tune: bool
    ) -> None:
        self._aligner = aligner
        self._source = source
        limits = aligner.limits
        self._options = TunedOptions(
            source.batch_size, source.max_bases, limits.max_lf, limits.avg_epk, limits.max_epk, ultra_thresh, threads
        )
        # The arena is laid out once, for as many reads and bases as a batch may have now.
        bounds = {"batchsize": (16, aligner.size.reads), "max_bases": (100_000, aligner.size.bases)}
        self._advisor = Advisor(auto_tune, bounds=bounds, fixed=("ultra_thresh", "cuda_avg_epk"))
        self._auto_tune = auto_tune

    def observe(self, batch: ReadBatch, placement: Placement, timing: BatchTiming) -> None:
        """Take note of a finished batch."""
        lengths = batch.read_length
        gpu = placement.having(Reason.GPU)
        gpu_bases = int(lengths[gpu].sum())
        n_cpu = len(placement.reads) - len(gpu)
        cpu_bases = int(lengths[placement.reads].sum()) - gpu_bases
        console.note(
            "align_cuda",
            f"Load : CPU {n_cpu} entries ({cpu_bases / 1e6:.1f}M bases), "
            f"GPU {len(gpu)} entries ({gpu_bases / 1e6:.1f}M bases)",
        )
        console.note("load_balance", f"Processing time : CPU {timing.cpu:.3f} sec, GPU {timing.gpu:.3f} sec")
        report = BatchReport(
            n_reads=len(batch),
            n_bases=len(batch.bases),
            gpu_reads=len(gpu),
            gpu_bases=gpu_bases,
            gpu_events=int(batch.n_events[gpu].sum()),
            capacity_bases=self._aligner.capacity.bases,
            capacity_events=self._aligner.capacity.events,
            n_cpu_long=placement.count(Reason.LONG),
            n_cpu_many_events=placement.count(Reason.MANY_EVENTS),
            n_cpu_no_memory=placement.count(Reason.NO_MEMORY),
            n_cpu_ultra=0,
            cpu_seconds=timing.cpu,
            gpu_seconds=timing.gpu,
            options=replace(self._options, batchsize=self._source.batch_size, max_bases=self._source.max_bases),
        )
        options = self._advisor.observe(report)
        if self._auto_tune and options != self._options:
            self._options = options
            self._source.batch_size = int(options.batchsize)
            self._source.max_bases = int(options.max_bases)
            self._aligner.limits.max_lf = options.cuda_max_lf
            self._aligner.limits.max_epk = options.cuda_max_epk
