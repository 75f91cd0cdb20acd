"""Outputs of parts one after the other: the bytes of one run over everything."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from f5py.errors import InputFileError
from f5py.io.output import open_output


def join_texts(paths: Iterable[Path], output: str, n_threads: int) -> None:
    """Write tables one after the other into a file, with the first line of the first.

    The file is compressed if its name asks for that.

    Raises
    ------
    InputFileError
        One cannot be read.
    OutputFileError
    """
    with open_output(output, n_threads) as out:
        for number, path in enumerate(paths):
            try:
                with open(path, "rb") as file:
                    if number:
                        file.readline()
                    shutil.copyfileobj(file, out)
            except OSError as problem:
                if problem.filename is None or str(problem.filename) != str(path):
                    raise
                raise InputFileError(f"{path}: cannot be read: {problem.strerror}") from None


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
