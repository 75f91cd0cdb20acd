"""Tables of calls of several motifs, whose last column names them, as those of one."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from f5py.io.bytes.byte_pieces import BytePieces, whole_lines

_COLUMN = b"\tmotif\n"
_PIECE = 1 << 20
#: More than the header of a table of calls.
_HEADER_SIZE = 1 << 12
#: Pieces whose rows' lines are remembered: more than are read ahead of an error.
_REMEMBERED = 32


def rows_of_motif(source: BinaryIO, name: str, place: Callable[[int], str]) -> tuple[BinaryIO, Callable[[int], str]]:
    """Pass the table on or, if it has a column of motifs, the rows of that name without the column.

    Rows with another number of columns stay, for the errors of whoever reads the table.

    Parameters
    ----------
    source : buffered binary file
        At the beginning of the table.
    place : function
        Says where a line of the table is.

    Returns
    -------
    source : binary file
    place : function
        Says where a line of that is.
    """
    header, newline, _ = cast(io.BufferedReader, source).peek(_HEADER_SIZE).partition(b"\n")
    if not (header + newline).endswith(_COLUMN):
        return source, place
    rows = _MotifRows(source, name, place)
    return io.BufferedReader(rows, _PIECE), rows.place


class _MotifRows(BytePieces):
    def __init__(self, source: BinaryIO, name: str, place: Callable[[int], str]) -> None:
        self._source = source
        self._name = np.frombuffer(name.encode(), np.uint8)
        self._place = place
        # of each piece the number of its first row, and the lines of the rows; both from 1
        self._lines: deque[tuple[int, NDArray[np.int64]]] = deque(maxlen=_REMEMBERED)
        super().__init__(self._rows())

    def place(self, line: int) -> str:
        """Name the place of a line in the table with all motifs."""
        for first, lines in self._lines:
            if first <= line < first + len(lines):
                return self._place(int(lines[line - first]))
        return self._place(line)

    def _rows(self) -> Iterator[bytes]:
        from f5py.site_frequencies._motif_rows_numba import keep_rows

        header = self._source.readline()
        n_columns = header.count(b"\t") + 1
        yield header.removesuffix(_COLUMN) + b"\n"
        first_row = first_line = 2
        for piece in whole_lines(self._source, _PIECE):
            text = np.frombuffer(piece if piece.endswith(b"\n") else piece + b"\n", np.uint8)
            out, lines = np.empty(len(text), np.uint8), np.empty(piece.count(b"\n") + 1, np.int64)
            size, n_rows, n_lines = keep_rows(text, self._name, n_columns, out, lines)
            self._lines.append((first_row, first_line + lines[:n_rows]))
            first_row += n_rows
            first_line += n_lines
            if size:
                yield out[:size].tobytes()
