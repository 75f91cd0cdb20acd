"""Methylation calling from files to tables: what ``f5py call-methylation`` does."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from f5py.compute.alignment import begin_gpu
from f5py.compute.counts import RunCounts
from f5py.compute.methylation import Caller, motifs_of, part_of
from f5py.compute.statistics import RunStatistics
from f5py.core.batch import ReadBatch
from f5py.core.windows import Windows
from f5py.errors import UsageError, blamed_on
from f5py.io.arrow.table import ArrowStream
from f5py.io.files.complete_file import complete_output
from f5py.io.files.output import TextOutput, open_output
from f5py.messages import console
from f5py.messages.strict import obeys_strict
from f5py.options.output_names import OF_SITES, kind_of_output
from f5py.options.signal_commands import CallOptions
from f5py.outputs.calls_arrow import CallsArrow
from f5py.outputs.calls_writer import CallsWriter
from f5py.outputs.failed_reads import listing_failed_reads
from f5py.outputs.formatting import OrderedFormatter
from f5py.outputs.stage_tables import StageTables
from f5py.pipeline.flow import process
from f5py.pipeline.inputs import (
    check_has_file,
    check_outputs,
    check_prints_nothing_else,
    open_inputs,
)
from f5py.pipeline.loader import Loader
from f5py.pipeline.runner import Outputs
from f5py.runs.compile_ahead import CompileAhead
from f5py.runs.end_of_run import report
from f5py.runs.outcome import Outcome, RunContext
from f5py.runs.parts.done_part import ARROW, FAILED_READS, MODBAM, SITES, DonePart
from f5py.runs.parts.job import PartJob, WriteBatch
from f5py.runs.parts.join_outputs import append_arrow


@obeys_strict
def run(options: CallOptions, take: Callable[[Any], None] | None = None) -> RunCounts:
    """Call methylation as `options` say; return how many reads met which fate.

    Parameters
    ----------
    options : CallOptions
    take : function of a pyarrow.Table, optional
        Gets the calls, batch by batch; takes the place of standard output.

    Raises
    ------
    F5pyError
        For anything wrong with the input or output. What was written until then is valid and in order.
    """
    if options.watch is not None:
        if take is not None:
            raise UsageError("--watch: the calls are handed on as they come; leave this option out")
        from f5py.runs import watch

        return watch.run(options)
    if options.plan is not None or options.resume:
        if take is not None:
            raise UsageError("--plan and --resume: the calls are handed on as they come; leave these options out")
        from f5py.runs.in_parts import run_in_parts

        return run_in_parts(options)
    options = with_formats(options, take is not None)
    check_options(options, take is not None)
    return _run(options, take)


@obeys_strict
def run_parts(options: CallOptions, job: PartJob) -> RunCounts:
    """Do parts of a plan; `options` are the plan's."""
    return _run(options, None, job)


def _run(options: CallOptions, take: Callable[[Any], None] | None, job: PartJob | None = None) -> RunCounts:
    begin_gpu(options, of_all=job is None)
    with ExitStack() as workers, ExitStack() as inputs:
        table = ["calls table"] if options.output_format == "tsv" else []
        ahead = CompileAhead([part_of(options), *table])
        workers.callback(ahead.close)
        loader, chemistry = open_inputs(options, inputs)
        if loader.windows is not None:
            loader.windows.clip_groups = options.window_mode == "clip"
        caller = Caller(options, chemistry, loader.windows)
        workers.callback(caller.close)
        caller.statistics = statistics_of(options, loader.alignments.contigs, loader.windows)
        warnings = workers.enter_context(console.recorded_warnings())
        caller.use_gpu(loader, of_all=job is None)
        caller.before_stage = ahead.wait
        loader.keep_records = loader.keep_passed_over = options.modbam is not None
        loader.partition_tag = options.partition_tag
        left = "the output is incomplete" if options.output_format == "tsv" else "no file was made"
        with Outputs() as outputs:

            def opened(
                options: CallOptions, files: ExitStack, table: TextOutput | None = None
            ) -> tuple[WriteBatch, Callable[[], None]]:
                writers = Writers(options, caller, loader, files, take, table)
                return listing_failed_reads(options, writers.write, files), writers.finish

            if job is None:
                write, finish = opened(options, outputs)
            else:
                write, finish = job.outputs(
                    loader, caller, outputs,
                    lambda folder, files, table: opened(options_of_part(options, folder), files, table),
                    lambda: statistics_of(options, loader.alignments.contigs, loader.windows),
                )  # fmt: skip
            write = ahead.before(write, *table)
            seconds = process(options, caller, loader, inputs, write, left=left if job is None else job.left)
            finish()
        if job is None:
            context = RunContext.of(caller, loader.alignments, loader.signals.kind)
            report(options, context, Outcome.of(caller, loader, seconds), warnings, take is not None)
    return caller.counts


