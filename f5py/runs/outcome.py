"""Totals of a run or of several parts, and the messages at the end of a run."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from f5py.compute.chemistry import Chemistry
from f5py.compute.diagnosis import RunCounts, advice, cause_counts, failure, other_bases
from f5py.compute.gpu.device import is_present
from f5py.compute.statistics import RunStatistics
from f5py.core.batch import Cause
from f5py.errors import DamagedValueError, F5pyError, FailedRunError, OutputFileError
from f5py.io.bam.alignments import RecordCounts
from f5py.io.files.json_values import JsonObject
from f5py.io.files.output import display_output
from f5py.messages import console
from f5py.messages.console import input_warning
from f5py.options import Group, Kind, declarations
from f5py.options.cores import usable_cores
from f5py.options.shared import CALL_THRESHOLD, METHYLATION, AlignmentOptions, MappedReadsOptions
from f5py.options.signal_commands import CallOptions
from f5py.threads.pipeline import WaitTimes

if TYPE_CHECKING:
    from f5py.compute.alignment import AlignmentStage
    from f5py.pipeline.loader import Loader

#: What is loaded, with a time of its own.
LOADED = ("alignments", "reads", "signals")
_WHO = "meth_main"
#: Share of the records that may be left out without a word.
_NOTABLE_LOSS = 0.1
#: Shorter runs are not worth a word.
_SECONDS = 5.0


@dataclass
class Outcome:
    """Sums over a run, or over a part of one."""

    counts: RunCounts  # ultra-long reads are in its total
    skipped: RecordCounts  # records that were left out
    statistics: RunStatistics | None = None  # what a report has figures of
    loading: dict[str, float] = field(default_factory=dict)  # seconds by kind of input: alignments, reads and signals
    stages: dict[str, float] = field(default_factory=dict)  # seconds by stage
    # processing, output: seconds
    processing: float = 0.0
    output: float = 0.0

    @classmethod
    def of(cls, stage: AlignmentStage, loader: Loader, processing_seconds: float) -> Outcome:
        """Collect the outcome of a finished run."""
        return cls(
            replace(stage.counts, ultra=loader.n_ultra, total=stage.counts.total + loader.n_ultra),
            loader.alignments.counts,
            stage.statistics,
            dict(zip(LOADED, loader.times.tolist(), strict=True)),
            dict(stage.times.seconds),
            processing_seconds,
            stage.times.output,
        )

    def add(self, other: Outcome) -> None:
        """Add the next part."""
        self.counts.join(other.counts)
        self.skipped = self.skipped.plus(other.skipped)
        if self.statistics is not None and other.statistics is not None:
            self.statistics.join(other.statistics)
        for mine, others in ((self.loading, other.loading), (self.stages, other.stages)):
            for name, seconds in others.items():
                mine[name] = mine.get(name, 0.0) + seconds
        self.processing += other.processing
        self.output += other.output

    def as_json(self) -> dict[str, Any]:
        counts = asdict(self.counts).items()
        return {
            "counts": {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in counts},
            "skipped": asdict(self.skipped),
            "statistics": None if self.statistics is None else self.statistics.as_json(),
            "loading": self.loading,
            "stages": self.stages,
            "processing": self.processing,
            "output": self.output,
        }

    @classmethod
    def from_json(cls, values: JsonObject, statistics: RunStatistics | None = None) -> Outcome:
        """Restore the result of `as_json`, filling `statistics`. Raises `DamagedValueError`."""
        values.check_names(field.name for field in fields(cls))
        if statistics is not None and not values.is_null("statistics"):
            statistics.take_json(values.object("statistics"))
        if unknown := sorted(values.object("loading").members.keys() - set(LOADED)):
            raise DamagedValueError(f"loading.{unknown[0][:40]} is not known")
        return cls(
            RunCounts.from_json(values.object("counts")), _parse_skipped(values.object("skipped")), statistics,
            values.seconds("loading"), values.seconds("stages"), values.number("processing"), values.number("output"),
        )  # fmt: skip


def _parse_skipped(values: JsonObject) -> RecordCounts:
    names = [field.name for field in fields(RecordCounts)]
    values.check_names(names)
    return RecordCounts(**{name: values.integer(name) for name in names})


def speed_advice(options: AlignmentOptions, waits: WaitTimes, signal_kind: str) -> str:
    """Return the option that would speed up the next run, in one line, or "".

    `signal_kind` is the format of the signals.
    """
    if waits.total < _SECONDS or not waits.bound:
        return ""
    change = _suggest(options, waits.bound, signal_kind)
    share = getattr(waits, waits.bound) / waits.total
    return f"the run has waited for {waits.bound} {share:.0%} of the time; {change}" if change else ""


def _suggest(options: AlignmentOptions, bound: str, signal_kind: str) -> str:
    cores = usable_cores()
    more_threads = f"raise -t from {options.threads} to {cores}" if options.threads < cores else ""
    if bound == "loading":
        if signal_kind == "fast5" and options.iop is not None and options.iop < cores:
            return f"raise --iop from {options.iop} to {cores}"
        return more_threads
    if bound == "computing":
        has_gpu = is_present() and importlib.util.find_spec("cupy") is not None
        return "leave out --gpu off" if options.gpu_use == "off" and has_gpu else more_threads
    return more_threads if options.output.endswith((".gz", ".parquet")) else ""


def report_run(
    options: MappedReadsOptions,
    stage: AlignmentStage,
    loader: Loader,
    outcome: Outcome,
    write: Callable[[str | None], None],
) -> None:
    """Print counts, times and advice, and `write` the requested report, with the error of a failed run.

    Raises `FailedRunError` if no read has a result, or the inputs do not belong together.
    """
    counts, skipped = outcome.counts, outcome.skipped
    console.note(
        _WHO,
        f"skipped unmapped: {skipped.unmapped}, skipped secondary: {skipped.secondary}, "
        f"skipped low_mapq: {skipped.low_mapq}"
        + (f", skipped supplementary: {skipped.supplementary}" if skipped.supplementary else "")
        + (f", skipped duplicates: {skipped.duplicates}" if options.skip_duplicates or skipped.duplicates else ""),
    )
    note_counts_and_times(_WHO, outcome, loader.signals.kind)
    why_failed = failure(counts, stage.chemistry, options)
    try:
        _warn(options, stage, loader, outcome)
        if why_failed is None:
            for line in advice(counts, stage.chemistry, options):
                console.warning(_WHO, line)
    except F5pyError as problem:  # --strict makes an error of a warning
        why_failed = str(problem)
        raise
    finally:
        if options.report:
            with nullcontext() if why_failed is None else suppress(OutputFileError):
                write(why_failed)
    if why_failed is not None:
        raise FailedRunError(why_failed)


def _warn(options: MappedReadsOptions, stage: AlignmentStage, loader: Loader, outcome: Outcome) -> None:
    """Warn of skipped records and failed reads."""
    counts, skipped = outcome.counts, outcome.skipped
    if counts.ultra:
        console.warning(
            _WHO,
            f"{counts.ultra} reads longer than {options.ultra_thresh / 1e3:.1f} kbases were left out; their records go "
            f"to {options.skip_ultra}",
        )
    if line := speed_advice(options, stage.waits, loader.signals.kind):
        console.info(_WHO, line)
    if skipped.no_bases:
        input_warning(
            _WHO,
            f"{skipped.no_bases} records were left out: they are hard-clipped or have no sequence, and their reads no "
            "primary record to take the bases from; give the basecalled reads with -r",
        )
    low_mapq = skipped.low_mapq - skipped.unmapped_low_mapq
    if low_mapq > _NOTABLE_LOSS * (counts.total + low_mapq):
        usual = "; 0, as in nanopolish, keeps reads of similar transcripts" if stage.chemistry.rna else ""
        console.warning(
            _WHO,
            f"{low_mapq} of {counts.total + low_mapq} mapped records were left out for a mapping quality "
            f"below {options.min_mapq} (--min-mapq{usual})",
        )
    if skipped.unmapped_low_mapq > _NOTABLE_LOSS * (counts.total + skipped.low_mapq):
        console.info(
            _WHO,
            f"{skipped.unmapped_low_mapq} of the {skipped.low_mapq} records counted as of low mapping quality, as f5c "
            "counts them, are unmapped",
        )
    warn_of_bad_reads(_WHO, counts, options)
    if words := other_bases(counts, options):
        input_warning(_WHO, words)
    if counts.total == 0:
        lost = low_mapq + skipped.secondary + skipped.supplementary
        where = f" in {' '.join(options.window)}" if options.window else ""  # a barcode may have no reads at all
        why = "; check --min-mapq and --secondary" if lost else ""
        source = f"read of {options.reads}" if options.mapped_by else f"record of {options.bam}"
        input_warning(_WHO, f"no {source}{where} was used; the results are empty{why}")
    elif counts.used and not counts.results:
        console.warning(_WHO, _why_empty(options, counts))


def _why_empty(options: MappedReadsOptions, counts: RunCounts) -> str:
    """Explain the lack of results of aligned reads."""
    where = f" in {' '.join(options.window)}" if options.window else ""
    reads = "the only aligned read" if counts.used == 1 else f"the {counts.used:,} aligned reads"
    if isinstance(options, CallOptions):
        named = options.motif or options.methylation or METHYLATION
        return (
            f"{reads} cover no site of {named}{where} with enough bases on both sides; there are no calls. Check the "
            "motif and the window"
        )
    return f"{reads} have no events on k-mers of the reference{where}; the table has no rows"


def warn_of_reverse_reads(who: str, counts: RunCounts, chemistry: Chemistry) -> None:
    """Warn of direct RNA reads on the reverse strand, which m6anet ignores."""
    if chemistry.rna and counts.reverse:
        input_warning(
            who,
            f"{counts.reverse} of {counts.used} reads lie on the reverse strand, of which m6anet takes none; map the "
            "reads to transcripts, or to the reverse complement of the reference",
        )


def note_results(who: str, options: AlignmentOptions, counts: RunCounts, what: str, to_callback: bool = False) -> None:
    """Report the number of results and their files in one line."""
    words = f"{counts.used:,} reads aligned"
    if what:
        words = f"{counts.results:,} {what} of {counts.used:,} of {counts.total:,} reads"
    if (fraction := counts.methylated_fraction) is not None:  # calls were counted
        beyond = getattr(options, "threshold", CALL_THRESHOLD)
        words += f"; {100 * fraction:.1f} % of those with a ratio beyond {beyond:g} are methylated"
    if getattr(options, "skip_overlaps", False):
        words += f"; {counts.covered_sites:,} sites skipped that an earlier alignment of the same read covers"
    files = written_files(options, to_callback)
    console.note(who, f"{words}; written: {', '.join(files)}" if files else words)
    if counts.ultra:
        ultra = getattr(options, "skip_ultra", None)
        console.note(who, f"to use the longer reads: samtools index {ultra}, then run again with -b {ultra}")


def written_files(options: Any, to_callback: bool = False) -> list[str]:
    """List the files of a command's results, with words for standard output."""
    has_table = not to_callback and getattr(options, "output_format", "") != "none"
    has_table = has_table and getattr(options, "m6anet_json", None) is None
    files = []
    for name, option in declarations(type(options)).items():
        if option.group is not Group.OUTPUT or option.kind not in (Kind.FILE, Kind.PATH):
            continue
        value = getattr(options, name)
        paths = value if option.repeated else [value]
        files += [display_output(path) for path in paths if path is not None and (path != "-" or has_table)]
    return files


