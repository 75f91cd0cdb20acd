"""Signals that end a run: Ctrl-C and those of batch systems raise an exception in the main thread.

Not within an import: Python takes the lock of all imports in its own code there, and an exception at the wrong place
leaves it taken. Every thread that imports something later would wait for ever. Nor while Python takes or gives back the
lock of an event or a queue, which its own code does, too: the thread at the other end would wait for ever, and the
end of the run with it. A waiting call is ended at once.
"""

import _thread
import os
import queue
import signal
import threading
import time
from contextlib import suppress
from types import CodeType
from typing import Any

#: A signal that comes at a wrong time is heeded so much later, if that is a better time.
_LATER_SECONDS = 0.02
_OF_IMPORTS = "<frozen importlib"
_OF_LOCKS = (threading.__file__, queue.__file__)
#: Functions there that wait, and are prepared for an exception meanwhile; `_shutdown` waits at Python's end.
_WAITING = ("wait", "join", "_wait_for_tstate_lock", "_shutdown")
#: Batch systems send the last two before the time is over, if they are asked to.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGXCPU)

_outermost: CodeType | None = None
_waiting: int | None = None


class TerminationSignal(KeyboardInterrupt):
    """Ended by a signal other than that of Ctrl-C, as batch systems do."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def raise_on_signals(outermost: CodeType) -> None:
    """Let SIGINT raise `KeyboardInterrupt`, and other signals of `_ENDING` `TerminationSignal`.

    `outermost` is the code of the calling function, which may be called in an import that does not count.
    """
    global _outermost, _waiting
    _outermost, _waiting = outermost, None
    for number in _ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):  # nohup ignores one
            with suppress(ValueError):  # not in the main thread
                signal.signal(number, _end)


def number_of(problem: KeyboardInterrupt) -> int:
    """Return the number of the signal that has raised an exception."""
    return problem.number if isinstance(problem, TerminationSignal) else signal.SIGINT


def waiting() -> int | None:
    """Return a received signal that could not end the run yet, if any."""
    return _waiting


def resend(number: int) -> None:
    """Resend a signal that could not end the run."""
    global _waiting
    _waiting = number

    def send() -> None:
        time.sleep(_LATER_SECONDS)
        os.kill(os.getpid(), number)

    _thread.start_new_thread(send, ())  # without locks, which the main thread may have just taken


def _end(number: int, frame: Any) -> None:
    if _is_importing(frame) or _has_a_lock(frame):
        resend(number)
    elif number == signal.SIGINT:
        raise KeyboardInterrupt
    else:
        raise TerminationSignal(number)


def _is_importing(frame: Any) -> bool:
    while frame is not None and frame.f_code is not _outermost:
        if frame.f_code.co_filename.startswith(_OF_IMPORTS):
            return True
        frame = frame.f_back
    return False


def _has_a_lock(frame: Any) -> bool:
    """Return whether Python is acquiring a lock, or has just done so, that would stay locked."""
    return frame is not None and frame.f_code.co_filename in _OF_LOCKS and frame.f_code.co_name not in _WAITING
