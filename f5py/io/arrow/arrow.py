"""The optional library that reads and writes Arrow, Parquet and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from f5py.errors import InputFileError, unavailable


def import_arrow(what: str = "Parquet and Arrow tables") -> tuple[Any, Any]:
    """Return the modules ``pyarrow`` and ``pyarrow.parquet``.

    Raises `MissingDependencyError` if they are not installed.

    Parameters
    ----------
    what : str
        What needs them, for the message.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as problem:
        raise unavailable(problem, f"{what} need", "pyarrow", "parquet") from problem
    return pyarrow, pyarrow.parquet


def read_rows(
    pieces: Iterable[bytes],
    shown: str,
    names: Sequence[str],
    types: Mapping[str, Any],
    wanted: Sequence[str],
    null_values: Sequence[str] = (),
) -> Iterator[Any]:
    """Read tab-separated rows, in pieces of whole lines, as columns.

    pyarrow's own reader of streams would do, but its thread may outlive an error and bring the interpreter down at its
    end. Raises `InputFileError` if a row has another number of columns, or a value is not of its column's type.

    Parameters
    ----------
    pieces : iterable of bytes
        Without the header.
    shown : str
        Name of the table, for messages.
    names : sequence of str
        All columns.
    types : mapping of str to pyarrow.DataType
        Of the wanted columns.
    wanted : sequence of str
        Columns to read, of which the table may lack some.
    null_values : sequence of str
        What stands for a number that is missing.

    Yields
    ------
    pyarrow.Table
    """
    import pyarrow
    import pyarrow.csv

    reading = pyarrow.csv.ReadOptions(column_names=names)
    parsing = pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False)
    converting = pyarrow.csv.ConvertOptions(
        column_types=types,
        include_columns=[one for one in wanted if one in names],
        null_values=list(null_values),
        strings_can_be_null=False,
    )
    for rows in pieces:
        try:
            table = pyarrow.csv.read_csv(pyarrow.BufferReader(rows), reading, parsing, converting)
        except (pyarrow.ArrowException, OverflowError) as problem:
            raise InputFileError(f"{shown}: {' '.join(str(problem).split())}") from problem
        yield table
