"""Runs of the command line as processes of their own that need not import everything first.

A run of a few reads takes a twentieth of the time that Python takes to import Numba and all else. So tests of
signals, pipes and exit codes fork their runs from one process that has done that, see `forking_server`.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any
from unittest import mock

from f5py.jit.code_cache import code_folder

from .patience import PATIENCE

_SERVER = Path(__file__).with_name("forking_server.py")
#: What Python and libraries look at when they start only. `PYTEST_CURRENT_TEST` is another one for every test.
_AT_START = ("DYLD_", "HOME", "LD_", "MALLOC_", "NUMBA_", "OMP_", "PYTHON", "TMPDIR", "XDG_")


def at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a process looks at when it starts."""
    return {name: value for name, value in environment.items() if name.startswith(_AT_START)}


code_folder()  # the processes that are started will say what it says in the environment
HERE = at_start(os.environ)
#: What a run can be given.
_OPTIONS = {"stdin", "stdout", "stderr", "text", "bufsize", "env", "cwd", "start_new_session"}


def can_be_forked(options: Mapping[str, Any]) -> bool:
    """Return whether a process with these options of `subprocess.Popen` is one that could have been forked."""
    environment = at_start(options.get("env") or os.environ)
    environment.pop("LD_PRELOAD", None)
    return sys.platform == "linux" and options.keys() <= _OPTIONS and environment == HERE


