"""Progress of long work: a bar on a terminal, or calls of a function for callers from Python."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from f5py.messages import console

#: Told the unit, how many are done, and of how many if that is known or can be estimated.
Listener = Callable[[str, int, int | None], object]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
#: Units of which there are so many that they are shown in millions, and what these are called.
_MILLIONS = {"bases": "Mbases", "bytes": "MB"}

_SECONDS_BETWEEN = 0.1
#: Between lines in a log.
SECONDS_BETWEEN_LINES = 60.0


@contextmanager
def on_progress(listener: Listener | None) -> Iterator[None]:
    """Report the progress of this thread to `listener` while inside."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


class Progress:
    """Amount of work done, given to `show` as (done, total); may be used by several threads."""

    def __init__(self, total: int | None, show: Callable[[int, int | None], object]) -> None:
        self._total = total
        self._done = 0
        self._show = show
        self._lock = threading.Lock()

    def advance(self, count: int) -> None:
        """Add to the work done."""
        with self._lock:
            self._done += count
            self._show(self._done, self._total)

    def expect(self, total: int | None) -> None:
        """Set the expected total."""
        self._total = total


def is_watched() -> bool:
    """Return whether progress is shown to anyone."""
    return _listener.get() is not None or console.is_terminal() or console.is_logged()


@contextmanager
def progress(unit: str, total: int | None = None) -> Iterator[Progress]:
    """Show a progress bar on a terminal, write a line a minute into a log, or tell the caller's listener.

    `unit` is such as "reads"; "bases" and "bytes" are shown in millions.
    """
    if not is_watched():
        yield Progress(total, lambda *_: None)
        return
    if (listener := _listener.get()) is not None:
        yield Progress(total, lambda done, total: listener(unit, done, total))
        return
    if not console.is_terminal():

        def write(done: int, total: int | None, words: str) -> None:
            share = f"{done / total:.0%}, ".replace("%", " %") if total else ""
            console.note("progress", share + words)

        yield Progress(total, _Throttle(unit, SECONDS_BETWEEN_LINES, time.perf_counter(), write))
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[words]}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task: Any = bar.add_task("", total=total, words=unit)

        def update(done: int, total: int | None, words: str) -> None:
            bar.update(task, completed=done, total=total, words=words)

        yield Progress(total, _Throttle(unit, _SECONDS_BETWEEN, 0.0, update))


class _Throttle:
    """Show progress in words at most every `seconds`; the last time was `shown`."""

    def __init__(self, unit: str, seconds: float, shown: float, show: Callable[[int, int | None, str], object]) -> None:
        self._unit, self._seconds, self._shown, self._show = unit, seconds, shown, show
        self._started: tuple[float, int] | None = None

    def __call__(self, done: int, total: int | None) -> None:
        now = time.perf_counter()
        # the rate is that from the first piece on, before which there may have been much to prepare
        self._started = self._started or (now, done)
        if now - self._shown >= self._seconds:
            self._shown = now
            self._show(done, total, in_words(self._unit, done, total, now - self._started[0], self._started[1]))


def in_words(unit: str, done: int, total: int | None, seconds: float, before: int = 0) -> str:
    """Format amount, rate and remaining time; all but `before` were done in `seconds`."""
    words = _amount(unit, done) if total is None else f"{_amount(unit, done)} of {_amount(unit, total)}"
    shown = f"{words} {_MILLIONS.get(unit, unit)}"
    if done <= before or seconds < 1.0:
        return shown
    rate = (done - before) / seconds
    shown += f", {_amount(unit, rate)} {_MILLIONS.get(unit, unit)}/s"
    if total is not None and total > done:
        shown += f", {_duration((total - done) / rate)} left"
    return shown


def _amount(unit: str, count: float) -> str:
    if unit in _MILLIONS:
        return f"{count / 1e6:.1f}" if count < 1e9 else f"{count / 1e6:,.0f}"
    return f"{count:,.0f}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
