"""Columns of arrays as Arrow tables and Parquet files, through pyarrow, which is an optional package."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, BinaryIO, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import gathered
from f5py.errors import InputFileError
from f5py.io.arrow.arrow import import_arrow
from f5py.io.arrow.parquet_groups import EncodedGroup, ParquetGroups
from f5py.io.arrow.row_groups import GroupEncoder, GroupLayout
from f5py.threads.ordered import OrderedWork

#: Names and Arrow types of columns; the type ``"names"`` is a dictionary of strings with int32 indices, and
#: ``"list:T"`` are lists of the type T.
Fields = Sequence[tuple[str, str]]
#: Maximum number of threads that prepare columns, and of those that encode them: more would take a lot of memory.
MAX_ENCODERS = 8
#: Unless a table says otherwise.
ROWS_PER_GROUP = 1 << 18


def string_column(starts: NDArray[np.int64], sizes: NDArray[np.integer], text: NDArray[np.uint8]) -> Any:
    """Arrow array of n large strings, whose sizes may add up to more than 2 GiB, that are pieces of one text.

    Parameters
    ----------
    starts, sizes : int64, integers; shape (n,)
        In bytes.
    text : uint8
        UTF-8.
    """
    pyarrow, _ = import_arrow()
    pieces, offsets = gathered(text, starts, sizes)
    return pyarrow.LargeStringArray.from_buffers(len(sizes), pyarrow.py_buffer(offsets), pyarrow.py_buffer(pieces))


def short_strings(letters: NDArray[np.uint8]) -> Any:
    """Arrow array of n strings of one length.

    Parameters
    ----------
    letters : uint8, shape (n, length)
        ASCII.
    """
    pyarrow, _ = import_arrow()
    n, length = letters.shape
    offsets = np.arange(n + 1, dtype=np.int32) * np.int32(length)
    return pyarrow.StringArray.from_buffers(n, pyarrow.py_buffer(offsets), pyarrow.py_buffer(letters))


def dictionary_column(indices: NDArray[np.int32], values: Sequence[str] | Any) -> Any:
    """Arrow dictionary array: `values`, str or an Arrow array of them, by index.

    Equal values become one, as pandas' categories must differ.
    """
    pyarrow, _ = import_arrow()
    distinct = pyarrow.array(values, pyarrow.string()).dictionary_encode()
    if len(distinct.dictionary) < len(values):
        indices = distinct.indices.to_numpy()[indices]
    return pyarrow.DictionaryArray.from_arrays(indices, distinct.dictionary)


def distinct_column(indices: NDArray[np.int32], values: Any) -> Any:
    """Arrow dictionary array of an Arrow array of values that are known to differ: these need not be hashed."""
    pyarrow, _ = import_arrow()
    return pyarrow.DictionaryArray.from_arrays(indices, values)


def list_column(offsets: NDArray[np.int64], values: NDArray) -> Any:
    """Arrow array of lists: list i holds ``values[offsets[i]:offsets[i + 1]]``."""
    pyarrow, _ = import_arrow()
    return pyarrow.ListArray.from_arrays(offsets.astype(np.int32), values)


class ArrowSink(Protocol):
    """A taker of rows; a context manager."""

    def write(self, columns: Sequence[Any]) -> None:
        """Take rows: one array per field, of NumPy or Arrow, all of one length."""
        ...

    def __enter__(self) -> Any: ...

    def __exit__(self, *problem: Any) -> None: ...


def _schema(fields: Fields) -> Any:
    arrow, _ = import_arrow()

    def type_of(kind: str) -> Any:
        if kind == "names":
            return arrow.dictionary(arrow.int32(), arrow.string())
        if kind.startswith("list:"):
            return arrow.list_(type_of(kind.removeprefix("list:")))
        return getattr(arrow, kind)()

    return arrow.schema([(name, type_of(kind)) for name, kind in fields])


def table_of(columns: Sequence[Any], schema: Any) -> Any:
    """Make a `pyarrow.Table` of a schema: one array per field, of NumPy or Arrow, all of one length."""
    arrow, _ = import_arrow()
    arrays = [
        arrow.array(column, field.type) if isinstance(column, np.ndarray) else column
        for column, field in zip(columns, schema, strict=True)
    ]
    return arrow.Table.from_arrays(arrays, schema=schema)


class ArrowTables(AbstractContextManager["ArrowTables"]):
    """Hands rows on as `pyarrow.Table`; a context manager like `ParquetOutput`.

    At the end of a run without rows it hands on one table without rows, as that has the columns.
    """

    def __init__(self, take: Callable[[Any], None], fields: Fields) -> None:
        self._take = take
        self._schema = _schema(fields)
        self._has_handed_on = False

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and not self._has_handed_on:
            self._take(self._schema.empty_table())

    def write(self, columns: Sequence[Any]) -> None:
        """Hand on a table of these columns."""
        self._has_handed_on = True
        self._take(table_of(columns, self._schema))


class ParquetOutput(AbstractContextManager["ParquetOutput"]):
    """Writes tables of columns one after the other into one Parquet file, compressed with zstd; a context manager.

    The file depends on the rows only, not on how they come in tables: row groups have equal sizes, and each has the
    values of its dictionaries in the order in which they first occur. Groups are encoded in threads.

    Parameters
    ----------
    out : binary file
        Stays open. It is complete after the context is left without an error.
    encodings : mapping of str to str, optional
        Encodings of columns; all others get a dictionary where that is smaller.
    ranges_of : sequence of str, optional
        Columns of which each row group tells the smallest and the largest value; all by default.
    rows_per_group : int
        Rows that are collected, compressed and written together; the last group may have fewer.
    metadata : mapping of str to str, optional
        What the file says of itself.
    """

    def __init__(
        self,
        out: BinaryIO,
        fields: Fields,
        encodings: Mapping[str, str] | None = None,
        level: int | None = None,
        ranges_of: Sequence[str] | None = None,
        rows_per_group: int = ROWS_PER_GROUP,
        n_threads: int = 1,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        self._schema = _schema(fields)
        self._encoder = GroupEncoder(self._schema, fields, GroupLayout(encodings or {}, level, ranges_of))
        self._file = ParquetGroups(out, self._encoder.file(self._schema.with_metadata(metadata).empty_table()))
        n_threads = min(n_threads, MAX_ENCODERS)
        n_waiting = n_threads + n_threads // 2  # some follow those that are done before the first one is
        self._encoding = OrderedWork(n_threads, self._encoded, self._add, "f5py-parquet", n_waiting)
        self._rows_per_group = rows_per_group
        self._tables: deque[Any] = deque()
        self._files = ExitStack()
        self._n_rows = 0

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                if self._n_rows:
                    self._add_group(self._n_rows)
                self._encoding.finish()
                self._file.close()
        finally:
            self._encoding.close()
            self._files.close()

    def write(self, columns: Sequence[Any]) -> None:
        """Take rows: one array per field, of NumPy or Arrow, all of one length."""
        self.write_table(table_of(columns, self._schema))

    def write_table(self, table: Any) -> None:
        """Take rows: a `pyarrow.Table` of the schema."""
        self._tables.append(table)
        self._n_rows += len(table)
        while self._n_rows >= self._rows_per_group:
            self._add_group(self._rows_per_group)

    @property
    def schema(self) -> Any:
        """Types and names of the columns, as Arrow has them."""
        return self._schema

    def append_groups(self, file: BinaryIO) -> None:
        """Take the row groups of a file that such an output has written; it may be closed afterwards.

        Raises `InputFileError` if row groups do not begin where the file's do.
        """
        if self._n_rows:
            raise InputFileError(f"{file.name}: was made for other rows before it; work on the part again")
        descriptor = os.dup(file.fileno())
        again = open(file.name, "rb", buffering=0, opener=lambda *_: descriptor)  # noqa: SIM115 - closed when it is used
        self._encoding.add(self._files.enter_context(again))

    def take_rest(self) -> list[Any]:
        """Give back the rows that are too few for a group, as tables."""
        rest = list(self._tables)
        self._tables.clear()
        self._n_rows = 0
        return rest

    def _add_group(self, n_rows: int) -> None:
        """Let the first `n_rows` of the rows at hand be encoded."""
        taken, missing = [], n_rows
        while missing:
            table = self._tables.popleft()
            if len(table) > missing:
                self._tables.appendleft(table.slice(missing))
                table = table.slice(0, missing)
            taken.append(table)
            missing -= len(table)
        self._n_rows -= n_rows
        self._encoding.add(taken)

    def _encoded(self, tables: list[Any] | BinaryIO) -> EncodedGroup | BinaryIO:
        """Encode the rows of all tables as a row group; a file stays as it is."""
        return self._encoder.encode(tables) if isinstance(tables, list) else tables

    def _add(self, made: EncodedGroup | BinaryIO) -> None:
        if isinstance(made, EncodedGroup):
            self._file.add_group(made)
        else:
            self._file.add(made)


class ArrowStream(AbstractContextManager["ArrowStream"]):
    """A file of rows that are kept for another output: an Arrow IPC stream; a context manager.

    Parameters
    ----------
    out : binary file
        Stays open.
    """

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def of(self, fields: Fields, **_: Any) -> ArrowStream:
        """Make a stream with these columns."""
        arrow, _ = import_arrow()
        self.schema = _schema(fields)
        self._writer = arrow.ipc.new_stream(arrow.PythonFile(self._out, "w"), self.schema)
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write(self, columns: Sequence[Any]) -> None:
        """Take rows: one array per field, of NumPy or Arrow, all of one length."""
        self.write_table(table_of(columns, self.schema))

    def write_table(self, table: Any) -> None:
        """Take rows: a `pyarrow.Table` of the schema."""
        self._writer.write_table(table)


def stream_tables(file: BinaryIO, schema: Any) -> Iterator[Any]:
    """Yield some rows after the other of an `ArrowStream`, as tables of a schema.

    Raises `InputFileError` if the file is damaged, or has other columns.
    """
    arrow, _ = import_arrow()
    try:
        with arrow.ipc.open_stream(arrow.PythonFile(file, "r")) as stream:
            if not stream.schema.equals(schema):
                raise InputFileError(f"{file.name}: has other columns than the table; work on the part again")
            for batch in stream:
                batch.validate(full=True)
                yield arrow.Table.from_batches([batch], schema)
    except (OSError, arrow.ArrowException) as problem:
        raise InputFileError(f"{file.name}: cannot be read: {' '.join(str(problem).split())}") from None


@runtime_checkable
class RowKeeper(Protocol):
    """A taker of rows that keeps them for another output."""

    def of(self, fields: Fields, **parquet: Any) -> ArrowSink:
        """Make a sink for the rows; `parquet` are arguments of the `ParquetOutput` that they are for."""
        ...


#: What rows are given to: a Parquet file, a function of a pyarrow.Table, or what keeps them.
RowTarget = BinaryIO | Callable[[Any], None] | RowKeeper


def arrow_sink(out: RowTarget, fields: Fields, **parquet: Any) -> ArrowSink:
    """Make a sink that writes rows to a Parquet file or, if `out` is a function, calls it with tables of them."""
    if isinstance(out, RowKeeper):
        return out.of(fields, **parquet)
    return ArrowTables(out, fields) if callable(out) else ParquetOutput(out, fields, **parquet)
