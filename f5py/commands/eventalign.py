"""Event alignment to the reference from files to tables: what ``f5py eventalign`` does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.compute.alignment import begin_gpu
from f5py.compute.counts import RunCounts
from f5py.compute.events_on_reference import ReferenceAligner
from f5py.compute.statistics import RunStatistics
from f5py.core.batch import ReadBatch
from f5py.errors import UsageError, blamed_on
from f5py.io.files.complete_file import complete_output
from f5py.io.files.output import TextOutput, open_output
from f5py.messages import console
from f5py.messages.strict import obeys_strict
from f5py.options.output_names import kind_of_output
from f5py.options.shared import CALL_THRESHOLD
from f5py.options.signal_commands import EventalignOptions
from f5py.outputs.eventalign_paf import EventalignPaf
from f5py.outputs.eventalign_sam import EventalignSam
from f5py.outputs.eventalign_summary import EventalignSummary
from f5py.outputs.eventalign_table import EventalignTable
from f5py.outputs.failed_reads import listing_failed_reads
from f5py.outputs.formatting import OrderedFormatter
from f5py.outputs.m6anet_json import M6anetJson
from f5py.outputs.m6anet_sites import PartSites, SiteFinder
from f5py.outputs.part_rows import PartRows
from f5py.outputs.sam_to_bam import SamToBam
from f5py.outputs.stage_tables import StageTables
from f5py.outputs.table_layout import TableLayout
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
from f5py.runs.parts.done_part import ARROW, FAILED_READS, M6ANET, SUMMARY
from f5py.runs.parts.job import PartJob, WriteBatch
from f5py.runs.parts.text_chain import ChainedText

#: Samples of a read of which the text takes about as much room as a usual row.
_SAMPLES_PER_LINE = 10
#: Layout of SAM, unless the user says otherwise.
_SAM_VERSION = 2
_MODES = {"paf": "--paf", "sam": "--sam", "m6anet": "--m6anet", "m6anet_json": "--m6anet-json"}


class _Formatter(Protocol):
    def header(self) -> bytes: ...

    def format(self, batch: ReadBatch, first: int, end: int) -> Any: ...


@obeys_strict
def run(options: EventalignOptions, take: Callable[[Any], None] | None = None) -> RunCounts:
    """Align events as `options` say; return how many reads met which fate.

    Parameters
    ----------
    options : EventalignOptions
    take : function of a pyarrow.Table, optional
        Gets the rows of the table, in pieces of at most a million and a read; takes the place of the output.

    Raises
    ------
    F5pyError
        For anything wrong with the input or output. What was written until then is valid and in order.
    """
    if options.plan is not None or options.resume:
        if take is not None:
            raise UsageError("--plan and --resume: the rows are handed on as they come; leave these options out")
        from f5py.runs.in_parts import run_in_parts

        return run_in_parts(options)
    options = with_format(options)
    check_options(options, take is not None)
    return _run(options, take)


@obeys_strict
def run_parts(options: EventalignOptions, job: PartJob) -> RunCounts:
    """Do parts of a plan; `options` are the plan's."""
    return _run(options, None, job)


def _run(options: EventalignOptions, take: Callable[[Any], None] | None, job: PartJob | None = None) -> RunCounts:
    begin_gpu(options, of_all=job is None)
    with ExitStack() as workers, ExitStack() as inputs:
        of_table = _compiled_table(options)
        ahead = CompileAhead(["event rows", *of_table])
        workers.callback(ahead.close)
        loader, chemistry = open_inputs(options, inputs)
        loader.spliced = True
        loader.keep_records = options.sam
        aligner = ReferenceAligner(options, chemistry, loader.windows)
        workers.callback(aligner.close)
        aligner.statistics = statistics_of(options, loader.alignments.contigs)
        warnings = workers.enter_context(console.recorded_warnings())
        aligner.use_gpu(loader, of_all=job is None)
        aligner.before_stage = ahead.wait
        with Outputs() as outputs:

            def opened(
                options: EventalignOptions, files: ExitStack, table: ChainedText | None = None
            ) -> tuple[WriteBatch, Callable[[], None]]:
                write = _writer(options, aligner, loader, (files, outputs.stopping), take, table)
                return listing_failed_reads(options, write, files), lambda: None

            if job is None:
                write, finish = opened(options, outputs)
            else:
                write, finish = job.outputs(
                    loader, aligner, outputs,
                    lambda folder, files, table: opened(options_of_part(options, folder), files, table),
                    lambda: statistics_of(options, loader.alignments.contigs),
                )  # fmt: skip
            left = _left_by_an_error(options) if job is None else job.left
            write = ahead.before(write, *of_table)
            seconds = process(options, aligner, loader, inputs, write, left=left)
            finish()
        if job is None:
            context = RunContext.of(aligner, loader.alignments, loader.signals.kind)
            report(options, context, Outcome.of(aligner, loader, seconds), warnings, take is not None)
    return aligner.counts


