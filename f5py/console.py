"""Messages on standard error, in the reference tools' layout, and progress bars.

A message is ``[who::LEVEL] text`` (in colour on a terminal) or, for plain notes, ``[who] text``.
Results never go through here: they belong to standard output or ``-o``.
"""

from __future__ import annotations

import sys

_COLOURS = {"ERROR": 31, "SUCCESS": 32, "WARNING": 33, "INFO": 34, "DEBUG": 35}


def _message(level: str, who: str, text: str) -> None:
    if sys.stderr.isatty():
        text = f"\x1b[1;{_COLOURS[level]}m{text}\x1b[0m"
    print(f"[{who}::{level}] {text}", file=sys.stderr, flush=True)


def note(who: str, text: str) -> None:
    """Print a plain line about what is going on."""
    print(f"[{who}] {text}", file=sys.stderr, flush=True)


def info(who: str, text: str) -> None:
    """Print advice or something the user may want to know."""
    _message("INFO", who, text)


def warning(who: str, text: str) -> None:
    """Print something that probably is not what the user wants."""
    _message("WARNING", who, text)


def error(who: str, text: str) -> None:
    """Print why the command cannot go on or has failed."""
    _message("ERROR", who, text)
