"""Messages: on standard error for the command line, else through `logging`.

A message is ``[who::LEVEL] text`` (in color on a terminal) or, for plain notes, ``[who] text``. The logger is called
``f5py``. Results never go through here: they belong to standard output or ``-o``.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, TypeVar

from f5py.errors import InputFileError

_Result = TypeVar("_Result")
#: Problem of text that may have been cut.
NO_LAST_LINE_END = "its last line has no end; if the file was cut short, copy or make it again"
#: Commands at work that were given ``--strict``; in a program that runs several at the same time all obey it.
_n_strict = 0
#: Characters that terminals take for orders; a tab and a line end are none.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_COLOR_CODES = re.compile(r"\x1b\[[0-9;]*m")
_COLORS = {"ERROR": 31, "WARNING": 33, "INFO": 34}
_is_command_line = False
_is_quiet = False
_log: TextIO | None = None
#: Lists that take the texts of warnings.
_recorders: list[list[str]] = []
_MOST_RECORDED = 100
#: Warnings of one kind that a command says; the report has more of them.
_MOST_OF_A_KIND = 5
_said: Counter[str] = Counter()
#: Functions that texts go through.
_changes: list[Callable[[str], str]] = []
#: Gets the level, the name, the text and the kind of each message instead of the user.
Listener = Callable[[str, str, str, "str | None"], object]
_listener: Listener | None = None


@contextmanager
def on_standard_error() -> Iterator[None]:
    """Speak to a user at the command line while inside."""
    global _is_command_line, _is_quiet
    before, _is_command_line = _is_command_line, True
    _said.clear()
    try:
        yield
    finally:
        _is_command_line, _is_quiet = before, False
        log_to(None)


def be_quiet() -> None:
    """Show only warnings and errors at the command line from now on."""
    global _is_quiet
    _is_quiet = True


@contextmanager
def hushed() -> Iterator[None]:
    """Suppress notes in this context."""
    global _is_quiet
    before, _is_quiet = _is_quiet, True
    try:
        yield
    finally:
        _is_quiet = before


def log_to(path: str | None) -> None:
    """Append all messages to a file, too; None: no more. Raises `OSError` if it cannot be written."""
    global _log
    if _log is not None:
        _log.close()
    _log = None if path is None else open(path, "a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115


@contextmanager
def recorded_warnings() -> Iterator[list[str]]:
    """Record the texts of the first hundred warnings of this context in the yielded list."""
    texts: list[str] = []
    if not _recorders:
        _said.clear()
    _recorders.append(texts)
    try:
        yield texts
    finally:
        _recorders[:] = [one for one in _recorders if one is not texts]


def is_terminal() -> bool:
    """Return whether messages go to a terminal."""
    return _is_command_line and not _is_quiet and sys.stderr is not None and sys.stderr.isatty()


def is_logged() -> bool:
    """Return whether messages go to a file or another program."""
    shown = not _is_quiet and sys.stderr is not None and not sys.stderr.isatty()
    return _is_command_line and (shown or _log is not None) and not is_terminal()


def forward_messages(listener: Listener) -> None:
    """Pass all messages of this worker process to a function from now on."""
    global _listener
    _listener = listener


def add_text_filter(change: Callable[[str], str]) -> None:
    """Let all texts go through a function first."""
    if change not in _changes:
        _changes.append(change)


def _changed(text: str) -> str:
    for change in _changes:
        text = change(text)
    return text


def _harmless(text: str) -> str:
    """Escape control characters, which names of reads and files may have."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", _changed(text))


def _message(level: str, who: str, text: str, kind: str | None = None) -> None:
    """Print a message; plain notes have the level ""."""
    if _listener is not None:
        _listener(level, who, text, kind)
        return
    text = _harmless(text)
    if level and _has_colors():
        text = f"\x1b[1;{_COLORS[level]}m{text}\x1b[0m"
    author = f"[{who}{level and '::'}{level}] " if _is_command_line else f"{who}: "
    _say(author + text, level or "INFO")


def _has_colors() -> bool:
    """Return whether messages may be colored; see https://no-color.org."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def note(who: str, text: str) -> None:
    """Print a plain line on the state of the run."""
    _message("", who, text)


def result(who: str, text: str, output: str) -> None:
    """Report results; if they go to a pipe, only on a terminal."""
    if output != "-" or is_terminal() or not _is_command_line:
        note(who, text)


def plain(text: str) -> None:
    """Print a line as it is."""
    _say(text)


def _say(text: str, level: str = "INFO") -> None:
    if not _is_command_line:
        import logging

        logging.getLogger("f5py").log(getattr(logging, level), text)
        return
    if _log is not None:
        with suppress(OSError):
            print(_COLOR_CODES.sub("", text), file=_log, flush=True)
    is_shown = not _is_quiet or level in ("WARNING", "ERROR")
    if is_shown and sys.stderr is not None:  # closed by whoever started the program; print would take standard output
        with suppress(OSError):  # a full disk or a closed pipe for messages must not end the work
            print(text, file=sys.stderr, flush=True)


def info(who: str, text: str) -> None:
    """Print advice."""
    _message("INFO", who, text)


def warning(who: str, text: str, kind: str | None = None) -> None:
    """Print a warning, of one `kind` only the first few."""
    for texts in _recorders:
        if len(texts) < _MOST_RECORDED:
            texts.append(_changed(text))
    if kind is not None and _listener is None:
        _said[kind] += 1
        if _said[kind] > _MOST_OF_A_KIND:
            return
        if _said[kind] == _MOST_OF_A_KIND:
            text += f" (no more warnings of this kind are shown: {kind})"
    _message("WARNING", who, text, kind)


def input_warning(who: str, text: str, kind: str | None = None) -> None:
    """Print a warning about input that is damaged, incomplete or does not fit together.

    Raises `InputFileError` if the running command was given ``--strict``. For `kind` see `warning`.
    """
    if _n_strict:
        raise InputFileError(f"{text} (--strict)")
    warning(who, text, kind)


def obeys_strict(run: Callable[..., _Result]) -> Callable[..., _Result]:
    """Make a command, a function of its options, obey their `strict`."""

    @functools.wraps(run)
    def obedient(options: Any, *more: Any) -> _Result:
        global _n_strict
        _n_strict += bool(options.strict)
        try:
            return run(options, *more)
        finally:
            _n_strict -= bool(options.strict)

    return obedient


def error(who: str, text: str) -> None:
    """Print the error that ends the command."""
    _message("ERROR", who, text)


class Stopwatch:
    """Sum of the wall time with at least one thread inside of a ``with`` block."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._seconds = 0.0
        self._clock = clock
        self._started = 0.0
        self._n_inside = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Stopwatch:
        with self._lock:
            if self._n_inside == 0:
                self._started = self._clock()
            self._n_inside += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._seconds += self._clock() - self._started

    @property
    def seconds(self) -> float:
        """The time up to now."""
        with self._lock:
            return self._seconds + (self._clock() - self._started if self._n_inside else 0.0)


_PROCESS_STARTED = time.perf_counter()


def cpu_share() -> float:
    """CPU seconds per wall second since the program started."""
    return time.process_time() / max(time.perf_counter() - _PROCESS_STARTED, 1e-9)
