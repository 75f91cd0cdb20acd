"""Tables in memory as inputs of commands: Arrow tables and streams, and the frames of pandas, Polars and others."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, BinaryIO

from f5py.errors import UsageError
from f5py.io.arrow.arrow import import_arrow


def is_table(value: Any) -> bool:
    """Return whether a value is a table, or a stream of one, that Arrow can take."""
    return hasattr(value, "__arrow_c_stream__") or _is_pandas(value)


def _is_pandas(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "columns")


def write_tables(name: str, tables: Iterable[Any], file: BinaryIO) -> None:
    """Write tables with the same columns as one Parquet file, not compressed, as it is read at once.

    Of tables of calls and of frequencies only the columns that the commands write are kept, in their order.

    Parameters
    ----------
    name : str
        The keyword by which they were given.
    tables : iterable
        Of what `is_table` takes; each is read once.
    file : binary file
        Stays open.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    UsageError
        A table has other columns than the first one, or types that Arrow does not know.
    """
    arrow, parquet = import_arrow()
    try:
        streams = (_stream(arrow, name, table) for table in tables)
        first = next(streams, None)
        if first is None:
            raise UsageError(f"{name}: has no table in it")
        wanted = _wanted(first.schema.names)
        schema = arrow.schema([(one, _plain(arrow, first.schema.field(one).type)) for one in wanted])
        with parquet.ParquetWriter(file, schema, compression="none") as writer:
            for stream in chain([first], streams):
                if missing := [one for one in wanted if one not in stream.schema.names]:
                    raise UsageError(f"{name}: one of the tables has no column {missing[0]}, which the first one has")
                for batch in stream:
                    writer.write_table(_as(arrow, batch, schema))
    except arrow.ArrowException as problem:
        raise UsageError(f"{name}: is no table that Arrow can read: {' '.join(str(problem).split())}") from problem


def _stream(arrow: Any, name: str, table: Any) -> Any:
    """Open a reader of a table's rows in batches; a stream can be read once."""
    if not is_table(table):
        raise UsageError(f"{name}: yields a {type(table).__name__}, which is no table")
    if isinstance(table, arrow.RecordBatchReader):
        return table
    if isinstance(table, arrow.RecordBatch):
        table = arrow.Table.from_batches([table])
    elif _is_pandas(table):  # an index without a name is that of the rows
        has_name = any(one is not None for one in table.index.names)
        table = arrow.Table.from_pandas(table, preserve_index=has_name)
    if isinstance(table, arrow.Table):
        return table.to_reader()
    return arrow.RecordBatchReader.from_stream(table)


def _wanted(names: list[str]) -> list[str]:
    """Name the columns to keep."""
    return next((layout for layout in _layouts() if set(layout) <= set(names)), names)


def _layouts() -> list[list[str]]:
    """List the columns of tables whose readers take no others, in their order; the ones with most columns first."""
    # imported here, because every command imports this module, and few are given tables
    from f5py.site_frequencies.frequency import HEADERS_OF_CALLS
    from f5py.site_frequencies.site_table import HEADERS_OF_FREQUENCIES

    of_calls = (header.decode().split("\t") + more for header in HEADERS_OF_CALLS for more in ([], ["motif"]))
    return sorted(of_calls, key=len)[::-1] + [header.decode().split("\t") for header in HEADERS_OF_FREQUENCIES]


def _plain(arrow: Any, kind: Any) -> Any:
    """Convert a column's type to that of f5py's Parquet tables: names as a dictionary, other text unchanged."""
    types = arrow.types
    if types.is_dictionary(kind):
        return arrow.dictionary(arrow.int32(), _plain(arrow, kind.value_type))
    is_view = getattr(types, "is_string_view", lambda _: False)
    return arrow.large_string() if is_view(kind) else kind


def _as(arrow: Any, batch: Any, schema: Any) -> Any:
    """Convert a batch to a table of a given schema; dictionaries may differ from one batch to the next."""
    columns = []
    for field in schema:
        column = batch.column(field.name)
        if not arrow.types.is_dictionary(field.type):
            column = column.cast(field.type)
        elif arrow.types.is_dictionary(column.type):
            values = column.dictionary.cast(field.type.value_type)
            column = arrow.DictionaryArray.from_arrays(column.indices.cast(field.type.index_type), values)
        else:
            column = column.cast(field.type.value_type).dictionary_encode()
        columns.append(column)
    return arrow.Table.from_arrays(columns, schema=schema)
