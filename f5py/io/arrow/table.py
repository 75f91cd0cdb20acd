"""Arrow tables and Parquet files from columns of arrays."""

import io
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import gather_slices
from f5py.errors import InputFileError
from f5py.io.arrow.arrow import import_arrow
from f5py.io.arrow.parquet_table import ParquetTable
from f5py.io.files.complete_file import complete_output
from f5py.io.files.table_output import complete_table
from f5py.options.output_names import kind_of_name
from f5py.threads.ordered import OrderedWork

#: Names and Arrow types of columns; the type ``"names"`` is a dictionary of strings with int32 indices, and
#: ``"list:T"`` are lists of the type T.
Fields = Sequence[tuple[str, str]]
ROWS_PER_GROUP = 1 << 18
#: Row groups that may wait for encoding.
_GROUPS_WAITING = 2
_ROWS_AT_ONCE = 1 << 16


def string_column(starts: NDArray[np.int64], sizes: NDArray[np.integer], text: NDArray[np.uint8]) -> Any:
    """Make an Arrow array of large strings: slices, in bytes, of one UTF-8 text."""
    pyarrow, _ = import_arrow()
    pieces, offsets = gather_slices(text, starts, sizes)
    return pyarrow.LargeStringArray.from_buffers(len(sizes), pyarrow.py_buffer(offsets), pyarrow.py_buffer(pieces))


def short_strings(letters: NDArray[np.uint8]) -> Any:
    """Make an Arrow array of n strings from ASCII letters of shape (n, length)."""
    pyarrow, _ = import_arrow()
    n, length = letters.shape
    offsets = np.arange(n + 1, dtype=np.int32) * np.int32(length)
    return pyarrow.StringArray.from_buffers(n, pyarrow.py_buffer(offsets), pyarrow.py_buffer(letters))


def dictionary_column(indices: NDArray[np.int32], values: Sequence[str] | Any) -> Any:
    """Make an Arrow dictionary array of strings by index; equal values are merged, as pandas needs."""
    pyarrow, _ = import_arrow()
    distinct = pyarrow.array(values, pyarrow.string()).dictionary_encode()
    if len(distinct.dictionary) < len(values):
        indices = distinct.indices.to_numpy()[indices]
    return pyarrow.DictionaryArray.from_arrays(indices, distinct.dictionary)


def distinct_column(indices: NDArray[np.int32], values: Any) -> Any:
    """Make an Arrow dictionary array of distinct values, without hashing them."""
    pyarrow, _ = import_arrow()
    return pyarrow.DictionaryArray.from_arrays(indices, values)


def list_column(offsets: NDArray[np.int64], values: NDArray) -> Any:
    """Make an Arrow array of lists ``values[offsets[i]:offsets[i + 1]]``."""
    pyarrow, _ = import_arrow()
    return pyarrow.ListArray.from_arrays(offsets.astype(np.int32), values)


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
    """Make a `pyarrow.Table` from one NumPy or Arrow array per field."""
    arrow, _ = import_arrow()
    arrays = [
        arrow.array(column, field.type) if isinstance(column, np.ndarray) else column
        for column, field in zip(columns, schema, strict=True)
    ]
    return arrow.Table.from_arrays(arrays, schema=schema)


class ArrowTables(AbstractContextManager["ArrowTables"]):
    """Sink that passes rows to a function as `pyarrow.Table`; without rows it passes one empty table."""

    def __init__(self, take: Callable[[Any], None], fields: Fields) -> None:
        self._take = take
        self._schema = _schema(fields)
        self._has_handed_on = False

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and not self._has_handed_on:
            self._take(self._schema.empty_table())

    def write(self, columns: Sequence[Any]) -> None:
        self._has_handed_on = True
        self._take(table_of(columns, self._schema))


