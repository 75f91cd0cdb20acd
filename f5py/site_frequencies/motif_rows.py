"""Selection of one motif's rows from a table of calls of several motifs, named by its last column."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from f5py.io.bytes.byte_pieces import BytePieces, whole_lines
from f5py.jit.kernel import exact_kernel
from f5py.text._format_numba import NEWLINE, TAB

_COLUMN = b"\tmotif\n"
_PIECE = 1 << 20
#: More than the header of a table of calls.
_HEADER_SIZE = 1 << 12
#: Pieces with remembered line numbers: more than are read ahead of an error.
_REMEMBERED = 32


@exact_kernel
def keep_rows(text, name, n_columns, out, lines):
    """Copy the rows with `name` in their last column, without it, and rows with odd numbers of columns.

    Parameters
    ----------
    text : uint8
        Whole lines.
    name, out : uint8
    n_columns : int
        Of the table.
    lines : int64
        Filled with the lines of the copied rows.

    Returns
    -------
    n_bytes, n_rows, n_lines : int
        Bytes and rows of `out`, and lines of `text`.
    """
    at = begin = 0
    n_tabs = n_rows = n_lines = 0
    n = name.shape[0]
    for i in range(text.shape[0]):
        n_tabs += text[i] == TAB
        if text[i] != NEWLINE:
            continue
        fits = i - n > begin and text[i - n - 1] == TAB
        for j in range(n):
            fits = fits and text[i - n + j] == name[j]
        is_whole = n_tabs == n_columns - 1
        if fits or not is_whole:
            for j in range(begin, i - n - 1 if is_whole else i):
                out[at] = text[j]
                at += 1
            out[at] = NEWLINE
            at += 1
            lines[n_rows] = n_lines
            n_rows += 1
        n_lines += 1
        n_tabs = 0
        begin = i + 1
    return at, n_rows, n_lines


def rows_of_motif(source: BinaryIO, name: str, place: Callable[[int], str]) -> tuple[BinaryIO, Callable[[int], str]]:
    """Select the rows of a motif, without the column of motifs, if the table has one.

    Rows with another number of columns are kept, to be rejected by the reader. `place` formats the place of a line in
    the table; the returned function does so for lines of the selection.
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
        # number of each piece's first row, and lines of its rows; both from 1
        self._lines: deque[tuple[int, NDArray[np.int64]]] = deque(maxlen=_REMEMBERED)
        super().__init__(self._rows())

    def place(self, line: int) -> str:
        """Format the place of a line of the selection."""
        for first, lines in self._lines:
            if first <= line < first + len(lines):
                return self._place(int(lines[line - first]))
        return self._place(line)

    def _rows(self) -> Iterator[bytes]:

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
