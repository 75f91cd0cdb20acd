"""Ctrl-C that is heeded between two steps of a work, and not in the middle of one, and while a thread is waited for."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")

#: How often who waits looks whether a signal has come.
_LOOK_SECONDS = 0.1


def wait_for_event(event: threading.Event) -> None:
    """Wait until an event is set, in the main thread, where signals raise exceptions.

    Python looks for signals between two instructions, and a wait of the C library is ended by one. What comes after the
    last look, and before that wait has begun, or in another thread, would be heeded only when the wait is over.
    """
    while not event.wait(_LOOK_SECONDS):
        pass


def call_in_thread(function: Callable[[], Result], name: str) -> Result:
    """Call a function in a thread and wait for it, so that a signal is heeded at once while compiled code runs.

    Parameters
    ----------
    name : str
        Of the thread, which goes on after a signal.
    """
    outcome: Future[Result] = Future()
    is_done = threading.Event()

    def call() -> None:
        try:
            outcome.set_result(function())
        except BaseException as problem:
            outcome.set_exception(problem)
        finally:
            is_done.set()

    threading.Thread(target=call, name=name, daemon=True).start()
    wait_for_event(is_done)
    return outcome.result()


class Interrupt:
    """Sign that Ctrl-C has come."""

    def __init__(self) -> None:
        self.has_come = False

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if it has come."""
        if self.has_come:
            raise KeyboardInterrupt


@contextmanager
def remembered_interrupt() -> Iterator[Interrupt]:
    """Remember the first Ctrl-C in the block, which does nothing else; a second one does what it did before.

    An exception may come between any two instructions, also where libraries are not prepared for it, and HDF5 objects
    are released in callbacks in which Python drops every exception. Outside of the main thread, which alone receives
    Ctrl-C, and where it is ignored, this does nothing.
    """
    interrupt = Interrupt()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is signal.SIG_IGN:
        yield interrupt
        return

    def remember(number: int, frame: Any) -> None:
        interrupt.has_come = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, remember)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
