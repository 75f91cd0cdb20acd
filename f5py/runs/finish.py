"""End of a run in parts: concatenate the parts into the final outputs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from f5py.compute.diagnosis import RunCounts
from f5py.errors import F5pyError
from f5py.io.bam.alignments import RecordCounts
from f5py.io.files.atomic_write import named_together
from f5py.io.files.inputs_in_use import inputs_in_use
from f5py.io.files.output import Outputs
from f5py.messages import console
from f5py.messages.console import obeys_strict
from f5py.messages.progress import progress
from f5py.options.declaration import paths_read
from f5py.outputs.sink import Sink, Sinks
from f5py.runs.outcome import Outcome
from f5py.runs.parts.done_part import DonePart, EarlyText, check_processors, read_part
from f5py.runs.parts.plan import Plan
from f5py.runs.parts.text_chain import give_name
from f5py.runs.recipe import MappedReadsRecipe, Recipe, Run, failed_reads
from f5py.runs.report import write_reports

_SHOWN = 5
#: A plan, and the number of one of its parts.
PlannedPart = tuple[Plan, int]


@obeys_strict
def finish(options: Any, recipe: MappedReadsRecipe, plan: Plan, early: EarlyText | None = None) -> RunCounts:
    """Write the outputs of a plan, in the folder that its paths are relative to.

    `early` has the rows of parts collected so far. Raises `F5pyError`, also for missing or damaged parts and changed
    inputs.
    """
    if missing := plan.unfinished():
        shown = ", ".join(map(str, missing[:_SHOWN])) + (", ..." if len(missing) > _SHOWN else "")
        raise F5pyError(
            f"{plan.folder}: {len(missing)} of {len(plan)} parts are not done ({shown}); run them: f5py run-part "
            f"{plan.folder}"
        )
    plan.check_inputs()
    return join_parts(recipe, options, [(plan, number) for number in range(len(plan))], early=early)


def join_parts(
    recipe: MappedReadsRecipe,
    options: Any,
    parts: list[PlannedPart],
    tells: bool = True,
    early: EarlyText | None = None,
    do: Callable[[list[str]], object] = lambda warnings: None,
) -> RunCounts:
    """Concatenate parts, given as plan and number, into the outputs of one run.

    `options` are those of a run over everything. `do` computes the parts once the inputs are open, and is called with
    the warnings until then. The results are reported with `tells`.
    """
    with ExitStack() as inputs, inputs_in_use(paths_read(options)), console.recorded_warnings() as warnings:
        loader, chemistry = recipe.open(options, inputs)
        do(warnings)
        with progress("parts") as bar:
            bar.expect(2 * len(parts))
            done, outcome, any_known = read_parts(parts, lambda: recipe.statistics(options, loader), bar.advance)
            if tells:
                loader.check_any_known(any_known, outcome.skipped)
            stage = recipe.stage(options, loader, chemistry)
            stage.close()  # only what it knows is wanted
            run = Run(options, loader, stage, threading.Event())
            with failed_reads_left(run, done):
                if tells:
                    recipe.report(run, outcome, warnings)
                try:
                    join_outputs(recipe, run, done, bar.advance, early)
                except F5pyError as problem:
                    recipe.report_failure(run, outcome, warnings, str(problem))
                    raise
        if tells:
            recipe.report_results(options, outcome.counts)
        elif options.report:
            write_reports(options, stage, loader, outcome, warnings)
    return outcome.counts


@contextmanager
def failed_reads_left(run: Run, parts: list[DonePart]) -> Iterator[None]:
    """Write the requested list of the parts' failed reads if the block raises."""
    try:
        yield
    except F5pyError:
        with Outputs() as outputs:
            _append(outputs, list(failed_reads(run.options)), parts)
        raise


def read_parts(
    parts: list[PlannedPart], new_statistics: Callable[[], Any], advance: Callable[[int], object] = lambda n: None
) -> tuple[list[DonePart], Outcome, bool]:
    """Return the parts with checked files, their sums, and whether any read has bases."""
    outcome, any_known = Outcome(RunCounts(), RecordCounts(), new_statistics()), False
    done = []
    for plan, number in parts:
        record = read_part(plan, number, new_statistics())
        done.append(DonePart(plan, number, record))
        any_known = any_known or record.has_known
        outcome.add(record.outcome)
        advance(1)
    check_processors(done)
    return done, outcome, any_known


def join_outputs(
    recipe: Recipe,
    run: Run,
    parts: list[DonePart],
    advance: Callable[[int], object] = lambda n: None,
    early: EarlyText | None = None,
) -> None:
    """Concatenate the parts into the final outputs.

    Raises `InputFileError` for an unreadable part, or `OutputFileError`. `advance` is called with 1 after each part.
    """
    with Outputs() as outputs:
        all_sinks = list(recipe.sinks(run))
        tables = [sink for sink in all_sinks if sink.can_be_renamed and parts]
        with named_together():
            _append(outputs, [sink for sink in all_sinks if sink not in tables], parts, advance)
            # last, as a table that is complete in one file gets its name at once
            _append(outputs, [sink for sink in tables if not _has_name(parts, sink.path, early)], parts)


def _append(
    outputs: ExitStack, opened: list[Sink], parts: list[DonePart], advance: Callable[[int], object] = lambda n: None
) -> None:
    sinks = Sinks(opened)
    outputs.push(sinks.abandon)
    for part in parts:
        sinks.append(part)
        advance(1)
    sinks.finish()


def _has_name(parts: list[DonePart], output: str, early: EarlyText | None) -> bool:
    """Rename the table of all parts to the output, if it is one file."""
    folder = parts[0].plan.folder
    if any(part.plan.folder != folder for part in parts):
        return False
    for part in parts:
        part.check_table()
    extents = [part.record.table for part in parts]
    return give_name(folder, extents, output) or (early is not None and early.give_name(extents, output))
