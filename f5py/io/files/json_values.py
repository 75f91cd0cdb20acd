"""Validated values of JSON files that may be damaged or foreign."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.errors import DamagedValueError

#: Largest integer that arrays hold.
MOST = 2**63 - 1


class JsonObject:
    """Members of a JSON object, checked for type and bounds; all raise `DamagedValueError`."""

    def __init__(self, members: Any, name: str = "") -> None:
        if not isinstance(members, dict):
            raise DamagedValueError(f"{name or 'the text'} is not an object")
        self.members: dict[str, Any] = members
        self._name = name

    @classmethod
    def of_text(cls, text: bytes) -> JsonObject:
        """Parse a text."""
        try:
            return cls(json.loads(text))
        except DamagedValueError:
            raise
        except (ValueError, RecursionError) as problem:
            raise DamagedValueError(f"is not JSON ({problem})") from None

    def check_names(self, names: Iterable[str]) -> None:
        """Raise unless exactly these members exist."""
        known = set(names)
        if missing := sorted(known - self.members.keys()):
            raise DamagedValueError(f"{self._called(missing[0])} is missing")
        if unknown := sorted(self.members.keys() - known):
            raise DamagedValueError(f"{self._called(unknown[0][:40])} is not known")

    def integer(self, name: str, least: int = 0, most: int = MOST) -> int:
        """Return an integer within bounds."""
        value = self._pop(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self._wrong(name, f"an integer from {least} to {most}")
        return value

    def number(self, name: str, least: float = 0.0) -> float:
        """Return a finite number that is at least `least`."""
        value = self._pop(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self._wrong(name, "a number")
        if not least <= value <= MOST or not math.isfinite(value):
            raise self._wrong(name, f"a finite number from {least:g} on")
        return float(value)

    def flag(self, name: str) -> bool:
        value = self._pop(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def text(self, name: str) -> str:
        """Return a string that can be a path; bytes that are not UTF-8 are surrogates."""
        value = self._pop(name)
        if not is_text(value):
            raise self._wrong(name, "a text")
        return str(value)

    def texts(self, name: str, most: int = MOST) -> list[str]:
        """Return a list of at most `most` strings."""
        value = self._pop(name)
        if not isinstance(value, list) or len(value) > most or not all(map(is_text, value)):
            raise self._wrong(name, "a list of texts")
        return value

    def integers(self, name: str, shape: tuple[int, ...], least: int = 0) -> NDArray[np.int64]:
        """Return integers of an array's shape, with -1 for any length."""
        return _array(self._pop(name), np.int64, shape, least, f"{self._called(name)} does not have integers")

    def numbers(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return finite numbers of an array's shape, with -1 for any length."""
        return _array(self._pop(name), np.float64, shape, -math.inf, f"{self._called(name)} does not have numbers")

    def object(self, name: str) -> JsonObject:
        return JsonObject(self._pop(name), self._called(name))

    def seconds(self, name: str) -> dict[str, float]:
        """Return durations by name."""
        times = self.object(name)
        return {one: times.number(one) for one in times.members}

    def is_null(self, name: str) -> bool:
        return self._pop(name) is None

    def _pop(self, name: str) -> Any:
        if name not in self.members:
            raise DamagedValueError(f"{self._called(name)} is missing")
        return self.members[name]

    def _wrong(self, name: str, what: str) -> DamagedValueError:
        return DamagedValueError(f"{self._called(name)} is not {what}")

    def _called(self, name: str) -> str:
        return f"{self._name}.{name}" if self._name else name


def is_text(value: object) -> bool:
    """Return whether a value is a string that the file system accepts as a name."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def _array(value: Any, kind: type, shape: tuple[int, ...], least: float, problem: str) -> NDArray[Any]:
    """Convert a nested list to an array of one shape; `problem` begins the error message."""
    try:
        array = np.array(value) if value != [] else np.zeros([max(size, 0) for size in shape], kind)
    except (ValueError, OverflowError, RecursionError):
        raise DamagedValueError(f"{problem} of one shape") from None
    fits = array.ndim == len(shape) and all(want in (-1, size) for want, size in zip(shape, array.shape, strict=True))
    if not fits or array.dtype.kind not in ("i" if kind is np.int64 else "if"):
        raise DamagedValueError(f"{problem} of the right number and size")
    if array.size and not (np.isfinite(array).all() and array.min() >= least):
        raise DamagedValueError(f"{problem} within bounds")
    return array.astype(kind)