def statistics_of(options: CallOptions, contigs: list[str], windows: Windows | None) -> RunStatistics | None:
    """What the report of a run is made of, if one is wanted."""
    if options.report is None:
        return None
    return RunStatistics(len(contigs), options.threshold, motifs_of(options), windows)


def options_of_part(options: CallOptions, folder: Path) -> CallOptions:
    """The options with outputs in the folder of a part."""

    def within(name: str, given: str | None) -> str | None:
        return None if given is None else str(folder / name)

    return replace(
        options,
        output=str(folder / ARROW),
        modbam=within(MODBAM, options.modbam),
        bedmethyl=within(SITES, options.bedmethyl),
        failed_reads=within(FAILED_READS, options.failed_reads),
    )


def with_formats(options: CallOptions, is_taken: bool = False) -> CallOptions:
    """The options with the formats that names of outputs stand for; `is_taken`: the calls go to a function.

    ``-o x.bam`` and nanopolish's ``--modbam-output-name`` are ``--modbam``, ``-o x.bed`` is ``--bedmethyl``, each
    without a table.
    """
    name = options.modbam_output_name
    if name is not None:
        if options.modbam is not None or options.output_format is not None or options.output != "-":
            raise UsageError(
                "--modbam-output-name: writes modBAM and no table, as in nanopolish; for a table too, give --modbam "
                "and -o"
            )
        return replace(options, modbam=name, modbam_output_name=None, output_format="none")
    if options.output_format is not None:
        return options
    kind = kind_of_output(options.output)
    if kind not in ("bam", *OF_SITES):
        none = is_taken and options.output == "-"
        return replace(options, output_format="none" if none else "parquet" if kind == "parquet" else "tsv")
    field = "modbam" if kind == "bam" else "bedmethyl"
    if (other := getattr(options, field)) is not None:
        raise UsageError(f"-o {options.output} and --{field} {other}: both name such a file; give one")
    without_table: dict[str, Any] = {field: options.output, "output": "-", "output_format": "none"}
    return replace(options, **without_table)


def check_options(options: CallOptions, is_taken: bool = False) -> None:
    """Raise for options that do not go together; `is_taken` says that the calls go to a function."""
    if not options.bam:
        raise UsageError("-b: name the alignments")
    motifs = motifs_of(options)
    is_piped = options.modbam == "-"
    if is_piped and options.output == "-" and options.output_format != "none":
        raise UsageError("--modbam -: standard output is for the table; name a file for that with -o")
    check_outputs(
        {
            "-o": options.output,
            "--skip-ultra": options.skip_ultra,
            "--modbam": None if is_piped else options.modbam,
            "--bedmethyl": options.bedmethyl,
            "--report": options.report,
            "--failed-reads": options.failed_reads,
        },
    )
    if options.output.endswith((".cram", ".sam")):
        raise UsageError(f"-o {options.output}: the table is text; alignments with tags are written as BAM only")
    if options.output_format == "none":
        if options.output != "-":
            raise UsageError(f"-o {options.output}: there is no table with --output-format none")
        if options.modbam is None and options.bedmethyl is None and not is_taken:
            raise UsageError("--output-format none: nothing to write; give --modbam or --bedmethyl")
        check_prints_nothing_else(options, "--output-format none")
    if options.output_format == "parquet":
        check_has_file(options)
        check_prints_nothing_else(options, "--output-format parquet")
    counting = {
        "--partition-tag": options.partition_tag is not None,
        "--combine-strands": options.combine_strands,
        "--threshold-per-site": options.threshold_per_site,
        "--call-threshold": options.call_threshold is not None,
    }
    for option, given in counting.items():
        if given and options.bedmethyl is None:
            raise UsageError(f"{option}: says how --bedmethyl counts, which is not given")
    if options.call_threshold is not None and not 0 <= options.call_threshold < math.inf:
        raise UsageError(f"--call-threshold {options.call_threshold:g}: must be a finite number, and not negative")
    if options.window_mode is not None and options.window is None:
        raise UsageError("--window-mode: says which groups a window has; there is no -w")
    tagging = {
        "--replace-tags": options.replace_tags,
        "--merge-tags": options.merge_tags,
        "--modbam-style": options.modbam_style != "read",
        "--prior": options.prior is not None,
    }
    for option, given in tagging.items():
        if given and options.modbam is None:
            raise UsageError(f"{option}: says how --modbam is written, which is not given")
    if options.merge_tags and options.replace_tags:
        raise UsageError("--replace-tags and --merge-tags are both given; choose one")
    if options.merge_tags and options.modbam_style != "read":
        raise UsageError("--merge-tags: tags of the read's bases do not go together with --modbam-style reference")
    if len(motifs) > 1 and options.bedmethyl is not None:
        raise UsageError(
            "--bedmethyl: counts one motif; call several into a table, and count each with f5py meth-freq -q NAME"
        )


