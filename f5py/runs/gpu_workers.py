"""Worker processes with a GPU each for the parts of a plan.

The interpreter of one process is slower than a GPU: so each GPU has a process, with a fraction of the threads.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from f5py.compute.alignment import begin_gpu
from f5py.errors import F5pyError, MissingDependencyError
from f5py.io.signals.helper_process import HUNG_UP, HelperProcess, send
from f5py.messages import console
from f5py.messages.progress import progress
from f5py.runs.parts.done_part import EarlyText, PartsProgress
from f5py.runs.parts.job import ClaimingJob, Claims, PartJob
from f5py.runs.parts.plan import Plan
from f5py.runs.recipe import MappedReadsRecipe, run_parts

_WHO = "gpu"
#: So that the workers end together.
_PARTS_PER_GPU = 12
#: Besides warnings, the notes of workers that are passed on: those on GPUs, and those on the whole run.
_NOTED = ("init_cuda",)
#: How often finished parts are looked for.
_LOOK_SECONDS = 0.1
#: How long the end of a process that has hung up is waited for.
_END_SECONDS = 0.5


class GpuWorkers:
    """Preloaded worker processes, one for each element of `options`; a context manager that ends them.

    Raises `MissingDependencyError` if they cannot be started.
    """

    def __init__(self, recipe: MappedReadsRecipe, options: Sequence[Any]) -> None:
        self._recipe = recipe
        self._claims: Claims | None = None
        self._processes: dict[Connection, HelperProcess] = {}
        try:
            for own in options:
                process = HelperProcess(_serve)
                self._processes[process.connection] = process
                with suppress(OSError):  # it has ended already
                    send(process.connection, (recipe, own))
        except OSError as problem:
            self.__exit__()
            raise MissingDependencyError(f"cannot start a process for each GPU: {problem.strerror}") from None

    def __enter__(self) -> GpuWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.close()
        if self._claims is not None:
            self._claims.__exit__()

    @property
    def n_parts(self) -> int:
        """Number of parts for a plan."""
        return _PARTS_PER_GPU * len(self._processes)

    def begin(self, plan: Plan) -> None:
        """Let the workers claim the parts of a plan."""
        self._plan = plan
        self._claims = Claims(plan, plan.unfinished()).__enter__()
        for connection in self._processes:
            with suppress(OSError):
                send(connection, (plan, self._claims))

    def finish(self, options: Any, early: EarlyText, warnings: list[str]) -> None:
        """Wait until all parts are done; complete those of dead workers here.

        Raises the `F5pyError` of a worker. `early` collects the rows of finished parts. Warnings in `warnings` are not
        repeated.
        """
        working = dict(self._processes)
        with progress("parts", len(self._plan)) as bar:
            parts = PartsProgress(self._plan, early, bar.advance)
            while working:
                for connection in wait(list(working), _LOOK_SECONDS):
                    assert isinstance(connection, Connection)
                    if not self._is_working(connection, warnings):
                        del working[connection]
                parts.look()
        if missing := self._plan.unfinished():
            run_parts(options, self._recipe, PartJob(self._plan, missing, checks_chemistry=0 in missing))

    def _is_working(self, connection: Connection, warnings: list[str]) -> bool:
        """Receive a message of a worker; return whether it continues."""
        try:
            message = connection.recv()
        except HUNG_UP:
            process = self._processes[connection]
            process.wait(_END_SECONDS)
            why = f"has ended (status {process.status})"
            console.warning(_WHO, f"a process of this run {why}; its parts are done by others")
            return False
        if isinstance(message, F5pyError):
            raise message
        if message is None:
            return False
        level, who, text, kind = message  # the level of a plain note is ""
        if level != "WARNING":
            (console.info if level == "INFO" else console.note)(who, text)
        elif text not in warnings:
            console.warning(who, text, kind)
        return True


def _serve(connection: Connection) -> None:
    """Claim parts of a plan and complete them, in a worker process.

    Receives recipe and options, then plan and claims. Sends messages for the user, at the end an `F5pyError` or None.
    """
    sending = threading.Lock()

    def answer(message: Any) -> None:
        with sending:
            send(connection, message)

    def pass_on(level: str, who: str, text: str, kind: str | None) -> None:
        if level in ("WARNING", "ERROR") or who in (*_NOTED, recipe.who):
            answer((level, who, text, kind))

    try:
        recipe, options = connection.recv()
        console.forward_messages(pass_on)
        begin_gpu(options, True)
        plan, claims = connection.recv()
        if job := ClaimingJob(plan, claims.take()):
            run_parts(options, recipe, job)
        answer(None)
        connection.recv()  # the end comes from outside: what is open is memory, also of the GPU
    except HUNG_UP:
        return
    except F5pyError as problem:
        answer(problem)
    except Exception as problem:
        cause = " ".join(f"{type(problem).__name__}: {problem}".split())
        answer(F5pyError(f"a process of this run failed: {cause}"))
