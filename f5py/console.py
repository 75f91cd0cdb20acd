"""Messages and progress: on standard error for the command line, else through `logging` and a callback.

A message is ``[who::LEVEL] text`` (in colour on a terminal) or, for plain notes, ``[who] text``. The logger is called
``f5py``. Results never go through here: they belong to standard output or ``-o``.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

#: What a caller from Python is told of progress: the unit, how many are done, and of how many if that is known.
Listener = Callable[[str, int, int | None], object]

#: Characters that terminals take for orders; a tab and a line end are none.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_COLOURS = {"ERROR": 31, "WARNING": 33, "INFO": 34}
_is_command_line = False
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def on_standard_error() -> Iterator[None]:
    """Speak to a user at the command line while inside."""
    global _is_command_line
    before, _is_command_line = _is_command_line, True
    try:
        yield
    finally:
        _is_command_line = before


@contextmanager
def progress_told_to(listener: Listener | None) -> Iterator[None]:
    """Tell `listener` of the progress of what this thread does while inside."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def _is_terminal() -> bool:
    return _is_command_line and sys.stderr is not None and sys.stderr.isatty()


def _harmless(text: str) -> str:
    """Names of reads and files come from elsewhere: what in them would steer a terminal is shown as a number."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _message(level: str, who: str, text: str) -> None:
    text = _harmless(text)
    if _is_terminal():
        text = f"\x1b[1;{_COLOURS[level]}m{text}\x1b[0m"
    _say(f"[{who}::{level}] {text}" if _is_command_line else f"{who}: {text}", level)


def note(who: str, text: str) -> None:
    """Print a plain line about what is going on."""
    text = _harmless(text)
    _say(f"[{who}] {text}" if _is_command_line else f"{who}: {text}")


def plain(text: str) -> None:
    """Print a line as it is."""
    _say(text)


def _say(text: str, level: str = "INFO") -> None:
    if not _is_command_line:
        import logging

        logging.getLogger("f5py").log(getattr(logging, level), text)
    elif sys.stderr is not None:  # closed by whoever started the program; print would take standard output then
        with suppress(OSError):  # a full disk or a closed pipe for messages must not end the work
            print(text, file=sys.stderr, flush=True)


def info(who: str, text: str) -> None:
    """Print advice or something the user may want to know."""
    _message("INFO", who, text)


def warning(who: str, text: str) -> None:
    """Print something that probably is not what the user wants."""
    _message("WARNING", who, text)


def error(who: str, text: str) -> None:
    """Print why the command cannot go on or has failed."""
    _message("ERROR", who, text)


class Stopwatch:
    """Adds up the wall time in which at least one thread is inside of a ``with`` block."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._started = 0.0
        self._n_inside = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Stopwatch:
        with self._lock:
            if self._n_inside == 0:
                self._started = time.perf_counter()
            self._n_inside += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self.seconds += time.perf_counter() - self._started


_PROCESS_STARTED = time.perf_counter()


def cpu_share() -> float:
    """CPU seconds per wall second since the program started."""
    return time.process_time() / max(time.perf_counter() - _PROCESS_STARTED, 1e-9)


@contextmanager
def progress(unit: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar while inside, on a terminal only, or tell the caller's listener; yields what advances it.

    Parameters
    ----------
    unit : str
        What is counted, such as "reads".
    total : int or None
        How many there will be, if known.
    """
    if (listener := _listener.get()) is not None:
        done = 0

        def tell(count: int) -> None:
            nonlocal done
            done += count
            listener(unit, done, total)

        yield tell
        return
    if not _is_terminal():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(unit), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(unit, total=total)
        yield lambda count: bar.advance(task, count)
