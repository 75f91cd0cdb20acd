"""Helper processes that run one function and talk through a connection.

They are neither forked, because the caller may have threads, nor started by multiprocessing, which would rerun the
caller's script.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.connection import Connection, Pipe
from typing import Any

from f5py.errors import F5pyError
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
_PROGRAM = f"from {__name__} import _main; _main()"


class HelperProcess:
    """A process that runs ``function(connection, *descriptors, *arguments)``, all of them strings.

    It ignores Ctrl-C; the caller ends it, and the connection closes when the caller dies. Raises `OSError` if it cannot
    be started.

    Parameters
    ----------
    function : function
        Module-level; the module is imported in the process.
    descriptors : tuple of int
        File descriptors to inherit, perhaps under other numbers.

    Attributes
    ----------
    connection : Connection
    """

    connection: Connection
    _process: subprocess.Popen

    def __init__(self, function: Callable[..., None], *arguments: str, descriptors: tuple[int, ...] = ()) -> None:
        self.connection, theirs = Pipe()
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
        self.begin()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status, the negative number of a fatal signal, or None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """Kill it, even if it is stopped."""
        self._process.kill()

    def wait(self, seconds: float) -> None:
        """Wait for its end, up to a time limit."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return

    def close(self) -> None:
        """Kill it and close the connection."""
        self.kill()
        self.wait(0.5)
        self.connection.close()

    def begin(self) -> None:
        """Start the timers for an answer."""
        self._began = time.monotonic()
        self._cpu_before = self._cpu_seconds()
        self._told_at = _WAITING_AFTER

    def loops(self, n_reads: int, cpu_seconds: float | None = None) -> bool:
        """Return whether it has computed so long for `n_reads` reads that it must be in an endless loop.

        Allowed are `cpu_seconds`, by default `CPU_SECONDS`, and some time per read.
        """
        now = self._cpu_seconds()
        if now is None or self._cpu_before is None:
            return False
        computed = now - self._cpu_before
        allowed = (CPU_SECONDS if cpu_seconds is None else cpu_seconds) + _CPU_SECONDS_PER_READ * n_reads
        return computed > allowed and computed > allowed * _slowness()

    def waits_too_long(self, path: str) -> bool:
        """Return whether it has not answered for an hour; warn before that, with the first file's `path`."""
        if self.silence >= self._told_at:
            self._told_at *= 2
            console.warning(
                "read_signals",
                f"{path}: the process that reads it has not answered for {self.silence:.0f} seconds, perhaps because "
                "the file system does not; waiting",
            )
        return self.silence >= _MOST_WAITING

    @property
    def silence(self) -> float:
        """Seconds since `begin`."""
        return time.monotonic() - self._began

    def fatal_signal(self) -> str:
        """Return the signal that ended it if it shows damage, else ""."""
        self.wait(0.5)
        status = self.status or 0
        return signal_name(-status) if -status in _OF_DAMAGE else ""

    def _cpu_seconds(self) -> float | None:
        """Return its processor time, None if unknown."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            return None


class _ProcessStarter:
    """A lasting thread that starts processes, because the system ends them with their parent thread."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._asked: queue.SimpleQueue[tuple[Future[subprocess.Popen], Callable[[], subprocess.Popen]]] = (
            queue.SimpleQueue()
        )
        threading.Thread(target=self._work, name="f5py-starter", daemon=True).start()

    def started(self, start: Callable[[], subprocess.Popen]) -> subprocess.Popen:
        """Call a function in that thread."""
        future: Future[subprocess.Popen] = Future()
        self._asked.put((future, start))
        return future.result()

    def _work(self) -> None:
        while True:
            future, start = self._asked.get()
            try:
                future.set_result(start())
            except BaseException as problem:
                future.set_exception(problem)


_starter: _ProcessStarter | None = None
_starter_lock = threading.Lock()


def _started(command: list[str], descriptors: tuple[int, ...]) -> subprocess.Popen:
    """Start a process that inherits descriptors and ends with this process, not with the calling thread."""
    global _starter

    def start() -> subprocess.Popen:
        with _block_signals():
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=descriptors, env=environment())

    if threading.current_thread() is threading.main_thread():
        return start()
    with _starter_lock:
        if _starter is None or _starter.pid != os.getpid():  # a fork has no threads
            _starter = _ProcessStarter()
    return _starter.started(start)


def _slowness() -> float:
    """Measure how much slower than usual this processor is, as under emulation; at least 1."""
    begin = time.thread_time()
    for _ in range(_LOOPS):
        pass
    return max(1.0, (time.thread_time() - begin) / _LOOP_SECONDS)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


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
    """Send an object for `Connection.recv`.

    `Connection.send` leaks a view of its buffer in tracebacks from Python 3.13 on.
    """
    connection.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))


def answer_each(connection: Connection, answer: Callable[[Any], Any]) -> None:
    """Answer lists of requests until None or a hang-up; a raised `F5pyError` is an answer, too."""
    try:
        while (requests := connection.recv()) is not None:
            for request in requests:
                try:
                    send(connection, answer(request))
                except F5pyError as problem:
                    send(connection, problem)
    except (EOFError, OSError):
        return


@contextmanager
def _block_signals() -> Iterator[None]:
    """Block the run's signals in a process started inside, even while it starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_FOR_HELPERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
