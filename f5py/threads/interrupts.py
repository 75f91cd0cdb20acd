"""Deferred handling of Ctrl-C, and interruptible waits."""

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
    """Wait interruptibly for an event, in the main thread.

    Python checks for signals between instructions, and a signal ends a wait of the C library; one that arrives between
    the last check and the wait, or in another thread, would be delayed until the wait ends.
    """
    while not event.wait(_LOOK_SECONDS):
        pass


def call_in_thread(function: Callable[[], Result], name: str) -> Result:
    """Call a function in a thread and wait interruptibly, as compiled code delays signals.

    The named thread continues after a signal.
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
    """Flag of a received Ctrl-C."""

    def __init__(self) -> None:
        self.has_come = False

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if set."""
        if self.has_come:
            raise KeyboardInterrupt


@contextmanager
def remembered_interrupt() -> Iterator[Interrupt]:
    """Record the first Ctrl-C in the block without raising; a second one acts as before.

    An exception could hit libraries that are not prepared for it, and HDF5 drops exceptions in its callbacks. Without
    effect outside of the main thread, and where Ctrl-C is ignored.
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