def warn_of_bad_reads(who: str, counts: RunCounts, options: AlignmentOptions) -> None:
    """Warn of reads without a usable signal, with examples."""
    if not (n := counts.by_cause(Cause.NO_SIGNAL)):
        return
    more = n - len(counts.examples)
    listed = f"; {more} more" if more else ""
    where = f"all are in {options.failed_reads}" if options.failed_reads else "--failed-reads FILE lists them all"
    share = ", more than a tenth," if n > counts.total / 10 else ""
    input_warning(
        who, f"{n} of {counts.total} reads{share} have no usable signal: {'; '.join(counts.examples)}{listed} ({where})"
    )


def note_counts_and_times(who: str, outcome: Outcome, signal_kind: str) -> None:
    """Print the outcomes of the reads, and the times; `signal_kind` is the format of the signals."""
    counts = outcome.counts
    shown = dict(zip(LOADED, ("bam", "fasta", signal_kind), strict=True))
    console.note(
        who,
        f"total entries: {counts.total}, qc fail: {counts.qc_fail}, could not calibrate: {counts.not_calibrated}, "
        f"no alignment: {counts.no_alignment}, bad reads: {counts.bad_reads}",
    )
    if counts.failed:
        console.note(who, "failed reads by cause: " + cause_counts(counts))
    console.note(who, f"total bases: {counts.bases / 1e6:.1f} Mbases")
    console.note(who, f"Data loading time: {sum(outcome.loading.values()):.3f} sec")
    for what, seconds in outcome.loading.items():
        console.note(who, f"    - {shown[what]} load time: {seconds:.3f} sec")
    console.note(who, f"Data processing time: {outcome.processing:.3f} sec")
    for name, seconds in outcome.stages.items():
        console.note(who, f"    - {name} time: {seconds:.3f} sec")
    console.note(who, f"Data output time: {outcome.output:.3f} sec")
