"""Tables of calls of several motifs, whose last column names them, as those of one."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, cast

import numpy as np

from f5py.io.byte_pieces import BytePieces, whole_lines

_COLUMN = b"\tmotif\n"
_PIECE = 1 << 20
#: More than the header of a table of calls.
_HEADER_SIZE = 1 << 12


def rows_of_motif(source: BinaryIO, name: str) -> BinaryIO:
    """The table itself, or, if it has a column of motifs, the rows of that name without the column.

    Parameters
    ----------
    source : buffered binary file
        At the beginning of the table.
    name : str
    """
    header, newline, _ = cast(io.BufferedReader, source).peek(_HEADER_SIZE).partition(b"\n")
    if not (header + newline).endswith(_COLUMN):
        return source
    return io.BufferedReader(BytePieces(_pieces(source, np.frombuffer(name.encode(), np.uint8))), _PIECE)


def _pieces(source: BinaryIO, name: np.ndarray) -> Iterator[bytes]:
    from f5py.site_frequencies._motif_rows_numba import keep_rows

    yield source.readline().removesuffix(_COLUMN) + b"\n"
    for lines in whole_lines(source, _PIECE):
        text = np.frombuffer(lines if lines.endswith(b"\n") else lines + b"\n", np.uint8)
        out = np.empty(len(text), np.uint8)
        if size := keep_rows(text, name, out):
            yield out[:size].tobytes()