def _compiled_table(options: EventalignOptions) -> list[str]:
    """The part of `f5py.runs.compile_ahead` that formats the table, if it is that of most runs."""
    is_other = options.output_format == "parquet" or options.samples or any(getattr(options, name) for name in _MODES)
    return [] if is_other else ["event table"]


def statistics_of(options: EventalignOptions, contigs: list[str]) -> RunStatistics | None:
    """What the report of a run is made of, if one is wanted."""
    return None if options.report is None else RunStatistics(len(contigs), CALL_THRESHOLD)


def options_of_part(options: EventalignOptions, folder: Path) -> EventalignOptions:
    """The options with outputs in the folder of a part; a table is not compressed, and records are SAM."""
    return replace(
        options,
        output=str(folder / ARROW),
        m6anet_json=None if options.m6anet_json is None else str(folder / M6ANET),
        summary=None if options.summary is None else str(folder / SUMMARY),
        failed_reads=None if options.failed_reads is None else str(folder / FAILED_READS),
    )


def with_format(options: EventalignOptions) -> EventalignOptions:
    """The options with the format that the name of the output stands for, unless they say it."""
    if options.output_format is not None:
        return options
    is_said = any(getattr(options, name) for name in _MODES)
    kind = "tsv" if is_said else kind_of_output(options.output)
    return replace(
        options,
        output_format="parquet" if kind == "parquet" else "tsv",
        sam=options.sam or kind in ("sam", "bam"),
        paf=options.paf or kind == "paf",
    )


def check_options(options: EventalignOptions, is_taken: bool = False) -> None:
    """Raise for options that do not go together; `is_taken` says that the rows go to a function."""
    check_outputs(
        {
            "-o": options.output,
            "--skip-ultra": options.skip_ultra,
            "--summary": options.summary,
            "--report": options.report,
            "--failed-reads": options.failed_reads,
        },
    )
    modes = [option for name, option in _MODES.items() if getattr(options, name)]
    if options.output_format == "parquet":
        modes.append("--output-format parquet")
    if len(modes) > 1:
        raise UsageError(f"{' and '.join(modes)} exclude each other; choose one kind of output")
    if modes and not options.m6anet:
        check_prints_nothing_else(options, modes[0])
    if is_taken and (modes or options.output != "-"):
        raise UsageError(f"{modes[0] if modes else '-o'}: is another output; the rows of the table are handed on")
    if is_taken:
        check_prints_nothing_else(options, "rows that are handed on")
    if options.output_format == "parquet":
        check_has_file(options)
    if options.kmer_view is not None and (options.paf or options.sam or options.m6anet_json):
        raise UsageError("--kmer-view: says how the table shows k-mers; it has no meaning with another output")
    if options.m6anet_json is not None and options.output != "-":
        raise UsageError(f"-o {options.output}: there is no table with --m6anet-json")
    if options.sam_out_version is not None and not options.sam:
        raise UsageError("--sam-out-version: says how --sam is written, which is not given")
    if options.output.endswith(".bam") and not options.sam:
        raise UsageError(f"-o {options.output}: only --sam makes a BAM file; the other outputs are text")


def writes_bam(options: EventalignOptions) -> bool:
    """Whether the output is a BAM file."""
    return options.sam and options.output.endswith(".bam")


def _left_by_an_error(options: EventalignOptions) -> str:
    """What there is of the output after an error."""
    if options.output_format == "parquet":
        return "no Parquet file was made"
    if options.m6anet_json is not None:
        return "no data.json was made"
    return "no BAM file was made" if writes_bam(options) else "the output is incomplete"


def layout_of(options: EventalignOptions) -> TableLayout:
    """What the options say of the table's columns."""
    return TableLayout(**{name: getattr(options, name) for name in TableLayout._fields})


