"""Caches of recently used objects, such as open files."""

import errno
import os
import re
import resource
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

#: Errors of the machine, not of a file.
SYSTEM_ERRORS = (errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOMEM, errno.ESTALE)
_TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)

#: Error numbers in texts of libraries.
_NUMBER = re.compile(r"errno[ =]+(\d+)", re.IGNORECASE)

#: Descriptors left for other files.
_OTHER_FILES = 24
#: Usual limit of open files.
_COMMON_LIMIT = 1024

Key = TypeVar("Key")
Value = TypeVar("Value")


def reraise_system_error(problem: BaseException, path: str) -> None:
    """Raise `OSError` with the file's name if a problem was caused by the machine."""
    cause: BaseException | None = problem
    while cause is not None:
        found = _NUMBER.search(str(cause))
        number = getattr(cause, "errno", None) or (int(found[1]) if found else None)
        if number in SYSTEM_ERRORS:
            raise OSError(number, os.strerror(number), path) from None
        cause = cause.__cause__ or cause.__context__


class LruCache(Generic[Key, Value]):
    """Bounded cache of values made on demand; the least recently used goes first.

    It shrinks if the system runs out of file descriptors. Errors of `make` go to the caller; `drop` is called with each
    evicted value.
    """

    def __init__(
        self, make: Callable[[Key], Value], most: int, drop: Callable[[Value], object] = lambda value: None
    ) -> None:
        self._make = make
        self._most = most
        self._drop = drop
        #: Least recently used first.
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value:
        """Return the value of a key; evict before making a new one."""
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
        while self._values:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, value = self._values.popitem(last=False)
        self._drop(value)


def most_open(wanted: int) -> int:
    """Limit a number of open files to a share of the process's limit."""
    try:
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except OSError:  # in sandboxes
        allowed = _COMMON_LIMIT
    return wanted if allowed == resource.RLIM_INFINITY else max(1, min(wanted, (allowed - _OTHER_FILES) // 2))


def close_file(file: object) -> None:
    """Close an open file; ignore a str, the text of a failure."""
    if not isinstance(file, str):
        file.close()  # type: ignore[attr-defined]
