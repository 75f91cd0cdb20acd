"""End a run with a test that hangs, with one thread for all tests: one for each takes longer than most tests."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

#: How often is looked, in seconds.
_INTERVAL = 5.0


class Watchdog:
    """What pytest-timeout's method ``thread`` does, without a thread for each test."""

    def __init__(self) -> None:
        self._watched: tuple[float, pytest.Item, Any] | None = None
        self._thread: threading.Thread | None = None

    def watch(self, item: pytest.Item, settings: Any) -> None:
        """From now on, until the test is done."""
        self._watched = time.monotonic() + settings.timeout, item, settings
        item.cancel_timeout = self._forget  # type: ignore[attr-defined]  # pytest-timeout calls it
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._look, daemon=True)
            self._thread.start()

    def _forget(self) -> None:
        self._watched = None

    def _look(self) -> None:
        from pytest_timeout import timeout_timer

        while (watched := self._watched) is None or time.monotonic() < watched[0]:
            time.sleep(_INTERVAL)
        timeout_timer(*watched[1:])  # which comes back in a debugger only
