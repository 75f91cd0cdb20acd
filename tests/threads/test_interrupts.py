"""Ctrl-C that is remembered."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from f5py.threads.interrupts import remembered_interrupt


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


def test_nothing_comes():
    with remembered_interrupt() as interrupt:
        pass
    assert not interrupt.has_come


def test_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with remembered_interrupt() as interrupt:
        signal.raise_signal(signal.SIGINT)
    assert not interrupt.has_come
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is signal.SIG_IGN


def test_in_another_thread():
    came = []

    def work() -> None:
        with remembered_interrupt() as interrupt:
            came.append(interrupt.has_come)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert came == [False]
