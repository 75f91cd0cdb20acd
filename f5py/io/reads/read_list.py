"""Lists of reads to be used: names, one a line."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.errors import InputFileError
from f5py.io.bytes.byte_input import open_bytes, shown_name
from f5py.io.reads.indexed_fasta import FastaIndex
from f5py.messages.strict import input_warning

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ReadList:
    """Names of reads, and which of them have been found.

    Parameters
    ----------
    names : iterable of str
    shown : str
        Where they come from, for messages.
    """

    def __init__(self, names: Iterable[str], shown: str) -> None:
        self.names = list(dict.fromkeys(names))
        self._shown = shown
        self._index = FastaIndex.of_sequences(Names.of(self.names), np.zeros(len(self.names) + 1, np.int64))
        self._is_found = np.zeros(len(self.names), np.bool_)

    @classmethod
    def read(cls, path: str) -> ReadList:
        """Read a list: the first word of each line; ``-`` is standard input.

        Raises `InputFileError` if the file cannot be read, is no text, or has no names.
        """
        with open_bytes(path) as file:
            text = file.read().removeprefix(_BYTE_ORDER_MARK)
        if b"\0" in text:
            raise InputFileError(f"{shown_name(path)}: is no text; give a list of read names, one a line")
        words = [line.split()[0] for line in text.splitlines() if line.strip()]
        if not words:
            raise InputFileError(f"{shown_name(path)}: has no names of reads; write one a line")
        return cls((word.decode("utf-8", "surrogateescape") for word in words), shown_name(path))

    def hold(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Mark the names that are in the list, and note that they have been found."""
        rows = self._index.rows_of(Names.of(names))
        self._is_found[rows[rows >= 0]] = True
        return rows >= 0

    def warn_of_missing(self, where: str) -> None:
        """Warn of names that have not been found; `where` says in what."""
        missing = np.flatnonzero(~self._is_found)
        if len(missing):
            input_warning(
                "read_ids",
                f"{self._shown}: {len(missing):,} of {len(self.names):,} reads are not in {where}, such as "
                f"{self.names[missing[0]]}",
            )
