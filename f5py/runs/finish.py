"""The end of a run in parts: the outputs of all parts become those of one run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, chdir
from dataclasses import replace
from typing import Any

from f5py.commands import call_methylation, eventalign
from f5py.compute.alignment import AlignmentStage
from f5py.compute.chemistry import Chemistry
from f5py.compute.counts import RunCounts
from f5py.compute.events_on_reference import ReferenceAligner
from f5py.compute.methylation import Caller
from f5py.errors import F5pyError
from f5py.io.bam.alignments import RecordCounts
from f5py.io.bam.joined_bam import JoinedBam
from f5py.io.files.complete_file import complete_output
from f5py.io.files.inputs_in_use import inputs_in_use
from f5py.messages import console
from f5py.messages.progress import progress
from f5py.messages.strict import obeys_strict
from f5py.options.declaration import paths_read
from f5py.options.part_commands import FinishOptions
from f5py.options.signal_commands import CallOptions, EventalignOptions
from f5py.outputs.eventalign_arrow import EventalignArrow
from f5py.outputs.m6anet_sites import sites_of_part
from f5py.outputs.sam_to_bam import SamToBam
from f5py.pipeline.inputs import open_inputs
from f5py.pipeline.loader import Loader
from f5py.pipeline.runner import Outputs
from f5py.runs.end_of_run import report
from f5py.runs.outcome import Outcome, RunContext
from f5py.runs.parts.done_part import (
    FAILED_READS,
    M6ANET,
    SUMMARY,
    ULTRA,
    DonePart,
    check_processors,
    read_part,
)
from f5py.runs.parts.join_outputs import WholeLines, append_arrow, has_name, join_tables, join_texts
from f5py.runs.parts.plan import Plan
from f5py.runs.report import write_report

_SHOWN = 5
#: A plan, and the number of one of its parts.
PlannedPart = tuple[Plan, int]


def run(options: FinishOptions) -> RunCounts:
    """Write the outputs of a plan whose parts are all done.

    Raises
    ------
    F5pyError
        A part is not done or damaged, an input has changed, or an output cannot be written.
    """
    plan = Plan.load(options.plan)
    plan.check_divided()
    with chdir(plan.working_folder):
        planned = options_of_plan(plan)
        if options.threads is not None:
            planned = replace(planned, threads=options.threads)
        counts = finish(planned, plan)
    if options.remove:
        plan.remove_parts()
    return counts


def options_of_plan(plan: Plan) -> CallOptions | EventalignOptions:
    """The options that a plan was made with."""
    kind: type = CallOptions if plan.command == "call-methylation" else EventalignOptions
    made: CallOptions | EventalignOptions = kind(**plan.options)
    return made


@obeys_strict
def finish(options: CallOptions | EventalignOptions, plan: Plan) -> RunCounts:
    """Write the outputs of a plan, in the folder that its paths are relative to.

    Parameters
    ----------
    options : CallOptions or EventalignOptions
        Those of the plan.
    plan : Plan
    """
    if missing := plan.unfinished():
        shown = ", ".join(map(str, missing[:_SHOWN])) + (", ..." if len(missing) > _SHOWN else "")
        raise F5pyError(
            f"{plan.folder}: {len(missing)} of {len(plan)} parts are not done ({shown}); run them: f5py run-part "
            f"{plan.folder}"
        )
    plan.check_inputs()
    return join_parts(options, [(plan, number) for number in range(len(plan))])


def join_parts(options: CallOptions | EventalignOptions, parts: list[PlannedPart], tells: bool = True) -> RunCounts:
    """Write the outputs of parts, one after the other.

    Parameters
    ----------
    options : CallOptions or EventalignOptions
        Those of a run over everything.
    parts : list of (Plan, int)
        A plan and the number of its part.
    tells : bool
        Say what has come out, or why nothing has.
    """
    with ExitStack() as inputs, inputs_in_use(paths_read(options)), console.recorded_warnings() as warnings:
        loader, chemistry = open_inputs(options, inputs)
        join = _join_calls if isinstance(options, CallOptions) else _join_events
        with progress("parts") as bar:
            bar.expect(2 * len(parts))
            done, outcome, any_known = _read(options, parts, loader, bar.advance)
            loader.alignments.counts = outcome.skipped
            if tells:
                loader.check_any_known(any_known)
            stage = join(options, done, loader, chemistry, bar.advance)  # type: ignore[arg-type]
        if options.failed_reads is not None:
            join_texts(done, FAILED_READS, options.failed_reads, options.threads)
        if options.skip_ultra is not None:
            header = loader.alignments.header
            with complete_output(options.skip_ultra) as file, JoinedBam(file, options.skip_ultra, header) as ultra:
                for part in done:
                    with part.open(ULTRA) as records:
                        ultra.append(records)
        context = RunContext.of(stage, loader.alignments, loader.signals.kind)
        if tells:
            report(options, context, outcome, warnings)
        elif options.report is not None:
            write_report(options.report, options, context, outcome, warnings)
    return outcome.counts


def _read(
    options: CallOptions | EventalignOptions,
    parts: list[PlannedPart],
    loader: Loader,
    advance: Callable[[int], object],
) -> tuple[list[DonePart], Outcome, bool]:
    """The parts, whose files are looked at, their sums, and whether there is a read with bases."""
    contigs = loader.alignments.contigs

    def statistics() -> Any:
        if isinstance(options, CallOptions):
            return call_methylation.statistics_of(options, contigs, loader.windows)
        return eventalign.statistics_of(options, contigs)

    outcome, any_known = Outcome(RunCounts(), RecordCounts(), statistics()), False
    done = []
    for plan, number in parts:
        record = read_part(plan, number, statistics())
        done.append(DonePart(plan, number, record))
        any_known = any_known or record.has_known
        outcome.add(record.outcome)
        advance(1)
    check_processors(done)
    return done, outcome, any_known


def _join_calls(
    options: CallOptions,
    parts: list[DonePart],
    loader: Loader,
    chemistry: Chemistry,
    advance: Callable[[int], object],
) -> AlignmentStage:
    if loader.windows is not None:
        loader.windows.clip_groups = options.window_mode == "clip"
    if options.output_format == "tsv" and has_name(parts, options.output):
        options = replace(options, output="-", output_format="none")
    caller = Caller(options, chemistry, loader.windows)
    try:
        with Outputs() as outputs:
            writers = call_methylation.Writers(options, caller, loader, outputs, None)
            for part in parts:
                writers.append(part)
                advance(1)
            writers.finish()
    finally:
        caller.close()
    return caller


def _join_events(
    options: EventalignOptions,
    parts: list[DonePart],
    loader: Loader,
    chemistry: Chemistry,
    advance: Callable[[int], object],
) -> AlignmentStage:
    aligner = ReferenceAligner(options, chemistry, loader.windows)
    aligner.close()  # only what it knows is wanted
    alignments = loader.alignments
    if options.output_format == "parquet":
        layout = eventalign.layout_of(options)
        with (
            complete_output(options.output) as file,
            EventalignArrow(file, alignments.contigs, aligner.model, layout, options.threads) as table,
        ):
            for part in parts:
                append_arrow(part, table)
                advance(1)
    elif options.m6anet_json is not None:
        with eventalign.m6anet_json(options, loader) as sites:
            for part in parts:
                with part.open(M6ANET) as file:
                    for found in sites_of_part(file, len(alignments.contigs)):
                        sites.write(found)
                advance(1)
    elif eventalign.writes_bam(options):
        with (
            complete_output(options.output) as file,
            SamToBam(file, options.output, alignments.header, options.threads) as bam,
        ):
            lines = WholeLines(bam)
            for part in parts:
                part.append_rows(lines)
                advance(1)
    else:
        join_tables(parts, options.output, options.threads, advance)
    if options.summary is not None:
        join_texts(parts, SUMMARY, options.summary, options.threads)
    return aligner
