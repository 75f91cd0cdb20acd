"""Ctrl-C that is remembered."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from f5py.threads.interrupts import remembered_interrupt

from ..patience import PATIENCE


@pytest.fixture(autouse=True)
def usual_interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def test_the_first_is_remembered_and_the_second_heeded():
    with remembered_interrupt() as interrupt:
        interrupt.check()
        signal.raise_signal(signal.SIGINT)
        assert interrupt.has_come
        with pytest.raises(KeyboardInterrupt):
            interrupt.check()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_in_another_thread():
    came = []

    def work() -> None:
        with remembered_interrupt() as interrupt:
            came.append(interrupt.has_come)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert came == [False]


def test_a_signal_is_heeded_that_does_not_end_the_wait_of_the_c_library():
    """As one does that comes just before that begins; so does one that another thread receives."""
    program = (
        "import signal, threading, time\n"
        "from f5py.threads.interrupts import wait_for_event\n"
        "def send():\n"
        "    time.sleep(0.2)\n"
        "    signal.pthread_kill(threading.get_ident(), signal.SIGINT)\n"
        "    time.sleep(600)\n"
        "threading.Thread(target=send, daemon=True).start()\n"
        "try:\n"
        "    wait_for_event(threading.Event())\n"
        "except KeyboardInterrupt:\n"
        "    print('heeded')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout == "heeded\n"
