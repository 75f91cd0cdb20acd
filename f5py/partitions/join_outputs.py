"""Outputs of parts one after the other: the bytes of one run over everything."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from f5py.errors import InputFileError
from f5py.io.output import TextOutput, open_output

_COPY_BYTES = 1 << 22

#: How many bytes at the beginning of a text are its header.
HeaderSize = Callable[[Path], int]


def first_line(path: Path) -> int:
    """Bytes of the first line."""
    with open(path, "rb") as file:
        return len(file.readline())


def sam_header(path: Path) -> int:
    """Bytes of the lines that begin with @."""
    size = 0
    with open(path, "rb") as file:
        for line in file:
            if not line.startswith(b"@"):
                break
            size += len(line)
    return size


def no_header(path: Path) -> int:
    """None, as in PAF."""
    return 0


def append_text(path: Path, out: TextOutput, header_size: HeaderSize) -> None:
    """Write a text without its header.

    Raises
    ------
    InputFileError
        It cannot be read.
    """
    try:
        skipped = header_size(path)
        with open(path, "rb") as file:
            file.seek(skipped)
            shutil.copyfileobj(file, out, _COPY_BYTES)
    except OSError as problem:
        if problem.filename is None or str(problem.filename) != str(path):
            raise
        raise InputFileError(f"{path}: cannot be read: {problem.strerror}") from None


def join_texts(paths: Iterable[Path], output: str, n_threads: int, header_size: HeaderSize = first_line) -> None:
    """Write texts one after the other into a file, with the header of the first.

    The file is compressed if its name asks for that.

    Raises
    ------
    InputFileError
        One cannot be read.
    OutputFileError
    """
    with open_output(output, n_threads) as out:
        for number, path in enumerate(paths):
            append_text(path, out, no_header if number == 0 else header_size)


class WholeLines:
    """Hands text on in whole lines, for an output that takes these only.

    Parameters
    ----------
    out : Any
        With a method ``write``.
    """

    def __init__(self, out: Any) -> None:
        self._out = out
        self._rest = b""

    def write(self, text: bytes) -> None:
        """Take text."""
        end = text.rfind(b"\n") + 1
        if end:
            self._out.write(self._rest + text[:end])
            self._rest = text[end:]
        else:
            self._rest += text

    def flush(self) -> None:
        """Nothing."""
