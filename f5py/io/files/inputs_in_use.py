"""Inputs of running commands, protected from being overwritten."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from f5py.errors import UsageError
from f5py.io.files.signal_format import file_kind

#: For each running command the real paths, and device and inode of the files.
_in_use: list[tuple[set[str], set[tuple[int, int]]]] = []


@contextmanager
def inputs_in_use(paths: Iterable[str]) -> Iterator[None]:
    """Refuse outputs over these regular files (``-`` is standard input) while the block runs."""
    real: set[str] = set()
    files: set[tuple[int, int]] = set()
    for path in paths:
        with suppress(OSError, ValueError):
            about = os.fstat(0) if path == "-" else os.stat(path)
            if stat.S_ISREG(about.st_mode):
                files.add((about.st_dev, about.st_ino))
                real.add(os.path.realpath(path))
    inputs = real, files
    _in_use.append(inputs)
    try:
        yield
    finally:
        _in_use.remove(inputs)


def check_can_be_output(path: str) -> None:
    """Raise `UsageError` if a running command reads the file, or if it holds raw signals.

    Signal files may be the only copy. Devices, pipes and standard output (``-``) pass unless redirected into an input.
    """
    check_is_not_read(path)
    if path != "-" and _is_signal_file(path):
        raise UsageError(f"{path}: is a signal file, which is never written over; give another name")


def check_is_not_read(path: str) -> None:
    """Raise `UsageError` if a running command reads the file."""
    try:
        about = os.fstat(1) if path == "-" else os.stat(path)
    except (OSError, ValueError):
        about = None
    if about is not None and not stat.S_ISREG(about.st_mode):
        return
    real = os.path.realpath(path)
    for paths, files in _in_use:
        if real in paths or (about is not None and (about.st_dev, about.st_ino) in files):
            shown = "standard output" if path == "-" else path
            raise UsageError(f"{shown}: is an input as well; give the output another name")


def _is_signal_file(path: str) -> bool:
    try:
        return os.path.isfile(path) and file_kind(path) is not None
    except (OSError, ValueError):
        return False
