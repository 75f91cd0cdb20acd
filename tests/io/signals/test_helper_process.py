"""Processes beside this one start with no more than they need."""

from __future__ import annotations

import errno
import importlib.util
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from f5py.io.signals.helper_process import HelperProcess

from ...made_data import run_process

#: Runs in the other process.
_MODULE = """
import os
import sys
import h5py

n_threads = len(os.listdir("/proc/self/task"))

def tell_what_there_is(connection):
    connection.send(n_threads)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc")
def test_a_helper_has_no_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    (tmp_path / "what_there_is.py").write_text(_MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    process = HelperProcess(importlib.import_module("what_there_is").tell_what_there_is)
    try:
        assert process.connection.recv() == 1
    finally:
        process.close()


@pytest.mark.parametrize("given", [None, "2"])
def test_the_command_line_has_no_threads_unless_told(given: str | None):
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    environment |= {} if given is None else {"OPENBLAS_NUM_THREADS": given}
    program = "import atexit, os\natexit.register(lambda: print(os.environ['OPENBLAS_NUM_THREADS']))\n"
    program += "from f5py.cli import main\nmain(['--version'])"
    found = run_process([sys.executable, "-c", program], env=environment)
    assert found.stdout.split()[-1].decode() == (given or "1")


def answer(connection) -> None:
    """Send back what comes, in the other process."""
    while (message := connection.recv()) is not None:
        connection.send(message)


def test_a_process_outlives_the_thread_that_has_started_it():
    started = []

    def start() -> None:
        started.append(HelperProcess(answer))
        started[0].connection.send("first")
        assert started[0].connection.poll(60)  # it has asked the system by then to end with its parent

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    (process,) = started
    try:
        assert process.connection.recv() == "first"
        time.sleep(0.2)
        assert process.status is None
        process.connection.send("second")
        assert process.connection.recv() == "second"
        process.connection.send(None)
        process.wait(60)
        assert process.status == 0
    finally:
        process.close()


def test_a_thread_is_told_why_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", fail)
    with ThreadPoolExecutor(1) as threads, pytest.raises(OSError, match=os.strerror(errno.EAGAIN)):
        threads.submit(HelperProcess, answer).result()
