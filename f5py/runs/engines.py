"""Engines for the parts of a plan: this process, or workers of dask or Slurm."""

import gc
import shlex
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

from f5py.errors import F5pyError, MissingDependencyError
from f5py.io.files.disk import working_folder
from f5py.messages import console
from f5py.messages.progress import progress
from f5py.options import Group, declarations
from f5py.runs.clusters.dask_cluster import Cluster
from f5py.runs.clusters.slurm import slurm_script
from f5py.runs.gpu_workers import GpuWorkers
from f5py.runs.parts.done_part import EarlyText, PartsProgress
from f5py.runs.parts.job import ClaimingJob, Claims, PartJob
from f5py.runs.parts.plan import Plan
from f5py.runs.recipe import MappedReadsRecipe, options_of_workers, run_parts
from f5py.threads.pool import keep_freed_memory

_WHO = "engine"
#: How often a part is tried again, on the same or another worker.
_RETRIES = 3
_SHOWN = 3
#: So many runs of workers that take parts in turn are begun again after an error.
_MOST_FAILED = 16
#: How often it is looked which parts are done.
_LOOK_SECONDS = 0.2


def work_on(
    recipe: MappedReadsRecipe,
    options: Any,
    plan: Plan,
    numbers: list[int],
    cluster: Cluster | None,
    early: EarlyText,
) -> None:
    """Complete parts of a plan by the engine of its `options`.

    Raises `F5pyError` if a part fails; finished parts stay. `early` collects the rows of finished parts meanwhile.
    """
    if cluster is not None:
        _by_dask(recipe, options, plan, numbers, cluster, early)
    elif options.engine == "slurm":
        _by_slurm(options, plan, numbers)
    elif len(of_workers := options_of_workers(recipe, options)) > 1:
        with GpuWorkers(recipe, of_workers) as workers:
            workers.begin(plan)
            workers.finish(options, early, [])
    else:
        work_on_here(recipe, options, plan, numbers)
    if missing := plan.unfinished():
        raise F5pyError(
            f"{plan.folder}: {len(missing)} parts are not done, such as {missing[0]}; the same command again goes on "
            "with them"
        )


def work_on_here(recipe: MappedReadsRecipe, options: Any, plan: Plan, numbers: list[int]) -> None:
    """Complete parts in this process, in the folder that the plan's paths are relative to."""
    run_parts(options, recipe, PartJob(plan, numbers, checks_chemistry=0 in numbers))
    which = f"part {numbers[0]} is" if len(numbers) == 1 else f"{len(numbers)} parts are"
    _note(plan, which)


def _note(plan: Plan, which: str) -> None:
    console.note("plan", f"{which} done, {len(plan.unfinished())} of {len(plan)} are not")


def _by_dask(
    recipe: MappedReadsRecipe, options: Any, plan: Plan, numbers: list[int], cluster: Cluster, early: EarlyText
) -> None:
    """Complete parts by the workers of a dask cluster, several at a time each."""
    free = {
        name: getattr(options, name)
        for name, option in declarations(type(options)).items()
        if option.is_free and option.group is not Group.PARTS
    }
    client = cluster.client()
    with ExitStack() as bars:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        has_gpus = options.gpu_use != "off" and any("GPU" in worker["resources"] for worker in workers)
        console.info(_WHO, f"{len(workers)} workers of dask{', with GPUs' if has_gpus else ''}")
        checks = bars.enter_context(ThreadPoolExecutor(1, "f5py-check"))
        bar = bars.enter_context(progress("parts"))
        bar.expect(len(numbers))
        ended = threading.Event()
        bars.callback(ended.set)
        checks.submit(_follow, PartsProgress(plan, early, bar.advance), ended)
        how: dict[str, Any] = {"retries": _RETRIES, "pure": False, "resources": {"GPU": 1} if has_gpus else None}

        def submit(given: Any, key: str, priority: int) -> Any:
            key = f"{plan.folder}-{key}"
            return client.submit(_work, recipe, str(plan.folder), free, given, key=key, priority=priority, **how)

        if options.scheduler is None and recipe.can_take_parts(options):
            _take_in_turn(cluster.module.as_completed, submit, plan, numbers, len(workers))
            numbers = [number for number in numbers if not plan.is_done(number)]
        if numbers:
            _work_on_shares(cluster.module.as_completed, submit, plan, _divide(numbers, max(len(workers), 1)))
        cluster.begin_to_close()  # the outputs of the parts can be joined meanwhile


def _follow(parts: PartsProgress, ended: threading.Event) -> None:
    """Follow the parts until the event is set."""
    import f5py.jit.kernel  # noqa: F401 - which joining needs, and would wait for

    while not ended.wait(_LOOK_SECONDS):
        parts.look()
    parts.look()


#: Submits parts, or claims to them, with a key and a priority to dask; returns the future.
_Submit = Callable[[Any, str, int], Any]


