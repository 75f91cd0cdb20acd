"""Lists of read names, one a line."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names, NameTable
from f5py.errors import InputFileError
from f5py.io.arrow.text_input import display_name, open_bytes
from f5py.messages.console import input_warning


class ReadList:
    """Read names, with a mark for those that were found; `shown` is their source in messages."""

    def __init__(self, names: Iterable[str], shown: str) -> None:
        self.names = list(dict.fromkeys(names))
        self._shown = shown
        self._table = NameTable.of(self.names)
        self._is_found = np.zeros(len(self.names), np.bool_)

    @classmethod
    def read(cls, path: str) -> ReadList:
        """Read the first word of each line; raise `InputFileError` if there is none, or damage."""
        with open_bytes(path) as file:
            text = file.read()
        words = [line.split()[0] for line in text.splitlines() if line.strip()]
        if not words:
            raise InputFileError(f"{display_name(path)}: has no names of reads; write one a line")
        return cls((word.decode("utf-8", "surrogateescape") for word in words), display_name(path))

    def hold(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Return which names are in the list, and mark them as found."""
        rows = self._table.rows_of(Names.of(names))
        self._is_found[rows[rows >= 0]] = True
        return rows >= 0

    def warn_of_missing(self, where: str) -> None:
        """Warn of names not found in `where`; raise `InputFileError` if there is none at all."""
        missing = np.flatnonzero(~self._is_found)
        if len(missing) == len(self.names):
            raise InputFileError(
                f"{self._shown}: none of its {len(self.names):,} names, such as {self.names[0]}, is that of a read in "
                f"{where}; give a list of names of these reads, one a line"
            )
        if len(missing):
            input_warning(
                "read_ids",
                f"{self._shown}: {len(missing):,} of {len(self.names):,} reads are not in {where}, such as "
                f"{self.names[missing[0]]}",
            )
