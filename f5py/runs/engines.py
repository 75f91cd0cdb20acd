"""Engines that work on the parts of a plan: this process, or those that others have made."""

from __future__ import annotations

import gc
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

from f5py.errors import F5pyError, MissingDependencyError
from f5py.io.files.working_folder import working_folder
from f5py.messages import console
from f5py.messages.progress import progress
from f5py.options import Group, declarations
from f5py.runs.clusters.dask_cluster import Cluster
from f5py.runs.clusters.slurm import slurm_script
from f5py.runs.parts.done_part import check_early
from f5py.runs.parts.early_text import EarlyText
from f5py.runs.parts.job import PartJob
from f5py.runs.parts.plan import Plan
from f5py.runs.recipe import MappedReadsRecipe
from f5py.runs.run import run_parts
from f5py.threads.pool import keep_freed_memory

_WHO = "engine"
#: How often a part is tried again, on the same or another worker.
_RETRIES = 3
_SHOWN = 3


def work_on(
    recipe: MappedReadsRecipe,
    options: Any,
    plan: Plan,
    numbers: list[int],
    cluster: Cluster | None,
    early: EarlyText | None,
) -> None:
    """Work on parts until they are done.

    Parameters
    ----------
    options : MappedReadsOptions
        Those of the plan, with the engine.
    numbers : list of int
        The parts.
    cluster : Cluster, optional
        Works on them. It is ending when all parts are done.
    early : EarlyText, optional
        Takes the rows of parts that are done while the cluster works on others.

    Raises
    ------
    F5pyError
        A part cannot be done. Those that are done stay so.
    """
    if cluster is not None:
        _by_dask(recipe, options, plan, numbers, cluster, early)
    elif options.engine == "slurm":
        _by_slurm(options, plan, numbers)
    else:
        work_on_here(recipe, options, plan, numbers)
    if missing := plan.unfinished():
        raise F5pyError(
            f"{plan.folder}: {len(missing)} parts are not done, such as {missing[0]}; the same command again goes on "
            "with them"
        )


def work_on_here(recipe: MappedReadsRecipe, options: Any, plan: Plan, numbers: list[int]) -> None:
    """Work on parts in this process, in the folder that the plan's paths are relative to."""
    run_parts(options, recipe, PartJob(plan, numbers, judges_fit=0 in numbers))
    which = f"part {numbers[0]} is" if len(numbers) == 1 else f"{len(numbers)} parts are"
    console.note("plan", f"{which} done, {len(plan.unfinished())} of {len(plan)} are not")


def _by_dask(
    recipe: MappedReadsRecipe,
    options: Any,
    plan: Plan,
    numbers: list[int],
    cluster: Cluster,
    early: EarlyText | None,
) -> None:
    """Let the workers of a dask cluster do it, some parts at a time each."""
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
        how: dict[str, Any] = {"retries": _RETRIES, "pure": False, "resources": {"GPU": 1} if has_gpus else None}
        tries = Counter(numbers)
        shares: dict[str, list[int]] = {}

        def submit(share: list[int]) -> Any:
            key = f"{plan.folder}-{share[0]}-{tries[share[0]]}"
            shares[key] = share
            how["priority"] = -len(shares)
            return client.submit(_work_on_parts, recipe, str(plan.folder), share, free, key=key, **how)

        futures = cluster.module.as_completed([submit(share) for share in _shares(numbers, max(len(workers), 1))])
        import f5py.jit.kernel  # noqa: F401 - which joining needs, and would wait for

        failures: dict[str, list[int]] = {}
        checks = bars.enter_context(ThreadPoolExecutor(1, "f5py-check"))
        bar = bars.enter_context(progress("parts"))
        bar.expect(len(numbers))
        for future in futures:
            share = shares[future.key]
            has_ended = future.status == "finished"
            why = future.result() if has_ended else str(future.exception())
            failed = [number for number in share if not plan.is_done(number)] if why else []
            for number in set(share).difference(failed):
                checks.submit(check_early, plan, number)
            if early is not None:
                checks.submit(early.go_on)
            bar.advance(len(share) - len(failed))
            for number in failed:  # alone: a part that fails takes the others of its share with it
                if len(share) > 1 or (has_ended and tries[number] <= _RETRIES):
                    tries[number] += 1
                    futures.add(submit([number]))
                else:
                    bar.advance(1)
                    failures.setdefault(why, []).append(number)
        if failures:
            causes = [f"part {parts[0]}: {why}" for why, parts in failures.items()]
            more = f"; {len(causes) - _SHOWN} more causes" if len(causes) > _SHOWN else ""
            n_failed = sum(map(len, failures.values()))
            raise F5pyError(f"{n_failed} parts could not be done ({'; '.join(causes[:_SHOWN])}{more})")
        cluster.begin_to_close()  # the outputs of the parts can be joined meanwhile


def _shares(numbers: list[int], n_workers: int) -> list[list[int]]:
    """Divide parts into tasks: large ones first, as one run over several parts keeps its threads busy; then small ones.

    The workers end together then, however fast each is.
    """
    shares, begin = [], 0
    while begin < len(numbers):
        size = max((len(numbers) - begin) // (2 * n_workers), 1)
        shares.append(numbers[begin : begin + size])
        begin += size
    return shares


def _keep_garbage_while_frames_are_listed() -> None:
    """Make the listing of all threads' frames, of which dask makes its profile, safe in this process.

    Python 3.11.7 may collect garbage meanwhile, under a lock that other threads need to end. Where that closes a mapped
    file, which lets other threads run, the process stops for ever (gh-106883).
    """
    list_frames: Any = sys._current_frames
    if hasattr(list_frames, "keeps_garbage"):
        return

    def current_frames() -> dict[int, Any]:
        collects_garbage = gc.isenabled()
        gc.disable()
        try:
            return list_frames()
        finally:
            if collects_garbage:
                gc.enable()

    current_frames.keeps_garbage = True  # type: ignore[attr-defined]
    sys._current_frames = current_frames


def _work_on_parts(recipe: MappedReadsRecipe, folder: str, numbers: list[int], free: dict[str, Any]) -> str:
    """Work on parts, in a worker; return what is wrong with one or "", as dask shows a traceback of exceptions."""
    keep_freed_memory()  # dask starts its workers with small limits
    _keep_garbage_while_frames_are_listed()
    try:
        plan = Plan.load(folder)
        if numbers := [number for number in numbers if not plan.is_done(number)]:
            with working_folder(plan.working_folder):
                work_on_here(recipe, replace(recipe.options_class(**plan.options), **free), plan, numbers)
    except F5pyError as problem:
        return str(problem)
    return ""


def _by_slurm(options: Any, plan: Plan, numbers: list[int]) -> None:
    """Submit an array of jobs, and wait for it; if that is interrupted, the jobs are cancelled."""
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
        raise F5pyError(f"sbatch: {said}; its jobs write what they say to {plan.folder}/slurm-*.log")


def _cancel(job: str) -> None:
    """Cancel a job of Slurm, as far as Slurm can be reached."""
    with suppress(OSError):
        done = subprocess.run(["scancel", job], capture_output=True, text=True, check=False)
        if not done.returncode:
            console.info(_WHO, f"job {job} of Slurm is cancelled; the parts that are done are kept")
            return
    console.warning(_WHO, f"job {job} of Slurm could not be cancelled; it goes on")