class ParquetOutput(AbstractContextManager["ParquetOutput"]):
    """Parquet file, compressed with zstd, written as a sequence of tables; a context manager.

    The file depends on the rows only, not on their division into tables: row groups have equal sizes, and dictionaries
    have their values in order of first occurrence. A thread encodes the groups. `out` stays open. Columns without one
    of the `encodings` get a dictionary where that is smaller. `ranges_of`, by default all, are the columns with minimum
    and maximum per row group.
    """

    def __init__(
        self,
        out: BinaryIO,
        fields: Fields,
        encodings: Mapping[str, str] | None = None,
        level: int | None = None,
        ranges_of: Sequence[str] | None = None,
        rows_per_group: int = ROWS_PER_GROUP,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        _, parquet = import_arrow()
        encodings = dict(encodings or {})
        self.fields = list(fields)
        self.schema = _schema(fields)
        self._out = _AbortableFile(out)
        self._writer = parquet.ParquetWriter(
            self._out,
            self.schema.with_metadata(metadata),
            compression="zstd",
            compression_level=level,
            use_dictionary=[
                f"{name}.list.element" if kind.startswith("list:") else name
                for name, kind in fields
                if name not in encodings
            ],
            column_encoding=encodings,
            write_page_checksum=True,
            write_statistics=True if ranges_of is None else list(ranges_of),
        )
        self._encoding = OrderedWork(1, self._write_group, lambda _: None, "f5py-parquet", _GROUPS_WAITING)
        self._rows_per_group = rows_per_group
        self._tables: deque[Any] = deque()
        self._n_rows = 0

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                if self._n_rows:
                    self._add_group(self._n_rows)
                self._encoding.finish()
                self._writer.close()
        finally:
            self._encoding.close()
            self._out.ignore_rest()
            self._writer.close()

    def write(self, columns: Sequence[Any]) -> None:
        """Write rows: one array per field, of NumPy or Arrow, all of one length."""
        self._tables.append(table_of(columns, self.schema))
        self._n_rows += len(self._tables[-1])
        while self._n_rows >= self._rows_per_group:
            self._add_group(self._rows_per_group)

    def append(self, table: ParquetTable) -> None:
        """Write the rows of another table; raise `InputFileError` if it is damaged or has other columns."""
        if table.kinds(with_lists=True) != self.fields:
            raise InputFileError(f"{table.path}: has other columns than the table that it is a part of")
        for batch in table.batches(_ROWS_AT_ONCE, with_lists=True):
            # dictionaries of other libraries may have other index types
            columns = zip(batch.columns, self.schema, strict=True)
            self.write([column.cast(field.type) for column, field in columns])

    def _add_group(self, n_rows: int) -> None:
        """Queue the first `n_rows` buffered rows for encoding."""
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

    def _write_group(self, tables: list[Any]) -> None:
        arrow, _ = import_arrow()
        rows = arrow.concat_tables(tables).unify_dictionaries().combine_chunks()
        columns = [
            _by_first_row(column) if arrow.types.is_dictionary(column.type) else column for column in rows.columns
        ]
        self._writer.write_table(arrow.Table.from_arrays(columns, schema=self.schema), row_group_size=len(rows))


class _AbortableFile:
    """File for a Parquet writer, which would complete its file on closing even after an error."""

    closed = False

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._size = 0
        self._is_ignoring = False

    def ignore_rest(self) -> None:
        self._is_ignoring = True

    def write(self, piece: Any) -> None:
        if not self._is_ignoring:
            self._out.write(piece)
        self._size += len(piece)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing: the file stays open."""


def _by_first_row(column: Any) -> Any:
    """Renumber a one-chunk dictionary column by first occurrence, without unused values."""
    arrow, _ = import_arrow()
    (names,) = column.chunks
    codes = names.indices.dictionary_encode()
    return arrow.DictionaryArray.from_arrays(codes.indices, names.dictionary.take(codes.dictionary))


#: A Parquet file, or a function of a pyarrow.Table.
RowTarget = BinaryIO | Callable[[Any], None]


def arrow_sink(out: RowTarget, fields: Fields, **parquet: Any) -> ArrowTables | ParquetOutput:
    """Make a sink for a Parquet file or, if `out` is a function, one that calls it with tables."""
    return ArrowTables(out, fields) if callable(out) else ParquetOutput(out, fields, **parquet)


def write_table(table: Any, output: str, n_threads: int = 1) -> None:
    """Write a `pyarrow.Table` in the format that the name says; ``-`` is standard output.

    Raises `InputFileError` if a name in it has characters that text cannot have.
    """
    _, parquet = import_arrow()
    if kind_of_name(output) == "parquet":
        with complete_output(output) as file:
            parquet.write_table(table, file, compression="zstd")
        return
    import pyarrow.csv

    layout = pyarrow.csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    with complete_table(output, n_threads) as out:
        out.write(("\t".join(table.column_names) + "\n").encode())
        for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
            text = io.BytesIO()
            try:
                pyarrow.csv.write_csv(batch, text, layout)
            except pyarrow.ArrowInvalid:
                raise InputFileError(
                    "a name in the tables has a tab, a line end or a quote in it, which text cannot have; write "
                    "Parquet (-o NAME.parquet), or make the tables again"
                ) from None
            out.write(text.getvalue())