def _take_in_turn(as_completed: Any, to_dask: _Submit, plan: Plan, numbers: list[int], n_workers: int) -> None:
    """Let each worker claim parts one by one, in a single run, until all are claimed.

    Unfinished claimed parts are left, by a worker that has died or failed; after an error another run continues.
    """
    with Claims(plan, numbers) as claims:

        def submit(i: int) -> Any:
            return to_dask(claims, f"{claims.name}-{i}", -i)

        futures, n_submitted = as_completed([submit(i) for i in range(n_workers)]), n_workers
        for future in futures:
            is_complete = future.status == "finished" and not future.result()
            if not is_complete and n_submitted < n_workers + _MOST_FAILED:
                futures.add(submit(n_submitted))
                n_submitted += 1


def _work_on_shares(as_completed: Any, to_dask: _Submit, plan: Plan, shares_of_parts: list[list[int]]) -> None:
    """Submit groups of parts, and retry failed ones. Raises `F5pyError` if some fail for good."""
    tries = Counter(number for share in shares_of_parts for number in share)
    shares: dict[str, list[int]] = {}

    def submit(share: list[int]) -> Any:
        future = to_dask(share, f"{share[0]}-{tries[share[0]]}", -len(shares) - 1)
        shares[future.key] = share
        return future

    futures = as_completed([submit(share) for share in shares_of_parts])
    failures: dict[str, list[int]] = {}
    for future in futures:
        share = shares[future.key]
        has_ended = future.status == "finished"
        why = future.result() if has_ended else str(future.exception())
        for number in [number for number in share if not plan.is_done(number)] if why else []:
            # alone: a part that fails takes the others of its share with it
            if len(share) > 1 or (has_ended and tries[number] <= _RETRIES):
                tries[number] += 1
                futures.add(submit([number]))
            else:
                failures.setdefault(why, []).append(number)
    if failures:
        causes = [f"part {parts[0]}: {why}" for why, parts in failures.items()]
        more = f"; {len(causes) - _SHOWN} more causes" if len(causes) > _SHOWN else ""
        n_failed = sum(map(len, failures.values()))
        raise F5pyError(f"{n_failed} parts could not be done ({'; '.join(causes[:_SHOWN])}{more})")


def _divide(numbers: list[int], n_workers: int) -> list[list[int]]:
    """Divide parts into tasks: large ones first, to keep threads busy, then small ones."""
    shares, begin = [], 0
    while begin < len(numbers):
        size = max((len(numbers) - begin) // (2 * n_workers), 1)
        shares.append(numbers[begin : begin + size])
        begin += size
    return shares


def _work(recipe: MappedReadsRecipe, folder: str, free: dict[str, Any], given: list[int] | Claims) -> str:
    """Complete parts in a worker; return the error or "", as dask shows tracebacks of exceptions."""
    keep_freed_memory()  # dask starts its workers with small limits
    # dask lists the frames of all threads for its profile. If Python 3.11.7 collects garbage meanwhile, and that closes
    # a mapped file, the process stops for ever (gh-106883).
    collects_garbage = gc.isenabled()
    gc.disable()
    try:
        plan = Plan.load(folder)
        with working_folder(plan.working_folder):
            options = replace(plan.run_options(), **free)
            if not isinstance(given, list):
                if job := ClaimingJob(plan, given.take()):
                    run_parts(options, recipe, job)
                    _note(plan, f"{job.n_taken} parts are" if job.n_taken > 1 else "a part is")
            elif left := [number for number in given if not plan.is_done(number)]:
                work_on_here(recipe, options, plan, left)
    except F5pyError as problem:
        return str(problem)
    finally:
        if collects_garbage:
            gc.enable()
    return ""


def _by_slurm(options: Any, plan: Plan, numbers: list[int]) -> None:
    """Submit a job array and wait for it; cancel it on an interrupt."""
    if shutil.which("sbatch") is None:
        raise MissingDependencyError(
            "--engine slurm: there is no sbatch on this machine; f5py plan --print-slurm FOLDER prints the script"
        )
    script = slurm_script(plan, numbers, options.threads, options.workers, shlex.join([sys.executable, "-m", "f5py"]))
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ["sbatch", "--wait", "--parsable"], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as sbatch:
        assert sbatch.stdin is not None
        assert sbatch.stdout is not None
        assert sbatch.stderr is not None
        job = ""
        try:
            with suppress(BrokenPipeError), sbatch.stdin:
                sbatch.stdin.write(script)
            job = sbatch.stdout.readline().strip().partition(";")[0]  # the cluster may follow
            if job:
                console.info(_WHO, f"waiting for job {job} of Slurm; parts: {len(numbers)}")
            complaints = sbatch.stderr.read().strip().splitlines()
        except KeyboardInterrupt:
            sbatch.kill()
            if job:
                _cancel(job)
            raise
    if sbatch.returncode and plan.unfinished():  # else a job has failed after its part was done by another
        said = complaints[-1] if complaints else f"a job of the array {job} has failed"
        raise F5pyError(f"sbatch: {said}; its jobs write their messages to {plan.folder}/slurm-*.log")


def _cancel(job: str) -> None:
    """Cancel a Slurm job, ignoring failures."""
    with suppress(OSError):
        done = subprocess.run(["scancel", job], capture_output=True, text=True, check=False)
        if not done.returncode:
            console.info(_WHO, f"job {job} of Slurm is cancelled; the parts that are done are kept")
            return
    console.warning(_WHO, f"job {job} of Slurm could not be cancelled; it goes on")