def _append_file(part: DonePart, name: str, append: Callable[[BinaryIO], None]) -> None:
    with part.open(name) as file:
        append(file)


class Writers:
    """Everything that a run writes.

    Every file has a stack of contexts of its own, and is completed by itself: one that fails at the end takes no other
    with it. An error before the end is one of the run, and leaves no file that was to appear when complete.

    Of a part of a run the `table` takes the rows of a table of text, those of a Parquet table are kept as Arrow
    columns, and the sites of bedMethyl as counts.
    """

    def __init__(
        self,
        options: CallOptions,
        caller: Caller,
        loader: Loader,
        outputs: ExitStack,
        take: Callable[[Any], None] | None,
        table: TextOutput | None = None,
    ) -> None:
        is_part = table is not None
        alignments = loader.alignments
        self._output = options.output
        self._writers: list[tuple[str, Any]] = []  # with the names of their files
        self._appenders: list[tuple[str, Callable[[DonePart], None]]] = []  # likewise, of what appends a part
        self._files = [outputs.enter_context(ExitStack()) for _ in range(3)]
        of_table, of_modbam, of_bedmethyl = self._files
        self._out: TextOutput | None = None
        layout = alignments.contigs, caller.model.k, loader.windows, caller.motif_names
        if options.output_format == "parquet":
            file = of_table.enter_context(complete_output(options.output))
            columns = CallsArrow(ArrowStream(file) if is_part else file, *layout, n_threads=options.threads)
            self._writers.append((options.output, of_table.enter_context(columns)))
            self._appenders.append((options.output, lambda part: append_arrow(part, columns)))
        elif options.output_format == "tsv":
            self._out = out = table or of_table.enter_context(open_output(options.output, options.threads))
            formatter = OrderedFormatter(options.threads)
            of_table.callback(formatter.close)
            calls = CallsWriter(out, options.meth_out_version, *layout, formatter=formatter)
            tables = StageTables(out, options.print_events, options.print_banded_aln, options.print_scaling)
            self._writers += [(options.output, tables), (options.output, calls)]
            self._appenders.append((options.output, lambda part: part.append_rows(out)))
        if take is not None:
            handed_on = CallsArrow(take, *layout)
            self._writers.append(("", of_table.enter_context(handed_on)))
        self._modbam = None
        if options.modbam is not None:
            from f5py.outputs.modbam import ModbamWriter, TagOptions

            self._modbam = modbam = of_modbam.enter_context(
                ModbamWriter(
                    of_modbam.enter_context(complete_output(options.modbam)),
                    options.modbam,
                    alignments.header,
                    caller.motifs,
                    TagOptions(
                        style=options.modbam_style,
                        others="replace" if options.replace_tags else "merge" if options.merge_tags else "keep",
                        prior=0.5 if options.prior is None else options.prior,
                        windows=loader.windows,
                    ),
                    options.threads,
                    options.command_line,
                    loader.reference.path,
                )
            )
            self._writers.append((options.modbam, modbam))
            self._appenders.append((options.modbam, lambda part: _append_file(part, MODBAM, modbam.append)))
        if options.bedmethyl is not None:
            from f5py.outputs.bedmethyl import BedMethylOutput
            from f5py.site_frequencies.site_counts import SiteCounts

            bedmethyl = BedMethylOutput(
                options.bedmethyl,
                caller.motifs[0],
                dict(zip(alignments.contigs, alignments.contig_lengths, strict=True)),
                SiteCounts(options.threshold, options.threshold_per_site, options.combine_strands),
                None if options.partition_tag is None else loader.partitions,
                loader.windows,
                options.threads,
            )
            self._writers.append((options.bedmethyl, bedmethyl))
            self._appenders.append((options.bedmethyl, lambda part: _append_file(part, SITES, bedmethyl.join)))
            path = options.bedmethyl

            def complete_bedmethyl(kind: type[BaseException] | None, *_: object) -> None:
                if kind is None and is_part:
                    bedmethyl.save(path)
                elif kind is None:
                    bedmethyl.finish()

            of_bedmethyl.push(complete_bedmethyl)

    def write(self, batch: ReadBatch) -> None:
        """Write one batch."""
        for path, writer in self._writers:
            if len(batch) or writer is self._modbam:
                with blamed_on(path):
                    writer.write(batch)
                    if self._out is not None and path == self._output:
                        self._out.flush()  # whatever happens later, these rows are out, and whole

    def append(self, part: DonePart) -> None:
        """Write the outputs of a part."""
        for path, append in self._appenders:
            with blamed_on(path):
                append(part)

    def finish(self) -> None:
        """Complete all files.

        Raises
        ------
        Exception
            The first that a file has raised, after the others have been completed.
        """
        problems: list[Exception] = []
        for file in self._files:
            try:
                file.close()
            except Exception as problem:
                problems.append(problem)
        if problems:
            raise problems[0]
