"""Where results go: standard output or a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from f5py.errors import OutputFileError


@contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """Open `path` for writing bytes; ``-`` is standard output.

    Everything is flushed at the end, so that a full disk is noticed while the command can still report it.
    """
    if path == "-":
        out: BinaryIO = sys.stdout.buffer
        yield out
        out.flush()
        return
    try:
        out = open(path, "wb")  # noqa: SIM115 - closed below, where a failing flush is reported
    except OSError as problem:
        raise OutputFileError(f"{path}: cannot write: {problem.strerror}") from None
    try:
        yield out
    except OSError as problem:
        if problem.filename is None:
            problem.filename = path
        raise
    finally:
        _close(out, path)


def _close(out: BinaryIO, path: str) -> None:
    try:
        out.close()
    except OSError as problem:
        raise OutputFileError(f"{path}: cannot write: {problem.strerror}; the file is incomplete") from None
