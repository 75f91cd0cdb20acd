"""Time that tests wait for what must come."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds. It comes at once, or later on a machine that has other things to do; only a test that fails waits so long.
PATIENCE = 300.0


def comes_true(condition: Callable[[], object]) -> bool:
    """Wait until a condition holds; return whether it does."""
    end = time.monotonic() + PATIENCE
    while not (holds := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return bool(holds)
