"""Runs over signals, and recipes: options, inputs, compute stage and outputs of each command.

`call-methylation`, `eventalign` and `resquiggle` each have a recipe. Runs, parts, watching a folder and engines are
independent of the command.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

from f5py.compute.alignment import AlignmentStage, begin_gpu
from f5py.compute.chemistry import Chemistry
from f5py.compute.diagnosis import RunCounts
from f5py.compute.gpu.device import may_be_there, n_devices_likely
from f5py.compute.gpu.expected_work import expected_bases
from f5py.compute.statistics import RunStatistics
from f5py.errors import F5pyError, OutputFileError, UsageError
from f5py.io.files.output import Outputs
from f5py.jit.warm_up import warm_up
from f5py.mapping import open_index_bases
from f5py.messages import console
from f5py.messages.console import obeys_strict
from f5py.options.input_names import SEQUENCE_SUFFIX
from f5py.options.shared import AlignmentOptions, MappedReadsOptions, device_numbers
from f5py.outputs.failed_reads import FailedReads, UltraReads
from f5py.outputs.sink import Sink, Sinks
from f5py.pipeline.flow import process
from f5py.pipeline.inputs import open_inputs, paths_of_inputs, urls
from f5py.pipeline.loader import Loader
from f5py.pipeline.sequence_loader import SequenceLoader
from f5py.runs.compiled_stages import OF_SIGNALS, STAGES
from f5py.runs.outcome import Outcome, note_results, report_run
from f5py.runs.parts.job import Job, WriteBatch
from f5py.runs.parts.part_outputs import PartOutputs
from f5py.threads.pool import share_heap

OptionsOfRun = TypeVar("OptionsOfRun", bound=AlignmentOptions)
MappedOptions = TypeVar("MappedOptions", bound=MappedReadsOptions)
LoaderOfRun = TypeVar("LoaderOfRun", Loader, SequenceLoader)
StageOfRun = TypeVar("StageOfRun", bound=AlignmentStage)
#: Consumer of the rows of a table, as a pyarrow.Table.
TableCallback = Callable[[Any], None]
#: Another GPU is used for every so many bases: with fewer its start takes longer than it saves.
BASES_PER_GPU = 400e6


def run_whole(recipe: Recipe, options: Any, on_table: TableCallback | None = None) -> RunCounts:
    """Run a command as a whole; return the read counts by outcome.

    Raises `F5pyError`; outputs so far are valid and in order. `options` are resolved by the recipe. `on_table` replaces
    the table's output.
    """
    with _run_in_context(recipe, options, on_table) as (_, outcome, _):
        recipe.report_results(options, outcome.counts, on_table is not None)
    return outcome.counts


@obeys_strict
def run_parts(options: Any, recipe: Recipe, job: Job) -> tuple[Run, Outcome, list[str]]:
    """Run parts of a plan with its options. Return the run with closed inputs, its outcome, and the warnings."""
    try:
        with _run_in_context(recipe, options, None, job) as ended:
            return ended
    except KeyboardInterrupt:
        console.info("plan", "the parts that are done are kept; the same command continues")
        raise


@contextmanager
def _run_in_context(
    recipe: Recipe, options: Any, on_table: TableCallback | None, job: Job | None = None
) -> Iterator[tuple[Run, Outcome, list[str]]]:
    """Run everything, or the parts of a job; warnings are recorded until the block ends."""
    of_all = job is None or job.of_all
    with ExitStack() as workers, ExitStack() as inputs:
        loader, stage = open_run(recipe, options, of_all, workers, inputs)
        stage.prepare(recipe.statistics(options, loader), job is None or job.checks_chemistry)
        warnings = workers.enter_context(console.recorded_warnings())
        if job is None or job.checks_chemistry:  # once in a run
            console.note(recipe.who, stage.facts.line if options.verbose else stage.facts.short_line)
        estimates_total = stage.use_gpu(loader, of_all)
        with Outputs() as outputs:
            run = Run(options, loader, stage, outputs.stopping, on_table)
            write: WriteBatch
            finish: Callable[[], None]
            parts: Any = None
            if job is None:
                left = recipe.state_after_error(options)
                sinks = Sinks(recipe.sinks(run))
                outputs.push(sinks.abandon)
                write, finish = sinks.write, sinks.finish
            else:
                left = "the parts before are done" if job.plan.is_kept else "no file was made"
                parts, queue = job.parts_of(loader)
                of_parts = PartOutputs(
                    job.plan, queue, stage,
                    lambda part: Sinks(recipe.sinks(run), part), lambda: recipe.statistics(options, loader),
                )  # fmt: skip
                outputs.push(of_parts.abandon)
                write, finish = of_parts.write, of_parts.finish
            started = time.perf_counter()
            try:
                batches = loader.batches(parts, estimates_total)
                seconds = process(options, stage, batches, loader.stop, inputs, write, recipe.who, left)
            except F5pyError as problem:
                if job is None:
                    outcome = recipe.outcome(stage, loader, time.perf_counter() - started)
                    recipe.report_failure(run, outcome, warnings, str(problem))
                raise
            outcome = recipe.outcome(stage, loader, seconds)
            if job is None:
                try:
                    recipe.report(run, outcome, warnings)
                except OutputFileError:  # a report that fails takes no result with it
                    finish()
                    raise
            try:
                finish()
            except F5pyError as problem:
                if job is None:
                    recipe.report_failure(run, outcome, warnings, str(problem))
                raise
        yield run, outcome, warnings


def open_run(
    recipe: Recipe, options: Any, of_all: bool, workers: ExitStack, inputs: ExitStack
) -> tuple[Any, AlignmentStage]:
    """Open the inputs of a run, and make its compute stage; a first run compiles. Raises `F5pyError`.

    The run covers the whole input with `of_all`. The stacks close the stage and the inputs.
    """
    share_heap()
    with warm_up({name: STAGES[name] for name in (*recipe.kernels(options), *OF_SIGNALS)}):
        begin_gpu(options, of_all)
        loader, chemistry = recipe.open(options, inputs)
    stage = recipe.stage(options, loader, chemistry)
    workers.callback(stage.close)
    return loader, stage


@dataclass(frozen=True)
class Run(Generic[OptionsOfRun, LoaderOfRun, StageOfRun]):
    """An open run, from which sinks are made."""

    options: OptionsOfRun
    loader: LoaderOfRun
    stage: StageOfRun
    stopping: threading.Event  # set when the writer is to stop before its next piece
    on_table: TableCallback | None = None  # takes the place of the table's output


class Recipe(Generic[OptionsOfRun, LoaderOfRun, StageOfRun]):
    """Recipe of one command; subclasses have no state."""

    command: ClassVar[str]
    who: ClassVar[str] = "meth_main"
    keeps_command_line: ClassVar[bool] = False

    def resolved(self, options: OptionsOfRun, to_callback: bool = False) -> OptionsOfRun:
        """Return the options with output formats resolved from names. Raises `F5pyError` for contradictions.

        With `to_callback` the table goes to a function.
        """
        raise NotImplementedError

    def inputs(self, options: OptionsOfRun) -> list[str | None]:
        """Return the paths of all input files."""
        raise NotImplementedError

    def results(self, options: OptionsOfRun) -> list[str | None]:
        """Return the outputs with folders that may hold the parts of ``--resume``, the preferred first."""
        return [options.output]

    def check_parts(self, options: OptionsOfRun) -> None:
        """Raise `F5pyError` for outputs that do not support parts."""

    def kernels(self, options: OptionsOfRun) -> list[str]:
        """Return the further stages of `f5py.runs.compiled_stages.STAGES` that a first run compiles."""
        return []

    def open(self, options: OptionsOfRun, inputs: ExitStack) -> tuple[LoaderOfRun, Chemistry]:
        """Open the inputs, to be closed by the stack."""
        raise NotImplementedError

    def stage(self, options: OptionsOfRun, loader: LoaderOfRun, chemistry: Chemistry) -> StageOfRun:
        """Make the compute stage."""
        raise NotImplementedError

    def statistics(self, options: OptionsOfRun, loader: LoaderOfRun) -> RunStatistics | None:
        """Return empty statistics for a requested report."""
        return None

    def sinks(self, run: Run[OptionsOfRun, LoaderOfRun, StageOfRun]) -> Iterator[Sink]:
        """Yield the outputs, unopened."""
        raise NotImplementedError

    def state_after_error(self, options: OptionsOfRun) -> str:
        """Describe the state of the output after an error."""
        return "the output is incomplete"

    def shows_record_numbers(self, options: OptionsOfRun) -> bool:
        """Return whether an output has the numbers of records in the whole file."""
        return False

    def outcome(self, stage: StageOfRun, loader: LoaderOfRun, seconds: float) -> Outcome:
        """Return the sums of a finished run; `seconds` is the compute time."""
        raise NotImplementedError

    def report(self, run: Run[OptionsOfRun, LoaderOfRun, StageOfRun], outcome: Outcome, warnings: list[str]) -> None:
        """Print the summary of a run, and write its report, before its outputs are complete.

        Raises `F5pyError` if the run has failed, and should leave no results.
        """
        raise NotImplementedError

    def report_failure(
        self, run: Run[OptionsOfRun, LoaderOfRun, StageOfRun], outcome: Outcome, warnings: list[str], problem: str
    ) -> None:
        """Write the report of a run that ended by an error."""

    def report_results(self, options: OptionsOfRun, counts: RunCounts, to_callback: bool = False) -> None:
        """Report the results and their files; with `to_callback` the table went to a function."""
        raise NotImplementedError


class MappedReadsRecipe(Recipe[MappedOptions, Loader, StageOfRun]):
    """Recipe for reads of an alignment file, which can be divided in advance."""

    #: What the results are called.
    words: ClassVar[str]

    def inputs(self, options: MappedOptions) -> list[str | None]:
        return paths_of_inputs(options)

    def open(self, options: MappedOptions, inputs: ExitStack) -> tuple[Loader, Chemistry]:
        return open_inputs(options, inputs, sequences_of=open_index_bases, **self.loading(options))

    def loading(self, options: MappedOptions) -> dict[str, Any]:
        """Return the fields of `Loader` that differ from the defaults."""
        return {}

    def can_take_parts(self, options: MappedOptions) -> bool:
        """Return whether a run can process parts one by one, before later ones are known."""
        return not self.loading(options).get("with_preceding", False)

    def outcome(self, stage: StageOfRun, loader: Loader, seconds: float) -> Outcome:
        return Outcome.of(stage, loader, seconds)

    def report(self, run: Run[MappedOptions, Loader, StageOfRun], outcome: Outcome, warnings: list[str]) -> None:
        def write(problem: str | None) -> None:
            from f5py.runs.report import write_reports

            write_reports(run.options, run.stage, run.loader, outcome, warnings, problem)

        report_run(run.options, run.stage, run.loader, outcome, write)

    def report_failure(
        self, run: Run[MappedOptions, Loader, StageOfRun], outcome: Outcome, warnings: list[str], problem: str
    ) -> None:
        from f5py.runs.report import write_reports

        if run.options.report:
            with suppress(OutputFileError):  # the problem before is worth more
                write_reports(run.options, run.stage, run.loader, outcome, warnings, problem)

    def report_results(self, options: MappedOptions, counts: RunCounts, to_callback: bool = False) -> None:
        note_results(self.who, options, counts, self.words, to_callback)


def ultra_reads(run: Run[MappedOptions, Loader, StageOfRun]) -> Iterator[Sink]:
    """Yield the requested file of very long reads."""
    if run.options.skip_ultra is not None:
        yield UltraReads(run.options.skip_ultra, run.loader.alignments.header)


def failed_reads(options: AlignmentOptions) -> Iterator[Sink]:
    """Yield the requested list of failed reads."""
    if options.failed_reads is not None:
        yield FailedReads(options.failed_reads, options)


def options_of_workers(recipe: MappedReadsRecipe, options: Any) -> list[Any]:
    """Return the options of a run, or those of a worker for each GPU if that pays.

    Inputs that only one process can read, and runs that cannot take parts one by one, have one process for all GPUs.
    """
    if not may_be_there(options):
        return [options]
    numbers = device_numbers(options.cuda_dev_id)
    numbers = list(range(n_devices_likely())) if numbers is None else numbers
    can_have_parts = recipe.can_take_parts(options) and _can_be_planned(options)
    if len(numbers) < 2 or not can_have_parts or not _can_be_opened_twice(options):
        return [options]
    bases = expected_bases(options)
    if bases is not None:
        numbers = numbers[: max(int(bases / BASES_PER_GPU), 1)]
    elif options.gpu_use != "on":
        return [options]
    if len(numbers) == 1:
        return [replace(options, cuda_dev_id=str(numbers[0]))]
    share, left = divmod(options.threads, len(numbers))
    return [
        replace(options, cuda_dev_id=str(n), threads=max(share + (i < left), 1), gpu="on", disable_cuda=None)
        for i, n in enumerate(numbers)
    ]


def _can_be_planned(options: Any) -> bool:
    """Return whether no option excludes a plan."""
    try:
        replace(options, plan=options.plan or "parts", resume=False)
    except UsageError:
        return False
    return True


def _can_be_opened_twice(options: Any) -> bool:
    """Return whether the inputs are files that several processes can read, none held in memory."""
    if urls(options) or not os.path.isfile(options.bam) or getattr(options, "read_ids", None) == "-":
        return False
    return options.reads is None or os.path.exists(options.reads + SEQUENCE_SUFFIX)
