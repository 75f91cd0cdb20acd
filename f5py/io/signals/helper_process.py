"""Processes beside this one: each runs one function and talks with this one through a connection.

They are started anew and not forked, because the caller may run threads and libraries that must not be forked; and not
by multiprocessing, which would run the caller's own script again in each of them.
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
from f5py.threads import blas

#: Seconds of processor time after which one that does not answer is taken to be in an endless loop; more for each read.
CPU_SECONDS = 20.0
_CPU_SECONDS_PER_READ = 0.2
#: So many turns of an empty loop take a slow processor so long.
_LOOPS, _LOOP_SECONDS = 300_000, 0.02
#: Seconds after which one that does not answer is said to wait, for a file system for instance. It does not compute
#: then, or gets no processor, and neither is a sign of damage.
_WAITING_AFTER = 60.0
#: Seconds after which waiting ends.
_MOST_WAITING = 3600.0
#: How often that should be looked at, in seconds.
LOOK_EVERY = 2.0
#: A library that ends by one of these has met damage; SIGKILL comes from outside.
_OF_DAMAGE = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
_PR_SET_PDEATHSIG = 1
#: What a connection raises when the other end is gone, or when another thread has closed this end.
HUNG_UP = (EOFError, OSError, TypeError, IndexError)
#: Signals that may come to all processes of a run at once, and that its first one heeds.
_NOT_FOR_HELPERS = {signal.SIGINT, signal.SIGUSR1, signal.SIGXCPU}
_PROGRAM = f"from {__name__} import _main; _main()"


class HelperProcess:
    """A process that runs ``function(connection, *descriptors, *arguments)``, these being texts.

    Ctrl-C does not reach it, though a terminal sends it to all processes: its caller ends it. If that dies, the
    connection closes. Raises `OSError` if it cannot be started.

    Parameters
    ----------
    function : function
        Of a module, which is imported in the process.
    descriptors : tuple of int
        File descriptors that it has, too, perhaps under other numbers.

    Attributes
    ----------
    connection : Connection
        This end.
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
            self.connection.close()  # upon which the process ends, if it has come to be
            raise
        finally:
            theirs.close()
        self.begin()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Its exit status, the negative number of the signal that has ended it, or None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """End it at once, which works on a stopped process too."""
        self._process.kill()

    def wait(self, seconds: float) -> None:
        """Wait for its end, but no longer than that."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return

    def close(self) -> None:
        """End it, if it has not ended, and close the connection."""
        self.kill()
        self.wait(0.5)
        self.connection.close()

    def begin(self) -> None:
        """Say that it is to answer from now on."""
        self._began = time.monotonic()
        self._cpu_before = self._cpu_seconds()
        self._told_at = _WAITING_AFTER

    def loops(self, n_reads: int, cpu_seconds: float | None = None) -> bool:
        """Return whether it has computed for so long over `n_reads` reads that it must be in an endless loop.

        Without `cpu_seconds` `CPU_SECONDS` are allowed, and in any case some time more for each read.
        """
        now = self._cpu_seconds()
        if now is None or self._cpu_before is None:
            return False
        computed = now - self._cpu_before
        allowed = (CPU_SECONDS if cpu_seconds is None else cpu_seconds) + _CPU_SECONDS_PER_READ * n_reads
        return computed > allowed and computed > allowed * _slowness()

    def waits_too_long(self, path: str) -> bool:
        """Return whether it has not answered for an hour; before that, say now and then that it waits.

        Parameters
        ----------
        path : str
            What it was to read, or the first of these files.
        """
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

    def deadly_signal(self) -> str:
        """Name the signal that has ended it, if a library does that to itself over damage; else ""."""
        self.wait(0.5)
        status = self.status or 0
        return signal_name(-status) if -status in _OF_DAMAGE else ""

    def _cpu_seconds(self) -> float | None:
        """Processor time that it has used, where the system tells."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            return None


class _Starter:
    """A thread that starts processes, and that lives as long as this one: the system ends them with their thread."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._asked: queue.SimpleQueue[tuple[Future[subprocess.Popen], Callable[[], subprocess.Popen]]] = (
            queue.SimpleQueue()
        )
        threading.Thread(target=self._work, name="f5py-starter", daemon=True).start()

    def started(self, start: Callable[[], subprocess.Popen]) -> subprocess.Popen:
        """Return what a function returns, or raise what it raises, which that thread calls."""
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


_starter: _Starter | None = None
_starter_lock = threading.Lock()


def _started(command: list[str], descriptors: tuple[int, ...]) -> subprocess.Popen:
    """Start a process that keeps these descriptors, and ends with this one, not with the calling thread."""
    global _starter

    def start() -> subprocess.Popen:
        with _interrupts_held():
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=descriptors, env=environment())

    if threading.current_thread() is threading.main_thread():
        return start()
    with _starter_lock:
        if _starter is None or _starter.pid != os.getpid():  # a fork has no threads
            _starter = _Starter()
    return _starter.started(start)


def _slowness() -> float:
    """Measure how much slower than common ones this processor is, which may be an emulated one; at least 1."""
    begin = time.thread_time()
    for _ in range(_LOOPS):
        pass
    return max(1.0, (time.thread_time() - begin) / _LOOP_SECONDS)


def signal_name(number: int) -> str:
    """Name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def python_command(program: str) -> list[str]:
    """Command that runs a program in another Python, which does not import from its working folder.

    The option ``-P`` does that from Python 3.11 on only.
    """
    return [sys.executable, "-c", f"import sys; sys.path[:1] == [''] and sys.path.pop(0); {program}"]


def environment() -> dict[str, str]:
    """Environment in which a Python of `python_command` imports what this one does."""
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    return {**blas.ONE_THREAD, **os.environ, "PYTHONPATH": paths}


def _main() -> None:
    """Run the process."""
    for number in _NOT_FOR_HELPERS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _NOT_FOR_HELPERS)
    end_with_parent()
    module, name, descriptor, *arguments = sys.argv[1:]
    function: Any = getattr(import_module(module), name)
    function(Connection(int(descriptor)), *arguments)


def end_with_parent() -> None:
    """Let the system end this process with its parent: in an endless loop of a library it would not notice that."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def send(connection: Connection, message: Any) -> None:
    """Send an object, which `Connection.recv` receives.

    `Connection.send` leaves a view of its buffer in the traceback of an error, of which Python complains from 3.13 on.
    """
    connection.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))


def answer_each(connection: Connection, answer: Callable[[Any], Any]) -> None:
    """Answer each of the requests that come in lists, until None comes, or the other end hangs up or dies.

    An `F5pyError` that a function of the request raises is an answer, too.
    """
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
def _interrupts_held() -> Iterator[None]:
    """Start a process inside that never sees what ends the run, not even while it starts: it inherits the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_FOR_HELPERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
