"""Calls of the system that are refused one after the other, in this process: of what Python's modules call."""

from __future__ import annotations

import builtins
import errno
import fcntl
import mmap
import os
import re
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock


class Kind(NamedTuple):
    """A kind of calls: the functions that make them, and with what error they are refused.

    Attributes
    ----------
    functions : list of (module, str)
    number : int
        Of the error.
    is_needed : bool
        A run may end when such a call is refused.
    applies : callable
        Whether a call with these arguments is of the kind.
    """

    functions: list[tuple[Any, str]]
    number: int
    is_needed: bool
    applies: Callable[..., bool] = lambda *_, **__: True


def _of_system(*names: str) -> list[tuple[Any, str]]:
    return [(os, name) for name in names]


def _makes_a_file(path: Any, how: str | int = "r", *_: Any, **options: Any) -> bool:
    """Return whether a call of `open` or `os.open` writes to a file that has a name, and opens it itself."""
    if not isinstance(path, (str, bytes, os.PathLike)) or options.get("opener"):
        return False
    return bool(how & os.O_CREAT) if isinstance(how, int) else any(letter in how for letter in "wxa+")


def _reads_a_file(path: Any, how: str = "r", *_: Any, **options: Any) -> bool:
    is_named = isinstance(path, (str, os.PathLike)) and not str(path).startswith(("/proc/", "/sys/"))
    return is_named and not _makes_a_file(path, how, **options)


#: Calls that a run can do without, then those that it needs, at least where they concern its outputs.
KINDS = {
    "change a mode": Kind(_of_system("chmod", "fchmod"), errno.EPERM, False),
    "change an owner": Kind(_of_system("chown", "fchown", "lchown"), errno.EPERM, False),
    "change a time": Kind(_of_system("utime"), errno.EPERM, False),
    "make a file in memory": Kind(_of_system("memfd_create"), errno.ENOSYS, False),
    "make a second name": Kind(_of_system("link"), errno.EPERM, False),
    "remove a file": Kind(_of_system("unlink", "remove"), errno.EPERM, False),
    "remove a folder": Kind(_of_system("rmdir"), errno.EBUSY, False),
    "wait for the disk": Kind(_of_system("fsync", "fdatasync"), errno.EINVAL, False),
    "copy from file to file": Kind(_of_system("copy_file_range", "sendfile"), errno.EPERM, False),
    "lock": Kind([(fcntl, "flock"), (fcntl, "lockf")], errno.ENOLCK, False),
    "cores": Kind(_of_system("sched_getaffinity", "sched_setaffinity"), errno.EPERM, False),
    "priority": Kind(_of_system("getpriority", "setpriority", "nice"), errno.EPERM, False),
    "free space": Kind(_of_system("statvfs"), errno.ENOSYS, False),
    "limits": Kind([(resource, "getrlimit")], errno.EPERM, False),
    "map into memory": Kind([(mmap, "mmap")], errno.ENODEV, False),
    "reach the disk": Kind(_of_system("fsync", "fdatasync"), errno.EIO, True),
    "cut": Kind(_of_system("ftruncate", "truncate"), errno.EPERM, True),
    "make a folder": Kind(_of_system("mkdir"), errno.EROFS, True),
    "give a name": Kind(_of_system("rename", "replace"), errno.EACCES, True),
    "make a link": Kind(_of_system("symlink"), errno.EPERM, True),
    "another descriptor": Kind(_of_system("dup", "dup2", "pipe"), errno.EMFILE, True),
    "working folder": Kind(_of_system("getcwd"), errno.ENOENT, True),
    "list a folder": Kind(_of_system("scandir", "listdir"), errno.EACCES, True),
    "start a process": Kind([(subprocess, "Popen")], errno.EAGAIN, True),
    "make a file": Kind([(os, "open"), (builtins, "open")], errno.EACCES, True, _makes_a_file),
    "read a file": Kind([(builtins, "open")], errno.EACCES, True, _reads_a_file),
}  # fmt: skip


def _place() -> str:
    """Find the line of f5py that leads to where this is called."""
    frame = sys._getframe(2)
    while frame is not None and "/f5py/" not in frame.f_code.co_filename:
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _name(arguments: tuple[Any, ...]) -> str:
    """Name the file of a call, without what is made up."""
    paths = [one for one in arguments[-2:] if isinstance(one, (str, Path))]
    return re.sub("[0-9a-f]{8,}|tmp[a-z0-9_]+", "*", os.path.basename(paths[-1])) if paths else ""


class Refusal:
    """The calls of a kind, of which one is refused.

    Parameters
    ----------
    kind : Kind
    nth : int
        Which one, counted from 1; 0 for none.

    Attributes
    ----------
    places : list of str
        The line of f5py that makes each call, directly or through others, and the name of the file.
    is_done : bool
    """

    def __init__(self, kind: Kind, nth: int) -> None:
        self.places: list[str] = []
        self.is_done = False
        self._kind, self._nth = kind, nth
        self._lock = threading.Lock()

    @contextmanager
    def __call__(self) -> Iterator[Refusal]:
        with ExitStack() as stack:
            for module, name in self._kind.functions:
                if hasattr(module, name):
                    stack.enter_context(mock.patch.object(module, name, self._instead_of(getattr(module, name))))
            yield self

    def _instead_of(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if self._kind.applies(*arguments, **options):
                place = f"{_place()} {_name(arguments)}"
                with self._lock:
                    self.places.append(place)
                    is_that_one = len(self.places) == self._nth
                if is_that_one:
                    self.is_done = True
                    names = [one for one in arguments[:1] if isinstance(one, (str, Path))]
                    raise OSError(self._kind.number, os.strerror(self._kind.number), *names)
            return real(*arguments, **options)

        return call


class Counts:
    """The calls of all kinds, none of which is refused.

    Attributes
    ----------
    of : dict of str to Refusal
    """

    def __init__(self) -> None:
        self.of = {name: Refusal(kind, 0) for name, kind in KINDS.items()}

    @contextmanager
    def __call__(self) -> Iterator[Counts]:
        with ExitStack() as stack:
            for one in self.of.values():
                stack.enter_context(one())
            yield self
