"""Run a command and measure its wall time, CPU time and peak memory.

The kernel counts the memory of the process that starts a program into the peak of that program. So a
command is not started from the benchmark, which may have grown, but from a fresh, small interpreter running
this file: about 13 MB is the least that can be measured. Processes that the command starts and waits for are
counted too: their CPU time is added, and the peak is that of the largest single process.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Usage(NamedTuple):
    """Resources that a command used: seconds and bytes."""

    wall: float
    user: float
    system: float
    peak_rss: int

    @property
    def cpu(self) -> float:
        """User and system time together, in seconds."""
        return self.user + self.system


class CommandFailed(Exception):
    """A measured command could not be started or did not end with status 0."""


def measure(
    command: Sequence[str],
    output: Path | None = None,
    log: Path | None = None,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Usage:
    """Run `command` to its end and return its usage.

    Parameters
    ----------
    command
        Program and arguments. The program is looked for on the path.
    output, log
        Files for standard output and standard error; output is thrown away without one, and the log is kept
        only for the message of a failure.
    cwd, environment
        Working directory, and variables to add to the environment.

    Raises
    ------
    CommandFailed
        With the command, its status and the end of its log.
    """
    if shutil.which(command[0]) is None:
        raise CommandFailed(f"{command[0]}: no such program on the path")
    reader, writer = os.pipe()
    with open(output or os.devnull, "wb") as out, open(log or os.devnull, "wb") as err:
        try:
            launcher = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(writer), *command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=cwd,
                env={**os.environ, **(environment or {})},
                pass_fds=(writer,),
            )
        finally:
            os.close(writer)
        with open(reader) as answer:
            text = answer.read()
        launcher.wait()
    if not text:
        raise CommandFailed(f"{command[0]}: could not be started{_tail(log)}")
    answer = json.loads(text)
    if answer["status"] != 0:
        raise CommandFailed(f"{' '.join(command)}: ended with status {answer['status']}{_tail(log)}")
    return Usage(answer["wall"], answer["user"], answer["system"], answer["peak_rss"])


def _tail(log: Path | None, lines: int = 5) -> str:
    if log is None or not log.is_file():
        return ""
    text = log.read_text(errors="replace").strip().splitlines()[-lines:]
    return "".join(f"\n    {line}" for line in text)


def _launch(answer_fd: int, command: list[str]) -> None:
    """Run the command as this process's child and write its usage to the given descriptor."""
    os.set_inheritable(answer_fd, False)
    start = time.perf_counter()
    # An interpreter ignores these two signals and would hand that on; the command gets the usual behavior.
    child = os.posix_spawnp(command[0], command, os.environ, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else 1024
    answer = {
        "status": os.waitstatus_to_exitcode(status),
        "wall": wall,
        "user": usage.ru_utime,
        "system": usage.ru_stime,
        "peak_rss": usage.ru_maxrss * unit,
    }
    with os.fdopen(answer_fd, "w") as out:
        json.dump(answer, out)


if __name__ == "__main__":
    _launch(int(sys.argv[1]), sys.argv[2:])
