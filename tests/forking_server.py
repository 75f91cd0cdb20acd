"""A process that has imported what runs import and loaded their kernels, and that forks into runs of the command line.

It is run as a program whose standard input is a socket of `tests.forked`. What comes there is a run to start: JSON with
its arguments, environment and folder, and descriptors: of its three streams, of a socket that is told the number of the
process and then how it ended, and of what it keeps open.

With the argument ``helpers`` it forks into the processes that read signals.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import select
import signal
import socket
import sys
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path

#: Let runs end with all that Python does.
_TO_THE_LAST = float(os.environ.get("F5PY_EXAMPLES", "0")) >= 1
#: More than a message has.
_ROOM = 1 << 20
_MOST_DESCRIPTORS = 16
#: Where descriptors are that are on their way to other numbers.
_ASIDE = 800
_MODULES = (
    "h5py", "pysam", "f5py.runs.recipe", "f5py.runs.map_then_run", "f5py.api.functions",
    "f5py.cli.options", "f5py.commands.call_methylation", "f5py.commands.eventalign", "f5py.commands.resquiggle",
    "f5py.commands.index", "f5py.commands.meth_freq", "f5py.api.values", "f5py.io.bam.record_ranges",
    "f5py.io.reads.read_files", "f5py.io.signals.fast5.reader", "f5py.io.signals.processes",
    "f5py.io.signals.slow5.reader", "f5py.outputs.calls.modbam",
)  # fmt: skip
#: What helper processes import.
_OF_HELPERS = (
    "h5py", "f5py.io.signals.processes", "f5py.io.signals.fast5.fast5_scan", "f5py.io.signals.fast5.reader",
    "f5py.io.signals.pod5.reader",
)  # fmt: skip
#: Stages whose kernels are loaded.
_STAGES = ("events", "calls", "calls table", "alignment", "event rows", "event table")


def main() -> None:
    """Be ready, become each run that is asked for in a process of its own, and end with the socket's other end."""
    from f5py.threads import ONE_THREAD

    os.environ |= ONE_THREAD | os.environ
    for module in _MODULES:
        import_module(module)
    from f5py.runs.compiled_stages import STAGES

    for stage in _STAGES:
        STAGES[stage]()
    threads = Path("/proc/self/task")
    if threads.is_dir() and len(list(threads.iterdir())) > 1:
        raise SystemExit("a process with threads cannot be forked")
    gc.collect()
    gc.freeze()  # else the first collection of every run would copy all of it
    arguments = _serve(socket.socket(fileno=os.dup(0)))
    if arguments is not None:
        from f5py.cli import main as command_line

        sys.argv = [sys.modules["f5py"].__path__[0] + "/__main__.py", *arguments]
        try:
            command_line()
        except SystemExit as end:
            if not _TO_THE_LAST and isinstance(end.code, int):
                _end(end.code)
            raise


def main_of_helpers() -> None:
    """Be ready for helper processes in the place of runs: this one is much smaller."""
    from f5py.io.signals import helper_process

    paths = sys.path
    for module in _OF_HELPERS:
        with suppress(ImportError):  # of pod5, which need not be there
            import_module(module)
    gc.collect()
    gc.freeze()
    arguments = _serve(socket.socket(fileno=os.dup(0)))
    if arguments is not None:
        sys.argv = ["-c", *arguments]
        sys.path = list(dict.fromkeys([*os.environ["PYTHONPATH"].split(os.pathsep), *paths]))
        helper_process._main()
        _end(0)


def _end(status: int) -> None:
    """End as Python does, but leave the modules to the system: to take them apart takes longer than most runs.

    Come back if there is more to do, which is left to Python then: threads to wait for, or streams that take no more.
    """
    if any(not one.daemon for one in threading.enumerate() if one is not threading.main_thread()):
        return
    threading._shutdown()  # for what is registered there
    atexit._run_exitfuncs()
    gc.collect()  # what says something when it goes says it now
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return
    os._exit(status)


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
        message, descriptors, _, _ = socket.recv_fds(connection, _ROOM, _MOST_DESCRIPTORS)
        if not message:
            return None
        teller = socket.socket(fileno=descriptors.pop(3))
        number = os.fork()
        if number:
            for descriptor in descriptors:
                os.close(descriptor)
            running[number] = teller
            teller.send(f"{number}\n".encode())
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, before)
        for one in (connection, woken, wake, teller, *running.values()):
            one.close()
        return _become(json.loads(message), descriptors[:3], descriptors[3:])


def _tell_ends(running: dict[int, socket.socket]) -> None:
    for number, teller in list(running.items()):
        ended, status = os.waitpid(number, os.WNOHANG)
        if ended:
            del running[number]
            with teller:
                teller.send(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _become(run: dict, streams: list[int], kept: list[int]) -> list[str]:
    """Take streams, other descriptors under their numbers, environment and folder; return the arguments."""
    aside = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _ASIDE) for descriptor in kept]
    for descriptor in kept:
        os.close(descriptor)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    for number, descriptor in zip(run.get("kept", ()), aside, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
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
    exec(run.get("before", ""), {})
    return run["arguments"]


main_of_helpers() if sys.argv[1:] == ["helpers"] else main()
