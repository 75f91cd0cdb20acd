"""Warnings about input, which the option ``--strict`` makes errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from f5py.errors import InputFileError
from f5py.messages import console

_Result = TypeVar("_Result")
#: What is wrong with text that may have been cut.
NO_LAST_LINE_END = "its last line has no end; if the file was cut short, copy or make it again"
#: Commands at work that were given ``--strict``; in a program that runs several at the same time all obey it.
_n_strict = 0


def input_warning(who: str, text: str, kind: str | None = None) -> None:
    """Print a warning about input that is damaged, incomplete or does not fit together.

    Raises `InputFileError` if the command that is at work was given ``--strict``.

    Parameters
    ----------
    kind : str, optional
        What such warnings are about, if there may be many of them; see `f5py.messages.console.warning`.
    """
    if _n_strict:
        raise InputFileError(f"{text} (--strict)")
    console.warning(who, text, kind)


def obeys_strict(run: Callable[..., _Result]) -> Callable[..., _Result]:
    """Let a command's function, whose first argument are its options, obey the one called `strict`."""

    @functools.wraps(run)
    def obedient(options: Any, *more: Any) -> _Result:
        global _n_strict
        _n_strict += bool(options.strict)
        try:
            return run(options, *more)
        finally:
            _n_strict -= bool(options.strict)

    return obedient
