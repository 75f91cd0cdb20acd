"""Warnings about input, which the option ``--strict`` makes errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from f5py import console
from f5py.errors import InputFileError

_Result = TypeVar("_Result")
_is_strict = False


def input_warning(who: str, text: str) -> None:
    """Print a warning about input that is damaged, incomplete or does not fit together.

    Raises
    ------
    InputFileError
        If the command that is at work was given ``--strict``.
    """
    if _is_strict:
        raise InputFileError(f"{text} (--strict)")
    console.warning(who, text)


def obeys_strict(run: Callable[[Any], _Result]) -> Callable[[Any], _Result]:
    """Let a command's function, which is given its options, obey the one called `strict`."""

    @functools.wraps(run)
    def obedient(options: Any) -> _Result:
        global _is_strict
        before, _is_strict = _is_strict, options.strict
        try:
            return run(options)
        finally:
            _is_strict = before

    return obedient
