"""Helper processes that run one function and talk through a connection.

They are neither forked, because the caller may have threads, nor started by multiprocessing, which would rerun the
caller's script.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, TypeVar

from f5py.errors import F5pyError, SignalError
from f5py.messages import console
from f5py.threads.subprocesses import end_with_parent, environment, python_command

#: Processor time in seconds that means an endless loop, plus some for each read.
CPU_SECONDS = 20.0
_CPU_SECONDS_PER_READ = 0.2
#: Iterations of an empty loop, and their time on a slow processor.
_LOOPS, _LOOP_SECONDS = 300_000, 0.02
#: Seconds without an answer or computation until a warning, and until an error.
_WAITING_AFTER, _MOST_WAITING = 60.0, 3600.0
#: Seconds between checks.
LOOK_EVERY = 2.0
#: Signals that show damage; SIGKILL comes from outside.
_OF_DAMAGE = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
#: Errors of a connection closed at either end.
HUNG_UP = (EOFError, OSError, TypeError, IndexError)
#: Signals to a run's process group that only the first process handles.
_NOT_FOR_HELPERS = {signal.SIGINT, signal.SIGUSR1, signal.SIGXCPU}
STOPPED = "the signal reader processes have been stopped"
_PROGRAM = f"from {__name__} import _main; _main()"


class ProcessCrashError(SignalError):
    """Crash or endless loop of a helper process; `how` is the predicate of a sentence about the file."""

    def __init__(self, text: str, process: HelperProcess, how: str, is_loop: bool = False) -> None:
        super().__init__(text)
        self.process = process
        self.how = how
        self.is_loop = is_loop


class HelperProcess:
    """A process that runs ``function(connection, *descriptors, *arguments)``, all of them strings.

    It ignores Ctrl-C; the caller ends it, and the connection closes when the caller dies. The function is module-level.
    Raises `OSError` if it cannot be started.
    """

    advice = "use a smaller --iop"

    def __init__(self, function: Callable[..., None], *arguments: str, descriptors: tuple[int, ...] = ()) -> None:
        self.connection, theirs = Pipe()
        self.requests: list[Any] = []
        self._is_ended = False
        command = [
            *python_command(_PROGRAM),
            function.__module__, function.__qualname__, str(theirs.fileno()), *map(str, descriptors), *arguments,
        ]  # fmt: skip
        try:
            self._process = _started(command, (theirs.fileno(), *descriptors))
        except BaseException:
            self.connection.close()
            raise
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status, the negative number of a fatal signal, or None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """Kill it, even if it is stopped."""
        self._is_ended = True
        self._process.kill()

    def wait(self, seconds: float) -> None:
        """Wait for its end, up to a time limit."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def close(self) -> None:
        """Kill it and close the connection."""
        self.kill()
        self.wait(0.5)
        self.connection.close()

    def ask(self, requests: list[Any], path: str, n_reads: int = 1) -> None:
        """Send requests for `answer_each`; `receive` reports a death. For the parameters see `start_timer`."""
        self.requests = requests
        self.start_timer(path, n_reads)
        with suppress(*HUNG_UP):
            send(self.connection, requests)

    def receive(self) -> Any:
        """Receive an answer. Raise an error that is one, `ProcessCrashError`, or `SignalError` if it was killed."""
        try:
            answer = self.connection.recv()
        except HUNG_UP:
            raise self._death() from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def start_timer(self, path: str, n_reads: int = 1) -> None:
        """Start to measure the time for an answer about `n_reads` reads, the first of which is in `path`."""
        self._path = path
        self._allowed = CPU_SECONDS + _CPU_SECONDS_PER_READ * n_reads
        self._began = time.monotonic()
        self._cpu_before = self._cpu_seconds()
        self._told_at = _WAITING_AFTER

    def check_time(self) -> None:
        """Kill the process and raise an error if it is in an endless loop or has not answered for an hour."""
        silence = time.monotonic() - self._began
        if not (is_loop := self._loops()):
            if silence >= self._told_at:
                self._told_at *= 2
                console.warning(
                    "read_signals",
                    f"{self._path}: the process that reads it has not answered for {silence:.0f} seconds, perhaps "
                    "because the file system does not; waiting",
                )
            if silence < _MOST_WAITING:
                return
        self._process.kill()
        text = (
            f"a signal reader process (pid {self.pid}) has not answered for {silence:.0f} seconds; the first file "
            f"that it was to read is {self._path}"
        )
        if is_loop:
            raise ProcessCrashError(text, self, "keeps the library that reads it in an endless loop", True)
        raise SignalError(text)

    def _loops(self) -> bool:
        """Return whether it has computed so long that it must be in an endless loop."""
        now = self._cpu_seconds()
        if now is None or self._cpu_before is None or (computed := now - self._cpu_before) <= self._allowed:
            return False
        begin = time.thread_time()  # of this processor, which may be slow, as under emulation
        for _ in range(_LOOPS):
            pass
        return computed > self._allowed * (time.thread_time() - begin) / _LOOP_SECONDS

    def _death(self) -> SignalError:
        """Make the error for its end."""
        if self._is_ended:
            return SignalError(STOPPED)
        self.wait(0.5)
        code = self.status
        names = {one.value: one.name for one in signal.Signals}
        name = "" if code is None or code >= 0 else names.get(-code, f"signal {-code}")
        how = f"was ended by {name}" if name else f"ended with status {code}"
        text = f"a signal reader process (pid {self.pid}) {how}; if memory is short, {self.advice}"
        if -(code or 0) in _OF_DAMAGE:
            return ProcessCrashError(text, self, f"ends the library that reads it ({name})")
        return SignalError(text)

    def _cpu_seconds(self) -> float | None:
        """Return its processor time, None if unknown."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            return None


_Process = TypeVar("_Process", bound=HelperProcess)


def ready(processes: Iterable[_Process]) -> list[_Process]:
    """Wait until some processes have an answer or have died, for at most `LOOK_EVERY` seconds.

    Raises as `HelperProcess.check_time`, and `SignalError` if a connection is closed.
    """
    by_connection: dict[Any, _Process] = {process.connection: process for process in processes}
    try:
        found = wait(list(by_connection), LOOK_EVERY)
    except (OSError, ValueError):  # closed by another thread
        raise SignalError(STOPPED) from None
    if not found:
        for process in by_connection.values():
            process.check_time()
    return [by_connection[connection] for connection in found]


@cache
def _starter(pid: int) -> ThreadPoolExecutor:
    """Return a lasting thread of this process that starts others."""
    return ThreadPoolExecutor(1, "f5py-starter")


def _started(command: list[str], descriptors: tuple[int, ...]) -> subprocess.Popen:
    """Start a process from a thread that lasts, because the system ends it with that thread."""

    def start() -> subprocess.Popen:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_FOR_HELPERS)  # also while it starts
        try:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=descriptors, env=environment())
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    if threading.current_thread() is threading.main_thread():
        return start()
    return _starter(os.getpid()).submit(start).result()  # a fork has no threads


def _main() -> None:
    """Run the process."""
    for number in _NOT_FOR_HELPERS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _NOT_FOR_HELPERS)
    end_with_parent()
    module, name, descriptor, *arguments = sys.argv[1:]
    function: Any = getattr(import_module(module), name)
    function(Connection(int(descriptor)), *arguments)


def send(connection: Connection, message: Any) -> None:
    """Send an object for `Connection.recv`; its own `send` leaks a buffer from Python 3.13 on."""
    connection.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))


def answer_each(connection: Connection, answer: Callable[[Any], Any]) -> None:
    """Answer lists of requests until a hang-up; errors are answers, too."""
    try:
        while True:
            for request in connection.recv():
                try:
                    result = answer(request)
                except F5pyError as problem:
                    result = problem
                except OSError as problem:  # of the machine
                    where = f"{problem.filename}: " if problem.filename else ""
                    result = SignalError(f"{where}cannot be read ({problem.strerror or problem})")
                except Exception as problem:
                    cause = " ".join(f"{type(problem).__name__}: {problem}".split())
                    result = SignalError(f"a signal reader process failed: {cause}")
                send(connection, result)
    except (EOFError, OSError):
        return