def _writer(
    options: EventalignOptions,
    aligner: ReferenceAligner,
    loader: Loader,
    outputs: tuple[ExitStack, threading.Event],
    take: Callable[[Any], None] | None,
    table: ChainedText | None,
) -> WriteBatch:
    """Open the outputs, and return what writes a batch to them.

    Parameters
    ----------
    options, aligner, loader
    outputs : (ExitStack, threading.Event)
        What completes them, and what stops their writer.
    take : function of a pyarrow.Table or None
        What takes the rows.
    table : ChainedText or None
        Of a part of a run what takes the text, while what is no text is kept in files of the part.
    """
    files, stopping = outputs
    contigs, contig_lengths = loader.alignments.contigs, loader.alignments.contig_lengths
    rna, k = aligner.chemistry.rna, aligner.model.k
    summary = _summary(options, rna, loader, files)
    if options.output_format == "parquet" or take is not None:
        from f5py.outputs.eventalign_arrow import EventalignArrow

        to: Any = take
        if table is not None:
            to = PartRows(options.output, table)
        elif take is None:
            to = files.enter_context(complete_output(options.output))
        rows = EventalignArrow(to, contigs, aligner.model, layout_of(options), options.threads)
        files.enter_context(rows)

        def write_columns(batch: ReadBatch) -> None:
            rows.write(batch)
            summary(batch)

        return write_columns
    if options.m6anet_json is not None:
        finder = SiteFinder(aligner.model, len(contigs), options.m6anet_max_reads)
        sites: Any = m6anet_json(options, loader) if table is None else PartSites(options.m6anet_json)
        files.enter_context(sites)

        def write_sites(batch: ReadBatch) -> None:
            sites.write(finder.find(batch))
            summary(batch)

        return write_sites

    formatter = OrderedFormatter(options.threads, stopping)
    files.callback(formatter.close)
    text: _Formatter
    if options.paf:
        text = EventalignPaf(contigs, contig_lengths, k, rna)
    elif options.sam:
        text = EventalignSam(loader.alignments.header, options.sam_out_version or _SAM_VERSION, rna)
    else:
        text = EventalignTable(contigs, aligner.model, layout_of(options))
    out: TextOutput
    if table is not None:
        out = table
        out.write(text.header())
    elif writes_bam(options):
        file = files.enter_context(complete_output(options.output))
        out = files.enter_context(SamToBam(file, options.output, loader.alignments.header, options.threads))
    else:
        out = files.enter_context(open_output(options.output, options.threads))
        out.write(text.header())
    tables = StageTables(out, options.print_events, options.print_banded_aln, options.print_scaling)

    def write(batch: ReadBatch) -> None:
        tables.write(batch)
        formatter.write(out, batch, text.format, _lines(options, batch))
        summary(batch)
        if isinstance(text, EventalignPaf):
            for note in text.notes(batch):
                console.plain(note)

    return write


def m6anet_json(options: EventalignOptions, loader: Loader) -> M6anetJson:
    """What writes the files for m6anet."""
    assert options.m6anet_json is not None
    return M6anetJson(
        options.m6anet_json,
        loader.alignments.contigs,
        loader.alignments.is_sorted,
        options.m6anet_min_reads,
        options.m6anet_max_reads,
    )


def _lines(options: EventalignOptions, batch: ReadBatch) -> NDArray[np.int64]:
    """How many lines of a usual length the text of each read takes up, int64; those of PAF and SAM are shorter."""
    lines = np.maximum(batch.n_rows, 1)
    if options.samples and not any(getattr(options, mode) for mode in _MODES):
        lines = lines + batch.n_samples // _SAMPLES_PER_LINE
    return lines


def _summary(options: EventalignOptions, rna: bool, loader: Loader, outputs: ExitStack) -> Callable[[ReadBatch], None]:
    """Open the summary, and return what adds a batch to it."""
    if options.summary is None:
        return lambda batch: None
    path = options.summary
    lines = EventalignSummary(rna, loader.signals.place)
    out = outputs.enter_context(open_output(path))
    out.write(lines.header())

    def write(batch: ReadBatch) -> None:
        with blamed_on(path):
            out.write(lines.format(batch, 0, len(batch)))
            out.flush()

    return write
