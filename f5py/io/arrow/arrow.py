"""Access to pyarrow, an optional package."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from f5py.errors import InputFileError, unavailable


def import_arrow(what: str = "Parquet and Arrow tables") -> tuple[Any, Any]:
    """Return ``pyarrow`` and ``pyarrow.parquet``; `what` names the feature in the error without them."""
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
    """Parse tab-separated rows, given as whole lines without the header, into `pyarrow.Table`.

    pyarrow's own stream reader is not used: its thread may outlive an error and crash the interpreter at exit. The
    `types` are those of the `wanted` columns, of which missing ones are skipped. `null_values` stand for a missing
    number. Raises `InputFileError`, with `shown` as the table's name, for a wrong number of columns or a value of the
    wrong type.
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
