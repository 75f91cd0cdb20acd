"""Signals end a run by an exception, which comes when Python is prepared for it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from f5py import cli
from f5py.cli import signals
from f5py.errors import InputFileError

from ..patience import PATIENCE

_START = """
import signal, sys, time
from f5py.cli import _report_unraisable
from f5py.cli.signals import number_of, raise_on_signals

class Interrupted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def interrupt_at_an_end():
    Interrupted()

def main():
    sys.unraisablehook = _report_unraisable
    raise_on_signals(main.__code__)
    try:
        {work}
        time.sleep(20)
    except KeyboardInterrupt as problem:
        print(signal.Signals(number_of(problem)).name, "made" in sys.modules and sys.modules["made"].is_whole)

{call}
"""


def run(folder: Path, work: str, *, call: str = "main()", **options: object) -> list[str]:
    program = _START.format(work=work, call=call)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
        **options,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGXCPU"])
def test_not_in_an_import(tmp_path: Path, name: str):
    """An exception there could leave the lock of all imports taken."""
    (tmp_path / "inner.py").write_text(f"import signal\nsignal.raise_signal(signal.{name})\n")
    (tmp_path / "made.py").write_text("import time\nimport inner\ntime.sleep(0.1)\nis_whole = True\n")
    assert run(tmp_path, "import made") == [name, "True"]


_LOCK_OF_A_QUEUE = """\
import signal
from collections import deque
from functools import partial
from operator import methodcaller
from queue import Empty, Queue
from threading import Lock

class TakenWithASignal:
    def __init__(self):
        self.lock = Lock()
        self.acquire, self.release = self.lock.acquire, self.lock.release
        self.__exit__ = self.lock.__exit__
        # without a function of Python's, as a signal that comes by itself
        steps = [self.lock.acquire, partial(signal.raise_signal, signal.SIGINT)]
        self.__enter__ = partial(deque, map(methodcaller("__call__"), steps), 0)

queue = Queue()
mutex = queue.not_empty._lock = TakenWithASignal()
"""


def test_not_while_the_lock_of_a_queue_is_taken(tmp_path: Path):
    """It would stay taken, and the thread at the other end of the queue would wait for ever."""
    (tmp_path / "made.py").write_text(_LOCK_OF_A_QUEUE)
    work = """
        from made import Empty, mutex, queue
        try:
            try:
                queue.get(block=False)
            except Empty:
                print("empty")
            time.sleep(20)
        finally:
            sys.modules["made"].is_whole = not mutex.lock.locked()
    """
    assert run(tmp_path, work.strip()) == ["empty", "SIGINT", "True"]


def test_at_once_while_a_queue_is_waited_for(tmp_path: Path):
    """And its lock is free then."""
    work = """
        import os, queue, threading
        box = queue.Queue()
        def send():
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=send).start()
        try:
            box.get()
        finally:
            sys.modules["made"] = box
            box.is_whole = not box.mutex.locked()
    """
    assert run(tmp_path, work.strip()) == ["SIGINT", "True"]


def test_at_once_otherwise(tmp_path: Path):
    assert run(tmp_path, "signal.raise_signal(signal.SIGTERM); import made") == ["SIGTERM", "False"]


def test_a_program_that_runs_while_it_is_imported(tmp_path: Path):
    program = _START.format(work="signal.raise_signal(signal.SIGINT)", call="main()")
    (tmp_path / "program.py").write_text(program)
    assert run(tmp_path, "pass", call="import program") == ["SIGINT", "False"]


def test_where_python_drops_every_error(tmp_path: Path):
    assert run(tmp_path, "interrupt_at_an_end()") == ["SIGINT", "False"]


def test_what_is_ignored_stays_so(tmp_path: Path):
    work = "signal.raise_signal(signal.SIGHUP); signal.raise_signal(signal.SIGINT); return print('ignored')"

    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    assert run(tmp_path, work, preexec_fn=ignore) == ["ignored"]


def test_an_input_that_ends_with_the_interrupt_is_not_blamed(monkeypatch: pytest.MonkeyPatch, capfd):
    """All processes of a pipeline get Ctrl-C, so that an input may end before a signal that waits comes again."""

    def run(*args: object, **options: object) -> None:
        signals.resend(signal.SIGINT)
        raise InputFileError("standard input: no header")

    monkeypatch.setattr(signals._thread, "start_new_thread", lambda *args: None)
    monkeypatch.setattr(cli.f5py, "main", run)
    signals.raise_on_signals(cli.main.__code__)
    assert cli._status([]) == 130
    assert "interrupted" in capfd.readouterr().err
    signals.raise_on_signals(cli.main.__code__)
    assert signals.waiting() is None
