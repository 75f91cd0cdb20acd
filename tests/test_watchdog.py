"""The thread that ends a run with a test that hangs."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from . import watchdog
from .patience import PATIENCE


def test_a_test_that_takes_too_long_ends_the_run(monkeypatch: pytest.MonkeyPatch):
    """And one that has ended does not."""
    ended: list[object] = []
    n_looks, late = 0, threading.Event()

    def end(item: Any, settings: Any) -> None:
        ended.extend([item, settings])
        late.set()

    def sleep(seconds: float) -> None:
        nonlocal n_looks
        n_looks += 1
        if n_looks == 1:
            done.cancel_timeout()
            clock.now = 11.0
        elif n_looks == 3:
            dog.watch(hung, SimpleNamespace(timeout=10))
        elif n_looks == 5:
            clock.now = 22.0

    done, hung = SimpleNamespace(), SimpleNamespace()
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now, sleep=sleep)
    monkeypatch.setattr(pytest.importorskip("pytest_timeout"), "timeout_timer", end)
    monkeypatch.setattr(watchdog, "time", clock)
    dog: Any = watchdog.Watchdog()
    dog.watch(done, SimpleNamespace(timeout=10))
    assert late.wait(PATIENCE)
    assert ended == [hung, SimpleNamespace(timeout=10)]
    assert n_looks == 5
