"""Methylation calling from files to a table: what ``f5py call-methylation`` does."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from f5py import console
from f5py.abea.cpu import CpuAligner
from f5py.abea.gpu_device import NO_CUPY, open_device
from f5py.abea.placement import Aligner, finish_alignment, start_alignment
from f5py.abea.selection import BatchLimits, GpuWhenItPays
from f5py.errors import AllReadsFailedError, F5pyError, OutputFileError, UnsupportedDataError
from f5py.io.alignments import AlignmentFile
from f5py.io.calls_writer import CallsWriter
from f5py.io.output import open_output
from f5py.io.read_index import READDB_SUFFIX, ReadIndex, read_readdb
from f5py.io.reference import Reference
from f5py.io.signals import open_source
from f5py.io.stage_tables import StageTables
from f5py.io.windows import Windows
from f5py.methylation.calls import call_methylation
from f5py.methylation.motifs import motif_named
from f5py.pipeline.batch import ReadBatch, ReadStatus
from f5py.pipeline.loader import Loader
from f5py.pipeline.run import run_pipeline
from f5py.pipeline.workers import WorkerPool
from f5py.pore_model import PoreModel, builtin, check_same_k, read_model
from f5py.signal.events import DNA, detect_events
from f5py.signal.scaling import estimate_scaling, rank_kmers, recalibrate

_WHO = "meth_main"
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
    calls: int = 0

    def add(self, batch: ReadBatch) -> None:
        """Count a computed batch."""
        status = batch.status
        self.total += len(batch)
        self.qc_fail += int((status == ReadStatus.QC_FAIL).sum())
        self.not_calibrated += int((status == ReadStatus.NOT_CALIBRATED).sum())
        self.no_alignment += int((status == ReadStatus.NO_ALIGNMENT).sum())
        self.bad_reads += int((status == ReadStatus.BAD_READ).sum())
        self.bases += int(batch.read_length[status != ReadStatus.BAD_READ].sum())
        self.calls += int(batch.n_calls.sum())

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
        #: Whether the next batch should be started before this one is computed, so that a GPU always has work.
        self.works_ahead = False

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
        self.works_ahead = True

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


def run(options: CallOptions) -> RunCounts:
    """Call methylation as `options` say; return how many reads met which fate.

    Raises
    ------
    F5pyError
        For anything wrong with the input or output. What was written until then is valid and in order.
    """
    _check_outputs(options)
    with ExitStack() as workers, ExitStack() as inputs:
        caller = Caller(options)
        workers.callback(caller.close)
        loader = _open_inputs(options, inputs)
        if not options.disable_cuda:
            caller.use_gpu(loader)
        processing = _process(options, caller, loader, inputs)
    caller.counts.ultra = loader.n_ultra
    caller.counts.total += loader.n_ultra
    _report(options, caller, loader, processing.seconds)
    return caller.counts


def _check_outputs(options: CallOptions) -> None:
    """Refuse to write over an input or to write two things into one file."""
    inputs = (options.reads, options.bam, options.genome, options.kmer_model, options.meth_model, options.window)
    outputs = [path for path in (options.output, options.skip_ultra) if path is not None]
    if options.skip_ultra == "-":
        raise OutputFileError("--skip-ultra -: give the name of a file; standard output is for the calls")
    for path in outputs:
        for other in inputs:
            if other is not None and _same_regular_file(path, other):
                raise OutputFileError(f"{path}: is an input as well; give the output another name")
    if len({os.path.realpath(path) for path in outputs}) < len(outputs):
        raise OutputFileError(f"{outputs[0]}: cannot take both the calls (-o) and the ultra-long reads (--skip-ultra)")


def _same_regular_file(path: str, other: str) -> bool:
    return os.path.isfile(path) and os.path.exists(other) and os.path.samefile(path, other)


def _open_inputs(options: CallOptions, inputs: ExitStack) -> Loader:
    """Open all input files, check that they belong together, and let `inputs` close them."""
    alignments = AlignmentFile(options.bam, options.genome, options.min_mapq, options.secondary)
    inputs.callback(alignments.close)
    windows = None if options.window is None else Windows.parse(options.window, alignments.contigs)
    if windows is not None:
        alignments.check_index()
        console.note("init_core", f"Iterating over region: {options.window}")
    reads = inputs.enter_context(ReadIndex.open(options.reads))
    reference = Reference(options.genome, alignments.contigs, alignments.contig_lengths)
    inputs.callback(reference.close)
    signals = open_source(read_readdb(options.reads + READDB_SUFFIX), options.iop)
    inputs.callback(signals.close)
    return Loader(
        alignments,
        options.reads,
        reads,
        reference,
        signals,
        windows,
        options.batchsize,
        options.max_bases,
        options.skip_ultra,
        options.ultra_thresh,
        options.skip_unreadable,
        options.hard_clips,
    )


def _process(options: CallOptions, caller: Caller, loader: Loader, inputs: ExitStack) -> console.Stopwatch:
    """Load, compute and write all batches; return the time that computing took."""
    started = time.perf_counter()
    processing = console.Stopwatch()
    alignments = loader.alignments
    with open_output(options.output) as out, console.progress("reads", alignments.expected_records()) as advance:
        writer = CallsWriter(
            out, options.meth_out_version, alignments.contigs, caller.methylation.k, loader.windows
        )
        tables = StageTables(out, options.print_events, options.print_banded_aln, options.print_scaling)

        def load() -> Iterator[ReadBatch]:
            # The inputs are closed by the thread that uses them: after an interrupt it may be reading for a while.
            with inputs.pop_all():
                for batch in loader.batches():
                    _note_batch(started, "meth_main", batch, "loaded", options.verbose)
                    yield batch
                    if batch.number == options.debug_break:
                        return

        def start(batch: ReadBatch) -> None:
            with processing:
                caller.start(batch)

        def compute(batch: ReadBatch) -> None:
            with processing:
                caller.compute(batch)
            _note_batch(started, "pthread_processor", batch, "processed", options.verbose)

        def write(batch: ReadBatch) -> None:
            begin = time.perf_counter()
            tables.write(batch)
            writer.write(batch)
            out.flush()  # whatever happens later, these rows are out, and whole
            caller.times.output += time.perf_counter() - begin
            advance(len(batch))

        try:
            run_pipeline(load(), compute, write, start, ahead=caller.works_ahead)
        except F5pyError as problem:
            raise type(problem)(f"{problem}; the output is incomplete") from problem
    return processing


def _note_batch(started: float, who: str, batch: ReadBatch, what: str, verbose: int) -> None:
    n_bases = int(batch.read_length.sum())
    wall = time.perf_counter() - started
    when = f"{wall:.3f}*{console.cpu_share():.2f}"
    console.note(f"{who}::{when}", f"{len(batch)} Entries ({n_bases / 1e6:.1f}M bases) {what}")
    if verbose >= 1 and what == "processed":
        lengths = batch.read_length
        for read in (batch.status == ReadStatus.NO_ALIGNMENT).nonzero()[0].tolist():
            events = int(batch.event_offsets[read + 1] - batch.event_offsets[read])
            if lengths[read] and events / lengths[read] >= 15:
                console.note(who, f"{batch.names[read]}: over-segmented, {events / lengths[read]:.1f} events per base")


def _report(options: CallOptions, caller: Caller, loader: Loader, processing_seconds: float) -> None:
    """The end-of-run lines."""
    counts, skipped, times = caller.counts, loader.alignments.counts, loader.times
    console.note(
        _WHO,
        f"skipped unmapped: {skipped.unmapped}, skipped secondary: {skipped.secondary}, "
        f"skipped low_mapq: {skipped.low_mapq}",
    )
    console.note(
        _WHO,
        f"total entries: {counts.total}, qc fail: {counts.qc_fail}, could not calibrate: {counts.not_calibrated}, "
        f"no alignment: {counts.no_alignment}, bad reads: {counts.bad_reads}",
    )
    console.note(_WHO, f"total bases: {counts.bases / 1e6:.1f} Mbases")
    console.note(_WHO, f"Data loading time: {times.total:.3f} sec")
    console.note(_WHO, f"    - bam load time: {times.alignments:.3f} sec")
    console.note(_WHO, f"    - fasta load time: {times.reads:.3f} sec")
    console.note(_WHO, f"    - fast5 load time: {times.signals:.3f} sec")
    console.note(_WHO, f"Data processing time: {processing_seconds:.3f} sec")
    for stage, seconds in caller.times.seconds.items():
        console.note(_WHO, f"    - {stage} time: {seconds:.3f} sec")
    console.note(_WHO, f"Data output time: {caller.times.output:.3f} sec")

    if counts.ultra:
        console.warning(
            _WHO,
            f"{counts.ultra} reads longer than {options.ultra_thresh / 1e3:.1f} kbases were written to "
            f"{options.skip_ultra} and left out",
        )
        ultra = options.skip_ultra
        console.note(_WHO, f"To call them: samtools index {ultra}, then run again with -b {ultra}")
    if times.total - processing_seconds > 0.2 * processing_seconds and times.total > 5.0:
        console.info(_WHO, "the run was bounded by file input; more reader processes (--iop) may help")
    if skipped.low_mapq > counts.total:
        console.warning(_WHO, "more records were skipped for low mapping quality than were used (--min-mapq)")
    if counts.qc_fail + counts.not_calibrated + counts.no_alignment > counts.total // 2:
        console.warning(_WHO, "more than half of the reads failed to align; is this R9.4 DNA (or --kmer-model given)?")
    if counts.bad_reads > counts.total / 10:
        console.warning(_WHO, "the signals of more than a tenth of the reads are missing or unreadable")
    if counts.failed + counts.ultra >= counts.total and counts.failed > 0:
        raise AllReadsFailedError(f"all {counts.failed} reads failed; see the counts above for the reason")
    if counts.total == 0:
        raise AllReadsFailedError(
            f"{options.bam}: no record was used; check the file, -w, --min-mapq and --secondary"
        )
