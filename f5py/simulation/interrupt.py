"""Ctrl-C that is not lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Remember Ctrl-C in the block, and give a function that raises `KeyboardInterrupt` if there was one.

    HDF5 objects are released in callbacks in which Python drops every exception; a Ctrl-C that arrives there
    would do nothing. Outside of the main thread, which alone receives it, this does nothing.
    """
    pending = False

    def remember(number: int, frame: Any) -> None:
        nonlocal pending
        pending = True

    def check() -> None:
        if pending:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield check
        return
    previous = signal.signal(signal.SIGINT, remember)
    try:
        yield check
        check()
    finally:
        signal.signal(signal.SIGINT, previous)