class _Server:
    """The process that forks; it ends when this one does."""

    def __init__(self, environment: Mapping[str, str], *arguments: str) -> None:
        from f5py.threads.subprocesses import environment as to_import_the_same

        variables = to_import_the_same() | {name: environment[name] for name in environment if name != "PYTHONPATH"}
        variables.pop("PYTHONUNBUFFERED", None)  # users have buffered output
        self._here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with there:
            self._process = subprocess.Popen(
                [
                    sys.executable, "-c", f"exec(compile(open({str(_SERVER)!r}).read(), {str(_SERVER)!r}, 'exec'))",
                    *arguments,
                ],
                stdin=there, env=variables, start_new_session=True, cwd="/",
            )  # fmt: skip

    def start(self, run: dict[str, Any], streams: list[int], kept: tuple[int, ...]) -> socket.socket:
        here, there = socket.socketpair()
        with there, self._lock:
            socket.send_fds(self._here, [json.dumps(run).encode()], [*streams, there.fileno(), *kept])
        return here

    def pass_on(self, asking: socket.socket) -> None:
        """Ask for the run that another process asks for."""
        message, descriptors, _, _ = socket.recv_fds(asking, 1 << 20, 4)
        try:
            with self._lock:
                socket.send_fds(self._here, [message], descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def close(self) -> None:
        self._here.close()
        self._process.wait(PATIENCE)


#: By the library that is put before others, and by what they become.
_servers: dict[tuple[str, ...], _Server] = {}
#: The folder of the program that asks for runs.
_programs: list[tempfile.TemporaryDirectory[str]] = []


def close_servers() -> None:
    while _servers:
        _servers.popitem()[1].close()
    while _programs:
        _programs.pop().cleanup()


def _server_for(environment: Mapping[str, str], *arguments: str) -> _Server:
    key = environment.get("LD_PRELOAD", ""), *arguments
    if key not in _servers:
        _servers[key] = _Server(environment, *arguments)
    return _servers[key]


#: Asks for a run with its own streams, and ends as it does.
_PROGRAM = f"""#!{sys.executable} -IS
import json, os, socket, sys
os.environ["PATH"] = os.environ["PATH"].replace(os.path.dirname(__file__) + os.pathsep, "")
try:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.connect(os.environ.pop("F5PY_FORKS"))
except OSError:
    os.execvp("f5py", ["f5py", *sys.argv[1:]])
here, there = socket.socketpair()
run = {{"arguments": sys.argv[1:], "environment": dict(os.environ), "session": False, "folder": os.getcwd()}}
socket.send_fds(server, [json.dumps(run).encode()], [0, 1, 2, there.fileno()])
there.close()
number, status = here.makefile().read().split()
if int(status) < 0:
    os.kill(os.getpid(), -int(status))
sys.exit(int(status))
"""


def _folder_of_program() -> str:
    if not _programs:
        _programs.append(tempfile.TemporaryDirectory(prefix="f5py-forks-"))
        program = Path(_programs[0].name) / "f5py"
        program.write_text(_PROGRAM)
        program.chmod(0o700)
    return _programs[0].name


@contextmanager
def in_programs(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Give variables with which ``f5py`` is forked in all programs, though these close the descriptors of others."""
    if not can_be_forked({"env": environment}):
        yield {}
        return
    server = _server_for(environment)

    def serve() -> None:
        with suppress(OSError):  # which ends it
            while True:
                asking = listener.accept()[0]
                with asking:
                    server.pass_on(asking)

    with (
        tempfile.TemporaryDirectory(prefix="f5py-asked-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
    ):
        listener.bind(f"{folder}/forks")
        listener.listen()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield {
            "PATH": os.pathsep.join([_folder_of_program(), environment["PATH"]]), "F5PY_FORKS": f"{folder}/forks"
        }  # fmt: skip
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


class Run:
    """A run of the command line that is forked, with what `subprocess.Popen` has of methods and attributes.

    Parameters
    ----------
    arguments : list of str
        Those of ``f5py``.
    stdin, stdout, stderr : None, int or file
        As `subprocess.Popen` takes them, but for `subprocess.STDOUT`.
    text, bufsize, env, cwd, start_new_session, pass_fds
        As there.
    server : tuple of str
        What forks: arguments of `forking_server`.
    before : str
        Python statements that are run in the process before the command.
    """

    def __init__(
        self,
        arguments: list[str],
        *,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        text: bool = False,
        bufsize: int = -1,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike | None = None,
        start_new_session: bool = False,
        pass_fds: tuple[int, ...] = (),
        server: tuple[str, ...] = (),
        before: str = "",
    ) -> None:
        self.args, self.returncode = arguments, None
        self._text, self._bufsize = text, bufsize
        environment = dict(os.environ if env is None else env)
        forks = _server_for(environment, *server)
        environment.pop("PYTHONUNBUFFERED", None)
        run = {
            "arguments": arguments, "environment": environment, "session": start_new_session,
            "folder": str(Path(cwd or os.getcwd()).resolve()), "kept": pass_fds,
            "before": before,
        }  # fmt: skip
        given: list[int] = []
        to_close: list[int] = []
        self.stdin, self.stdout, self.stderr = (
            self._stream(number, wanted, given, to_close) for number, wanted in enumerate((stdin, stdout, stderr))
        )
        sys.stdout.flush()
        with forks.start(run, given, pass_fds) as teller:
            self._teller = teller.makefile("r")  # which keeps it open
        for descriptor in to_close:
            os.close(descriptor)
        self.pid = int(self._teller.readline())
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _stream(self, number: int, wanted: Any, given: list[int], to_close: list[int]) -> IO[Any] | None:
        """Note the descriptor that the run gets; return this process's end of a pipe, if it is one."""
        if wanted == subprocess.PIPE:
            reader, writer = os.pipe()
            theirs, ours = (reader, writer) if number == 0 else (writer, reader)
            given.append(theirs)
            to_close.append(theirs)
            mode = "w" if number == 0 else "r"
            return os.fdopen(ours, mode) if self._text else os.fdopen(ours, f"{mode}b", self._bufsize)
        if wanted == subprocess.DEVNULL:
            given.append(os.open(os.devnull, os.O_RDWR))
            to_close.append(given[-1])
        else:
            given.append(number if wanted is None else wanted if isinstance(wanted, int) else wanted.fileno())
        return None

    def _watch(self) -> None:
        self._status = int(self._teller.readline() or -signal.SIGKILL)
        self._teller.close()

    def poll(self) -> int | None:
        if not self._watcher.is_alive():
            self.returncode = self._status
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._watcher.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Give it all its input, and return what it writes to its pipes."""
        end = None if timeout is None else time.monotonic() + timeout
        found: dict[str, Any] = {}

        def read(name: str, stream: IO[Any]) -> None:
            with stream:
                found[name] = stream.read()

        def write(stream: IO[Any]) -> None:
            with suppress(BrokenPipeError), stream:
                if input:
                    stream.write(input)

        threads = [
            threading.Thread(target=read, args=(name, stream), daemon=True)
            for name, stream in (("out", self.stdout), ("err", self.stderr))
            if stream is not None and not stream.closed
        ]
        if self.stdin is not None and not self.stdin.closed:
            threads.append(threading.Thread(target=write, args=(self.stdin,), daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(None if end is None else max(end - time.monotonic(), 0))
        self.wait(None if end is None else max(end - time.monotonic(), 0))
        return found.get("out"), found.get("err")

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self.wait()


#: Limits that processes inherit; those of a server are these.
_LIMITS = [name for name in dir(resource) if name.startswith("RLIMIT_")]


def _limits() -> list[tuple[int, int]]:
    return [resource.getrlimit(getattr(resource, name)) for name in _LIMITS]


_LIMITS_HERE = _limits()


def _start_helper(command: list[str], **options: Any) -> subprocess.Popen | Run:
    """Start a helper process as `subprocess.Popen`, but forked where it would have been started in the same way."""
    environment = {name: value for name, value in options["env"].items() if name != "PYTHONPATH"}
    here = {name: value for name, value in HERE.items() if name != "PYTHONPATH"}
    if (
        sys.platform != "linux" or at_start(environment) != here or max(options["pass_fds"]) > _MOST_NUMBER
        or _limits() != _LIMITS_HERE or not Path.cwd().is_dir()
    ):  # fmt: skip
        return subprocess.Popen(command, **options)
    # what comes before are Python's own options and the program
    return Run(command[3:], **options, server=("helpers",))


#: Above are numbers that the server needs itself.
_MOST_NUMBER = 700


@contextmanager
def helpers_forked() -> Iterator[None]:
    """Let helper processes be forked from one that has imported what they need, in a tenth of the time.

    They are processes of their own as ever, with the same ends; but they are not children of this one.
    """
    from f5py.io.signals import helper_process

    names = SimpleNamespace(
        Popen=_start_helper, DEVNULL=subprocess.DEVNULL, TimeoutExpired=subprocess.TimeoutExpired
    )  # fmt: skip
    with mock.patch.object(helper_process, "subprocess", names):
        yield
