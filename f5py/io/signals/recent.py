"""Cache of recently used things: open files, and pieces of them."""

from __future__ import annotations

import errno
import os
import re
import resource
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

#: Errors of the machine: a file that cannot be opened because of them is not a bad one.
SYSTEM_ERRORS = (errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOMEM, errno.ESTALE)
_TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)

#: How libraries spell the number of an error in its text.
_NUMBER = re.compile(r"errno[ =]+(\d+)", re.IGNORECASE)

#: So many of the files that a process may have open are left to everything else.
_OTHER_FILES = 24
#: Open files that common systems allow a process.
_COMMON_LIMIT = 1024

Key = TypeVar("Key")
Value = TypeVar("Value")


def raise_if_of_machine(problem: BaseException, path: str) -> None:
    """Raise `OSError`, with the file's name, if an error of the machine is what a problem came from."""
    cause: BaseException | None = problem
    while cause is not None:
        found = _NUMBER.search(str(cause))
        number = getattr(cause, "errno", None) or (int(found[1]) if found else None)
        if number in SYSTEM_ERRORS:
            raise OSError(number, os.strerror(number), path) from None
        cause = cause.__cause__ or cause.__context__


class Recent(Generic[Key, Value]):
    """A bounded table of values that are made when they are first asked for; those used last stay.

    If the system has no more files to give, fewer are kept from then on.

    Parameters
    ----------
    make : callable
        From a key to its value. What it raises goes to the caller, and nothing is kept then.
    drop : callable, optional
        Called with each value that goes.
    """

    def __init__(
        self, make: Callable[[Key], Value], most: int, drop: Callable[[Value], object] = lambda value: None
    ) -> None:
        self._make = make
        self._most = most
        self._drop = drop
        #: Used last is last.
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value:
        """Return the value of a key. One more than `most` is never held: the oldest goes before it is made."""
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        while len(self._values) >= self._most:
            self._drop_oldest()
        while True:
            try:
                value = self._make(key)
                break
            except OSError as problem:
                if problem.errno not in _TOO_MANY_FILES or not self._values:
                    raise
                self._most = max(len(self._values), 1)
                self._drop_oldest()
        self._values[key] = value
        return value

    def clear(self) -> None:
        """Drop all values."""
        while self._values:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, value = self._values.popitem(last=False)
        self._drop(value)


def most_open(wanted: int) -> int:
    """Choose how many files to keep open, at most `wanted`: a share of what the system allows the process."""
    try:
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except OSError:  # sandboxes may keep that to themselves
        allowed = _COMMON_LIMIT
    return wanted if allowed == resource.RLIM_INFINITY else max(1, min(wanted, (allowed - _OTHER_FILES) // 2))


def close_file(file: object) -> None:
    """Close an open file; a text, which stands for a file that could not be opened, needs nothing."""
    if not isinstance(file, str):
        file.close()  # type: ignore[attr-defined]
