"""The compute stage of methylation calling: from loaded to writable batches."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from f5py import console
from f5py.abea.cpu import CpuAligner
from f5py.abea.gpu_device import NO_CUPY, open_device
from f5py.abea.placement import Aligner, finish_alignment, start_alignment
from f5py.abea.selection import BatchLimits, GpuWhenItPays
from f5py.errors import UnsupportedDataError
from f5py.methylation.calls import call_methylation
from f5py.methylation.motifs import motif_named
from f5py.pipeline.batch import ReadBatch, ReadStatus
from f5py.pipeline.workers import WorkerPool
from f5py.pore_model import PoreModel, builtin, check_same_k, read_model
from f5py.signal.events import DNA, detect_events
from f5py.signal.scaling import estimate_scaling, rank_kmers, recalibrate

# The chemistry is judged by the first batch if that has enough reads.
_CHEMISTRY_MIN_READS = 20
_CHEMISTRY_MAX_FAILED = 0.8
_NUCLEOTIDE_MODEL = "r9.4_450bps.nucleotide.6mer"


@dataclass(frozen=True)
class CallOptions:
    """Options of ``f5py call-methylation``; names, meanings and defaults are those of the command line."""

    reads: str
    bam: str
    genome: str
    window: str | None = None
    threads: int = 8
    batchsize: int = 512
    max_bases: int = 5_000_000
    output: str = "-"
    iop: int = 1
    min_mapq: int = 20
    secondary: bool = False
    skip_unreadable: bool = True
    hard_clips: bool = True
    skip_ultra: str | None = None
    ultra_thresh: int = 100_000
    kmer_model: str | None = None
    meth_model: str | None = None
    meth_out_version: int = 2
    min_recalib_events: int = 200
    methylation: str = "cpg"
    verbose: int = 0
    print_events: bool = False
    print_banded_aln: bool = False
    print_scaling: bool = False
    debug_break: int = -1
    disable_cuda: bool = False
    cuda_dev_id: int = 0
    cuda_max_lf: float = 3.0
    cuda_avg_epk: float = 2.0
    cuda_max_epk: float = 5.0
    cuda_mem_frac: float | None = None
    auto_tune: bool = False
    cuda_at_once: bool = False
    profile_cpu: bool = False


@dataclass
class RunCounts:
    """Reads by fate."""

    total: int = 0
    qc_fail: int = 0
    not_calibrated: int = 0
    no_alignment: int = 0
    bad_reads: int = 0
    ultra: int = 0
    bases: int = 0

    def add(self, batch: ReadBatch) -> None:
        """Count a computed batch."""
        status = batch.status
        self.total += len(batch)
        self.qc_fail += int((status == ReadStatus.QC_FAIL).sum())
        self.not_calibrated += int((status == ReadStatus.NOT_CALIBRATED).sum())
        self.no_alignment += int((status == ReadStatus.NO_ALIGNMENT).sum())
        self.bad_reads += int((status == ReadStatus.BAD_READ).sum())
        self.bases += int(batch.read_length[status != ReadStatus.BAD_READ].sum())

    @property
    def failed(self) -> int:
        """Reads without a result for a reason of their own."""
        return self.qc_fail + self.not_calibrated + self.no_alignment + self.bad_reads


@dataclass
class StageTimes:
    """Wall seconds of each compute stage."""

    seconds: dict[str, float] = field(
        default_factory=lambda: {"Events": 0.0, "Alignment": 0.0, "Estimate scaling": 0.0, "HMM": 0.0}
    )
    output: float = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time spent inside to a stage's."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - started


class Caller:
    """The compute stage: everything between a loaded and a writable batch.

    Parameters
    ----------
    options : CallOptions

    Raises
    ------
    PoreModelError
        If a model file is unusable or the two models differ in k.
    """

    def __init__(self, options: CallOptions) -> None:
        self.motif = motif_named(options.methylation)
        self.nucleotide: PoreModel = (
            read_model(options.kmer_model, "ACGT") if options.kmer_model else builtin(_NUCLEOTIDE_MODEL)
        )
        self.methylation: PoreModel = (
            read_model(options.meth_model, "ACGMT") if options.meth_model else builtin(self.motif.model)
        )
        check_same_k(self.nucleotide, self.methylation)
        self.times = StageTimes()
        self.counts = RunCounts()
        self._min_recalib_events = options.min_recalib_events
        self._keep_pairs = options.print_banded_aln
        self._pool = WorkerPool(options.threads)
        self._options = options
        self._cpu = CpuAligner(self.nucleotide, self._pool)
        self._aligner: Aligner = self._cpu

    def use_gpu(self, source: BatchLimits) -> None:
        """Align on a GPU from when that pays, or at once if the options say so, if there is one.

        Parameters
        ----------
        source : BatchLimits
            Where the batches come from.
        """
        if importlib.util.find_spec("cupy") is None:
            console.info("init_cuda", f"no GPU is used: {NO_CUPY}; events are aligned by the CPU threads")
            return
        self._aligner = GpuWhenItPays(self._cpu, lambda: self._open_gpu(source), self._options.cuda_at_once)

    def works_ahead(self) -> bool:
        """Whether the next batch should be started before this one is computed, so that a GPU always has work."""
        return isinstance(self._aligner, GpuWhenItPays) and self._aligner.has_gpu

    def _open_gpu(self, source: BatchLimits) -> Aligner:
        from f5py.abea.gpu import GpuAligner, GpuLimits
        from f5py.abea.watch import GpuWatch

        options = self._options
        limits = GpuLimits(options.cuda_max_lf, options.cuda_avg_epk, options.cuda_max_epk, options.cuda_mem_frac)
        device = open_device(options.cuda_dev_id)
        gpu = GpuAligner(device, self.nucleotide, self._pool, limits, options.batchsize, options.max_bases)
        gpu.on_batch = GpuWatch(gpu, source, options.ultra_thresh, options.threads, options.auto_tune).observe
        return gpu

    def start(self, batch: ReadBatch) -> None:
        """Fill the batch's arrays as far as the alignment, which may go on after the return."""
        with self.times.stage("Events"):
            detect_events(batch, DNA, self._pool)
            batch.release("samples")
        with self.times.stage("Estimate scaling"):
            rank_kmers(batch, self.nucleotide, self._pool)
            estimate_scaling(batch, self.nucleotide, self._pool)
        with self.times.stage("Alignment"):
            start_alignment(batch, self._aligner, self._keep_pairs)

    def compute(self, batch: ReadBatch) -> None:
        """Fill the rest of the arrays of a batch that was started."""
        with self.times.stage("Alignment"):
            finish_alignment(batch, self._aligner)
        with self.times.stage("Estimate scaling"):
            recalibrate(batch, self.nucleotide, self._min_recalib_events, self._pool)
        with self.times.stage("HMM"):
            call_methylation(batch, self.motif, self.methylation, self._pool)
        if batch.number == 0:
            _check_chemistry(batch)
        self.counts.add(batch)
        batch.release("bases", "cigar", "kmer_rank", "first_event", "last_event")
        if not self._options.print_events:
            batch.release("event_start", "event_length", "event_mean", "event_stdv")

    def close(self) -> None:
        """Close the aligner and end the worker threads."""
        self._aligner.close()
        self._pool.close()


def _check_chemistry(batch: ReadBatch) -> None:
    """Stop at once if the pore model does not fit the data, rather than finish with nothing called."""
    readable = int((batch.status != ReadStatus.BAD_READ).sum())
    failed = readable - int((batch.status == ReadStatus.OK).sum())
    if readable >= _CHEMISTRY_MIN_READS and failed > _CHEMISTRY_MAX_FAILED * readable:
        raise UnsupportedDataError(
            f"{failed} of the first {readable} reads do not fit the pore model; these are probably not R9.4 DNA reads, "
            "or the signals belong to other reads: check the data, or give a fitting --kmer-model and --meth-model"
        )
