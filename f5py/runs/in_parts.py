"""Runs in parts: plan, compute unfinished parts, and join."""

import os
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from f5py.compute.diagnosis import RunCounts
from f5py.core.windows import Windows
from f5py.errors import UsageError
from f5py.io.files.atomic_write import is_direct
from f5py.io.files.disk import working_folder
from f5py.io.remote import is_url
from f5py.messages import console
from f5py.options import declarations
from f5py.options.declaration import Kind
from f5py.options.shared import SIGNALS
from f5py.options.signal_commands import PartOptions, RunPartOptions
from f5py.pipeline.inputs import open_alignments, with_local_inputs
from f5py.runs.clusters.dask_cluster import Cluster, n_local_workers
from f5py.runs.engines import work_on, work_on_here
from f5py.runs.finish import finish, join_parts
from f5py.runs.gpu_workers import GpuWorkers
from f5py.runs.parts.done_part import EarlyText
from f5py.runs.parts.plan import Plan, folder_beside, unfinished_folder
from f5py.runs.recipe import MappedReadsRecipe

_WHO = "plan"
#: About how many bytes or records of alignments a part has, unless the user says how many parts there are.
_BYTES_PER_PART, _RECORDS_PER_PART = 1 << 24, 1 << 12
_MOST_CHOSEN = 10_000
#: Workers that are known get more and smaller parts, so that they end together.
_PARTS_PER_WORKER, _LEAST_RECORDS = 24, 512


def run_in_parts(recipe: MappedReadsRecipe, options: Any) -> RunCounts:
    """Run the unfinished parts of a command and join them; return the read counts by outcome.

    Counts are empty if only a plan is requested. Raises `F5pyError`; finished parts stay.
    """
    options = _resolve(recipe, options)
    folder = _folder(recipe, options)
    only_plan = options.partitions is not None and options.engine is None and not options.resume
    if only_plan:
        n_parts = len(make_plan(recipe, options, folder))
        _advise(options)
        console.note(
            _WHO,
            f"{n_parts} parts planned; work on each: f5py run-part {shlex.quote(folder)} 0 (to {n_parts - 1}), in any "
            f"order and on any machine, then: f5py finish {shlex.quote(folder)}",
        )
        return RunCounts()
    with ExitStack() as ending:
        plan = _plan_to_go_on_with(recipe, options, folder)
        cluster = None
        if options.engine == "dask" and (plan is None or plan.unfinished()):
            cluster = ending.enter_context(Cluster())
            cluster.start(options)  # its processes start while the plan is made
        if plan is None:
            plan = make_plan(recipe, options, folder)
        early = ending.enter_context(EarlyText(plan, options))
        if missing := plan.unfinished():
            work_on(recipe, options, plan, missing, cluster, early)
        if recipe.keeps_command_line:
            options = replace(options, command_line=plan.options["command_line"])
        counts = finish(options, recipe, plan, early)
    if options.resume:
        plan.remove_parts()
    return counts


def _plan_to_go_on_with(recipe: MappedReadsRecipe, options: Any, folder: str) -> Plan | None:
    if not Plan.is_there(folder):
        return None
    plan = Plan.load_same(folder, recipe.command, options)
    n_done = len(plan) - len(plan.unfinished())
    console.info(_WHO, f"{n_done} of {len(plan)} parts are done; going on with the others")
    return plan


def run_part(options: RunPartOptions, recipe: MappedReadsRecipe, plan: Plan) -> None:
    """Complete the named parts of a plan, or all unfinished ones. Raises `F5pyError`; finished parts stay."""
    named = _numbers(options.parts, len(plan))
    numbers = plan.unfinished() if not named else [number for number in named if not plan.is_done(number)]
    if done := len(named) - len(numbers) if named else 0:
        console.info(_WHO, f"{done} of these parts {'is' if done == 1 else 'are'} done already")
    if not numbers:
        return
    given = {name: getattr(options, name) for name in ("threads", "cuda_dev_id")}
    given = {name: value for name, value in given.items() if value is not None}
    if options.gpu is not None or options.disable_cuda is not None:
        given |= {"gpu": options.gpu, "disable_cuda": options.disable_cuda}
    with working_folder(plan.working_folder):
        planned = replace(plan.run_options(), **given)
        plan.check_inputs()
        work_on_here(recipe, planned, plan, numbers)


