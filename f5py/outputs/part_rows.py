"""Rows of a part of a run, kept for the Parquet file of the whole run."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any, BinaryIO, Protocol

from f5py.io.arrow.table import ROWS_PER_GROUP, ArrowStream, Fields, ParquetOutput, stream_tables, table_of
from f5py.io.files.complete_file import complete_output

#: Beside the file of the first rows: those of whole row groups, and the last ones.
GROUPS, LAST = ".groups", ".last"


class Place(Protocol):
    """Place of a part's rows among those of the run.

    Attributes
    ----------
    first_row : int or None
        How many are before them, if that is known.
    n_rows : int
        How many there are; told by the one who takes them.
    """

    first_row: int | None
    n_rows: int


class PartRows(AbstractContextManager["PartRows"]):
    """Keeps the rows of a part; a context manager.

    Where it is known how many rows there are before them, those of whole row groups of the file of the run are encoded
    at once, and only those of groups that begin or end in another part are kept as Arrow columns; else all are.

    Parameters
    ----------
    path : str
        The first of the files.
    """

    def __init__(self, path: str, place: Place) -> None:
        self._path = path
        self._place = place
        self._files = ExitStack()

    def of(self, fields: Fields, **parquet: Any) -> PartRows:
        """Keep the rows with columns; `parquet` are arguments of the `ParquetOutput` of the run."""
        self._fields, self._parquet = fields, parquet
        self._first = self._stream(self._path)
        self._n_left: int | None = None  # until a row group begins
        if self._place.first_row is not None:
            self._n_left = -self._place.first_row % parquet.get("rows_per_group", ROWS_PER_GROUP)
        self._groups: ParquetOutput | None = None
        return self

    def _stream(self, path: str) -> ArrowStream:
        file = self._files.enter_context(complete_output(path))
        return self._files.enter_context(ArrowStream(file).of(self._fields))

    def __exit__(self, *problem: Any) -> None:
        if problem[0] is None and self._groups is not None:
            for table in self._groups.take_rest():
                self._last.write_table(table)
        self._files.__exit__(*problem)

    def write(self, columns: Any) -> None:
        """Take rows: one array per field, of NumPy or Arrow, all of one length."""
        table = table_of(columns, self._first.schema)
        self._place.n_rows += len(table)
        if self._n_left is None:
            self._first.write_table(table)
            return
        n_first = min(self._n_left, len(table))
        self._n_left -= n_first
        if n_first:
            self._first.write_table(table.slice(0, n_first))
        if n_first < len(table):
            self._in_groups().write_table(table.slice(n_first))

    def _in_groups(self) -> ParquetOutput:
        if self._groups is None:
            self._last = self._stream(self._path + LAST)
            file = self._files.enter_context(complete_output(self._path + GROUPS))
            self._groups = self._files.enter_context(ParquetOutput(file, self._fields, **self._parquet))
        return self._groups


def append_rows(
    output: ParquetOutput, first: BinaryIO, groups: BinaryIO | None = None, last: BinaryIO | None = None
) -> None:
    """Write the rows that a `PartRows` has kept.

    Raises `InputFileError` if the files are damaged, or were made for other rows before them.

    Parameters
    ----------
    first : binary file
        Its first file.
    groups, last : binary file, optional
        The others, if it has made them.
    """
    for table in stream_tables(first, output.schema):
        output.write_table(table)
    if groups is not None:
        output.append_groups(groups)
    if last is not None:
        for table in stream_tables(last, output.schema):
            output.write_table(table)
