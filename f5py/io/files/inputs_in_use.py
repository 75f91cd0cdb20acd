"""The inputs of the commands that are running, which no output may take the place of."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from f5py.errors import UsageError
from f5py.io.files.signal_format import file_kind


class _Inputs(NamedTuple):
    """Of one command: what the paths lead to, and the files' device and inode, which links share."""

    paths: frozenset[str]
    files: frozenset[tuple[int, int]]


#: Of every command that is running; a process may run several.
_in_use: list[_Inputs] = []


@contextmanager
def inputs_in_use(paths: Iterable[str]) -> Iterator[None]:
    """Let nothing be written over these files while the block runs.

    Parameters
    ----------
    paths : iterable of str
        Links are followed; ``-`` is standard input. What is no regular file is left out.
    """
    real, files = set(), set()
    for path in paths:
        with suppress(OSError, ValueError):
            about = os.fstat(0) if path == "-" else os.stat(path)
            if stat.S_ISREG(about.st_mode):
                files.add((about.st_dev, about.st_ino))
                real.add(os.path.realpath(path))
    inputs = _Inputs(frozenset(real), frozenset(files))
    _in_use.append(inputs)
    try:
        yield
    finally:
        _in_use.remove(inputs)


def check_can_be_output(path: str) -> None:
    """Raise `UsageError` if a command that is running reads the file, or if it holds raw signals.

    The latter may be the only copy. Devices and pipes are no files that could be lost, nor is standard output (``-``)
    unless it has been redirected into an input.
    """
    check_is_not_read(path)
    if path != "-" and _is_signal_file(path):
        raise UsageError(f"{path}: is a signal file, which is never written over; give another name")


def check_is_not_read(path: str) -> None:
    """Raise `UsageError` if a command that is running reads the file; see `check_can_be_output`."""
    try:
        about = os.fstat(1) if path == "-" else os.stat(path)
    except (OSError, ValueError):
        about = None
    if about is not None and not stat.S_ISREG(about.st_mode):
        return
    real = os.path.realpath(path)
    for inputs in _in_use:
        if real in inputs.paths or (about is not None and (about.st_dev, about.st_ino) in inputs.files):
            shown = "standard output" if path == "-" else path
            raise UsageError(f"{shown}: is an input as well; give the output another name")


def _is_signal_file(path: str) -> bool:
    try:
        return os.path.isfile(path) and file_kind(path) is not None
    except (OSError, ValueError):
        return False