def run_on_gpus(recipe: MappedReadsRecipe, options: Any, of_workers: Sequence[Any]) -> RunCounts:
    """Run a command in parts of a temporary plan, with a worker process for each element of `of_workers`."""
    recipe.check_parts(options)
    files = [path for path in recipe.results(options) if path is not None and not is_direct(path)]
    with ExitStack() as ending:
        folder = ending.enter_context(unfinished_folder(files[0] if files else None))
        workers = ending.enter_context(GpuWorkers(recipe, of_workers))  # ends before its folder goes
        plan = replace(make_plan(recipe, options, folder, workers.n_parts), is_kept=False)
        early = ending.enter_context(EarlyText(plan, options))
        workers.begin(plan)
        parts = [(plan, number) for number in range(len(plan))]
        return join_parts(recipe, options, parts, early=early, do=partial(workers.finish, options, early))


def make_plan(recipe: MappedReadsRecipe, options: Any, folder: str, n_parts: int | None = None) -> Plan:
    """Divide the alignments, and write the plan."""
    with ExitStack() as files:
        # the others are not needed for a plan
        local = with_local_inputs(replace(options, reads=None, **dict.fromkeys(SIGNALS, ())), files)
        alignments = open_alignments(local)
        files.callback(alignments.close)
        windows = Windows.parse(options.window, alignments.contigs) if options.window else None
        n_parts = n_parts or options.partitions
        if n_parts is None:
            size = 0 if alignments.is_pipe else os.path.getsize(local.bam)
            n_records = alignments.expected_records() or 0
            n_parts = max(-(-size // _BYTES_PER_PART), -(-n_records // _RECORDS_PER_PART), 1)
            if options.engine == "dask" and options.scheduler is None:
                n_of_workers = _PARTS_PER_WORKER * n_local_workers(options)
                n_parts = max(n_parts, min(n_of_workers, n_records // _LEAST_RECORDS))
            n_parts = min(n_parts, _MOST_CHOSEN)
        ranges = alignments.ranges(n_parts, windows, recipe.shows_record_numbers(options))
    one_run = as_one_run(recipe, options)
    return Plan.make(folder, recipe.command, one_run, recipe.inputs(options), ranges)


def as_one_run(recipe: MappedReadsRecipe, options: Any) -> Any:
    """Return the options of the equivalent run without parts."""
    defaults: dict[str, Any] = {name: option.default for name, option in declarations(PartOptions).items()}
    if recipe.keeps_command_line:
        defaults["command_line"] = _without_plan(options.command_line)
    return replace(options, **defaults)


def _advise(options: Any) -> None:
    """Warn of work that each job repeats."""
    reads = options.reads or options.bam
    for option, of_index, given in (("--fast5", "-d", options.fast5), ("--pod5", "--pod5", options.pod5)):
        folders = list(filter(os.path.isdir, given))
        if folders and not is_url(reads):
            index = shlex.join(["f5py", "index", *(word for folder in folders for word in (of_index, folder)), reads])
            console.info(
                _WHO,
                f"each job will list the reads of all files below {option} {' and '.join(folders)}; to list them once: "
                f"{index}, and a plan with -r {shlex.quote(reads)}",
            )


def _resolve(recipe: MappedReadsRecipe, options: Any) -> Any:
    """Resolve output formats from names; raise for contradicting options."""
    options = recipe.resolved(options)
    recipe.check_parts(options)
    if is_url(options.plan):
        raise UsageError(f"--plan {options.plan}: name a folder of a file system that all machines see")
    if options.bam == "-":
        raise UsageError("-b -: standard input cannot be read in parts; name a BAM file")
    if options.read_ids == "-":
        raise UsageError("--read-ids -: each part reads the list, so it cannot come from standard input; name a file")
    return options


def _folder(recipe: MappedReadsRecipe, options: Any) -> str:
    if options.plan is not None:
        return str(options.plan)
    files = [path for path in recipe.results(options) if path not in (None, "-")]
    return folder_beside(files[0] if files else None, "name a file with -o, or give --plan FOLDER")


def _without_plan(command_line: str) -> str:
    """Remove the options of parts from a command line."""
    kinds = {name: option.kind for option in declarations(PartOptions).values() for name in option.names}
    kept = []
    words = iter(shlex.split(command_line))
    for word in words:
        name, equals, _ = word.partition("=")
        if name not in kinds:
            kept.append(word)
        elif kinds[name] is not Kind.FLAG and not equals:
            next(words, None)
    return shlex.join(kept)


def _numbers(texts: tuple[str, ...], n_parts: int) -> list[int]:
    """Parse part numbers, unique and ascending."""
    numbers: set[int] = set()
    for text in texts:
        first, dash, last = text.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise UsageError(f"{text}: is neither the number of a part nor a range such as 8-15")
        named = range(int(first), int(last or first) + 1)
        if not named or named[-1] >= n_parts:
            raise UsageError(f"{text}: there are parts 0 to {n_parts - 1}")
        numbers.update(named)
    return sorted(numbers)
