"""Event alignment to the reference: ``f5py eventalign``."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.chemistry import Chemistry
from f5py.compute.diagnosis import RunCounts
from f5py.compute.events_on_reference import EventalignStage
from f5py.compute.statistics import RunStatistics
from f5py.core.batch import ReadBatch
from f5py.errors import InputFileError, UsageError
from f5py.io.arrow.table import RowTarget
from f5py.io.bam.headers import header_with_program
from f5py.io.output_checks import check_outputs
from f5py.messages import console
from f5py.messages.console import obeys_strict
from f5py.options.output_names import kind_among
from f5py.options.shared import CALL_THRESHOLD
from f5py.options.signal_commands import EventalignOptions
from f5py.outputs.events.eventalign_arrow import EventalignArrow
from f5py.outputs.events.eventalign_sam import EventalignSam
from f5py.outputs.events.eventalign_table import EventalignTable
from f5py.outputs.events.events_sinks import EventalignPaf, EventalignSummary, EventBam, EventPaf
from f5py.outputs.events.m6anet_sites import M6anetSites, path_of_json
from f5py.outputs.events.table_columns import TableLayout
from f5py.outputs.formatted_text import FormattedText
from f5py.outputs.sink import ArrowSink, Sink
from f5py.pipeline.loader import Loader
from f5py.runs.map_then_run import run_of_alignments
from f5py.runs.outcome import Outcome, warn_of_reverse_reads
from f5py.runs.recipe import MappedReadsRecipe, Run, TableCallback, failed_reads, ultra_reads

#: Samples of a read of which the text takes about as much room as a usual row.
_SAMPLES_PER_LINE = 10
#: Layout of SAM, unless the user says otherwise.
_SAM_VERSION = 2
_MODES = {"paf": "--paf", "sam": "--sam", "m6anet": "--m6anet", "m6anet_json": "--m6anet-json"}


@obeys_strict
def run(options: EventalignOptions, on_table: TableCallback | None = None) -> RunCounts:
    """Align events; return the read counts by outcome.

    Raises `F5pyError`; earlier output is valid and in order. `on_table` gets the rows instead of the
    output, in pieces of at most a million and a read.
    """
    return run_of_alignments(EVENTALIGN, options, on_table)


class Eventalign(MappedReadsRecipe[EventalignOptions, EventalignStage]):
    """The recipe of ``eventalign``."""

    command = "eventalign"
    keeps_command_line = True
    words = "rows"

    def resolved(self, options: EventalignOptions, to_callback: bool = False) -> EventalignOptions:
        options = with_format(options)
        check_options(options, to_callback)
        return options

    def results(self, options: EventalignOptions) -> list[str | None]:
        return [options.output, None if options.m6anet_json is None else path_of_json(options.m6anet_json)]

    def kernels(self, options: EventalignOptions) -> list[str]:
        return ["event rows", *(["event table"] if options.output_format == "tsv" else [])]

    def loading(self, options: EventalignOptions) -> dict[str, Any]:
        """Return settings of the loader: reads may be spliced, and SAM needs their records."""
        return {"spliced": True, "keep_records": options.sam}

    def stage(self, options: EventalignOptions, loader: Loader, chemistry: Chemistry) -> EventalignStage:
        return EventalignStage(options, chemistry, loader.windows)

    def statistics(self, options: EventalignOptions, loader: Loader) -> RunStatistics | None:
        if not options.report:
            return None
        return RunStatistics(loader.alignments.contig_lengths, CALL_THRESHOLD, windows=loader.windows)

    def sinks(self, run: Run[EventalignOptions, Loader, EventalignStage]) -> Iterator[Sink]:
        options, alignments, model = run.options, run.loader.alignments, run.stage.model
        rna = run.stage.chemistry.rna
        contigs = cut_names(alignments.contigs) if options.cut_names else alignments.contigs
        layout = TableLayout(**{name: getattr(options, name) for name in TableLayout._fields})
        facts = run.stage.facts

        def columns(out: RowTarget) -> EventalignArrow:
            return EventalignArrow(out, contigs, model, layout, options.threads, facts.metadata)

        def size(batch: ReadBatch) -> NDArray[np.int64]:
            return _lines(options, batch)

        if run.on_table is not None:
            yield ArrowSink(run.on_table, columns)
        elif options.output_format == "parquet":
            yield ArrowSink(options.output, columns)
        elif options.m6anet_json is not None:
            yield M6anetSites(options.m6anet_json, options, model, contigs, alignments.is_sorted)
        elif options.paf:
            paf = EventalignPaf(contigs, alignments.contig_lengths, model.k, rna)
            yield EventPaf(options.output, options, paf, size, run.stopping)
        elif options.sam:
            sam = EventalignSam(alignments.header, options.sam_out_version or _SAM_VERSION, rna)
            if options.output.endswith(".bam"):
                header = header_with_program(alignments.header, options.command_line, facts.line)
                yield EventBam(header, options.output, options, sam, size, run.stopping)
            else:
                yield FormattedText(options.output, options, sam, size, run.stopping)
        else:
            table = EventalignTable(contigs, model, layout)
            is_csv = options.output_format == "csv"
            yield FormattedText(options.output, options, table, size, run.stopping, is_csv)
        if options.summary is not None:
            yield EventalignSummary(options.summary, options.threads, rna, run.loader.signals.place)
        yield from ultra_reads(run)
        yield from failed_reads(options)

    def report(
        self, run: Run[EventalignOptions, Loader, EventalignStage], outcome: Outcome, warnings: list[str]
    ) -> None:
        options = run.options
        if options.m6anet or options.m6anet_json is not None:
            warn_of_reverse_reads(self.who, outcome.counts, run.stage.chemistry)
        if options.m6anet and outcome.counts.results:
            console.warning(
                self.who,
                "the table of --m6anet is f5c's, which m6anet dataprep 2 takes for one without a site; give "
                "--m6anet-json FOLDER, or leave --m6anet out and add --scale-events --signal-index",
            )
        super().report(run, outcome, warnings)

    def state_after_error(self, options: EventalignOptions) -> str:
        if options.output_format == "parquet":
            return "no Parquet file was made"
        if options.m6anet_json is not None:
            return "no data.json was made"
        return "no BAM file was made" if options.output.endswith(".bam") else "the output is incomplete"

    def shows_record_numbers(self, options: EventalignOptions) -> bool:
        if options.summary is not None or options.m6anet_json is not None:
            return True
        return not (options.print_read_names or options.sam or options.paf)


EVENTALIGN = Eventalign()


def with_format(options: EventalignOptions) -> EventalignOptions:
    """Resolve the output format from the name, unless it is given."""
    if options.output_format is not None:
        return options
    said = next((name for name in _MODES if getattr(options, name)), None)
    if said is None:
        kind = kind_among(options.output, "events are written", ("tsv", "csv", "parquet", "paf", "sam", "bam"))
    else:
        kinds = ("tsv", "csv", *{"paf": ("paf",), "sam": ("sam", "bam")}.get(said, ()))
        kind = kind_among(options.output, f"{_MODES[said]} is given", kinds)
        kind = kind if kind == "csv" else "tsv"
    return replace(
        options,
        output_format=kind if kind in ("parquet", "csv") else "tsv",
        sam=options.sam or kind in ("sam", "bam"),
        paf=options.paf or kind == "paf",
    )


def check_options(options: EventalignOptions, to_callback: bool = False) -> None:
    """Raise `UsageError` for contradicting options; with `to_callback` the rows go to a function."""
    check_outputs(options)
    if to_callback:
        others = [option for name, option in _MODES.items() if getattr(options, name)]
        if others or options.output != "-":
            raise UsageError(
                f"{others[0] if others else '-o'}: is another output, and the rows of the table are returned; name the "
                "file with -o and leave out returns, or leave these options out"
            )
        if options.print_events or options.print_banded_aln or options.print_scaling:
            raise UsageError("rows that are returned: have no place for the tables of the --print options")
    if options.output.endswith(".bam") and not options.sam:
        raise UsageError(f"-o {options.output}: only --sam makes a BAM file; the other outputs are text")


def cut_names(contigs: list[str]) -> list[str]:
    """Return names up to their first ``|``. Raises `InputFileError` if two of them become the same."""
    cut = [name.partition("|")[0] or name for name in contigs]
    if len(set(cut)) < len(cut):
        seen: dict[str, str] = {}
        for short, name in zip(cut, contigs, strict=True):
            if (other := seen.setdefault(short, name)) is not name:
                raise InputFileError(f"--cut-names: contigs {other} and {name} would both be called {short}")
    return cut


def _lines(options: EventalignOptions, batch: ReadBatch) -> NDArray[np.int64]:
    """Estimate each read's lines of text, of usual length, int64; those of PAF and SAM are shorter."""
    lines = np.maximum(batch.rows.n, 1)
    if options.samples and not any(getattr(options, mode) for mode in _MODES):
        lines = lines + batch.n_samples // _SAMPLES_PER_LINE
    return lines
