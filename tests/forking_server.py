"""A process that has imported what runs import and loaded their kernels, and that forks into runs of the command line.

It is run as a program whose standard input is a socket of `tests.forked`. What comes there is a run to start: JSON with
its arguments, environment and folder, and four descriptors: of its three streams, and of a socket that is told the
number of the process and then how it ended.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from importlib import import_module
from pathlib import Path

#: More than a message has.
_ROOM = 1 << 20
_MODULES = (
    "h5py", "pysam", "f5py.runs.run", "f5py.runs.mapped_first", "f5py.runs.end_of_run", "f5py.api.functions",
    "f5py.cli.options", "f5py.commands.call_methylation", "f5py.commands.eventalign", "f5py.commands.resquiggle",
    "f5py.commands.index", "f5py.commands.meth_freq",
)  # fmt: skip
_KERNELS = ("events", "scaling", "recalibration", "calls", "calls table", "alignment", "event rows", "event table")


def main() -> None:
    """Be ready, become each run that is asked for in a process of its own, and end with the socket's other end."""
    from f5py.threads import blas

    os.environ |= blas.ONE_THREAD | os.environ
    for module in _MODULES:
        import_module(module)
    from f5py.runs.compile_ahead import PARTS, _is_kept

    for part in _KERNELS:
        if _is_kept(part):  # else the run shall compile it as runs do
            PARTS[part][1]()
    threads = Path("/proc/self/task")
    if threads.is_dir() and len(list(threads.iterdir())) > 1:
        raise SystemExit("a process with threads cannot be forked")
    arguments = _serve(socket.socket(fileno=os.dup(0)))
    if arguments is not None:
        from f5py.cli import main as command_line

        sys.argv = [sys.modules["f5py"].__path__[0] + "/__main__.py", *arguments]
        command_line()


def _serve(connection: socket.socket) -> list[str] | None:
    """Fork for every message; return in each new process, with its arguments, and at the end with None."""
    woken, wake = socket.socketpair()
    woken.setblocking(False)
    wake.setblocking(False)
    before = signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno())
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([connection, woken], [], [])
        if woken in ready:
            woken.recv(_ROOM)
            _tell_ends(running)
        if connection not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(connection, _ROOM, 4)
        if not message:
            return None
        teller = socket.socket(fileno=descriptors[3])
        number = os.fork()
        if number:
            for descriptor in descriptors[:3]:
                os.close(descriptor)
            running[number] = teller
            teller.send(f"{number}\n".encode())
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, before)
        for one in (connection, woken, wake, teller, *running.values()):
            one.close()
        return _become(json.loads(message), descriptors[:3])


def _tell_ends(running: dict[int, socket.socket]) -> None:
    """Tell of all processes that have ended."""
    for number, teller in list(running.items()):
        ended, status = os.waitpid(number, os.WNOHANG)
        if ended:
            del running[number]
            with teller:
                teller.send(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _become(run: dict, streams: list[int]) -> list[str]:
    """Take streams, environment and folder; return the arguments."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    for number in range(3):  # what Python knows of the streams was of the old ones
        name, mode = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))[number]
        new = open(number, mode, closefd=False, errors="backslashreplace" if number == 2 else None)  # noqa: SIM115
        if number == 2:
            new.reconfigure(line_buffering=True)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    os.environ.clear()
    os.environ.update(run["environment"])
    os.chdir(run["folder"])
    if run["session"]:
        os.setsid()
    return run["arguments"]


main()
