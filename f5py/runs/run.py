"""Run over the whole input, or over parts of a plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from f5py.compute.counts import RunCounts
from f5py.errors import F5pyError, OutputFileError
from f5py.messages import console
from f5py.messages.strict import obeys_strict
from f5py.outputs.sink import Sinks
from f5py.pipeline.flow import process
from f5py.pipeline.runner import Outputs
from f5py.runs.outcome import Outcome
from f5py.runs.parts.job import Job, WriteBatch
from f5py.runs.parts.part_outputs import outputs_of_parts
from f5py.runs.recipe import Recipe, Run, TableCallback, open_run


def run_whole(recipe: Recipe, options: Any, on_table: TableCallback | None = None) -> RunCounts:
    """Run a command as a whole; return the read counts by outcome.

    Raises `F5pyError`; outputs so far are valid and in order.

    Parameters
    ----------
    options : AlignmentOptions
        Resolved by the recipe.
    on_table : function of a pyarrow.Table, optional
        Replaces the table's output.
    """
    with _ended(recipe, options, on_table) as (_, outcome, _):
        recipe.report_results(options, outcome.counts, on_table is not None)
    return outcome.counts


@obeys_strict
def run_parts(options: Any, recipe: Recipe, job: Job) -> tuple[Run, Outcome, list[str]]:
    """Run parts of a plan with its options; return the run with closed inputs, its outcome, and the warnings."""
    try:
        with _ended(recipe, options, None, job) as ended:
            return ended
    except KeyboardInterrupt:
        console.info("plan", "the parts that are done are kept; the same command continues")
        raise


@contextmanager
def _ended(
    recipe: Recipe, options: Any, on_table: TableCallback | None, job: Job | None = None
) -> Iterator[tuple[Run, Outcome, list[str]]]:
    """Run everything, or the parts of a job; warnings are recorded until the block ends."""
    of_all = job is None or job.of_all
    given = options
    with ExitStack() as workers, ExitStack() as inputs:
        loader, stage = open_run(recipe, options, of_all, workers, inputs)
        stage.statistics = recipe.statistics(options, loader)
        warnings = workers.enter_context(console.recorded_warnings())
        if job is None or job.checks_chemistry:  # once in a run
            console.note(recipe.who, stage.facts.line)
        stage.use_gpu(loader, of_all)
        with Outputs() as outputs:
            run = Run(options, loader, stage, outputs.stopping, on_table)
            write: WriteBatch
            finish: Callable[[], None]
            if job is None:
                left = recipe.state_after_error(options)
                sinks = Sinks(recipe.sinks(run))
                outputs.push(sinks.abandon)
                write, finish = sinks.write, sinks.finish
            else:
                left = job.left
                stage.checks_chemistry = job.checks_chemistry
                write, finish = outputs_of_parts(
                    job.plan, job.parts_of(loader), stage, outputs,
                    lambda part: Sinks(recipe.sinks(run), part), lambda: recipe.statistics(options, loader),
                )  # fmt: skip
            started = time.perf_counter()
            try:
                seconds = process(options, stage, loader, inputs, write, recipe.who, left)
            except F5pyError as problem:
                if job is None:
                    outcome = recipe.outcome(stage, loader, time.perf_counter() - started)
                    recipe.report_failure(given, recipe.context(stage, loader), outcome, warnings, str(problem))
                raise
            outcome = recipe.outcome(stage, loader, seconds)
            if job is None:
                try:
                    recipe.report(given, recipe.context(stage, loader), outcome, warnings)
                except OutputFileError:  # a report that fails takes no result with it
                    finish()
                    raise
            finish()
        yield run, outcome, warnings
