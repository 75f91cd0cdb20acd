"""Parquet tables of f5py as the text that they would have been, so that they can be read wherever that can."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from f5py.errors import InputFileError, unavailable
from f5py.io.bytes.byte_pieces import BytePieces

MAGIC = b"PAR1"
_ROWS_AT_ONCE = 1 << 16
#: What the library raises over damage, besides errors of its own.
PROBLEMS = (OSError, ValueError, TypeError, KeyError, IndexError, OverflowError, RuntimeError)
#: Decimals of the text table for columns whose values matter; Parquet has all digits.
_DECIMALS = {"log_lik_ratio": 2}


class ParquetText(BytePieces):
    """Reads a Parquet file as tab-separated text with a header.

    Parameters
    ----------
    path : str

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    InputFileError
        The file is damaged; also while it is read.
    """

    def __init__(self, path: str) -> None:
        try:
            import pyarrow.csv
            import pyarrow.parquet
        except ImportError as problem:
            raise unavailable(problem, f"{path}: a Parquet file, which needs", "pyarrow", "parquet") from problem
        self._arrow = pyarrow
        self._path = path
        try:
            self._file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
        except (*PROBLEMS, pyarrow.ArrowException) as problem:
            raise self._damaged(problem) from problem
        super().__init__(self._text())

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()

    def _text(self) -> Iterator[bytes]:
        arrow = self._arrow
        yield "\t".join(self._file.schema_arrow.names).encode() + b"\n"
        layout = arrow.csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
        try:
            for batch in self._file.iter_batches(_ROWS_AT_ONCE):
                text = io.BytesIO()
                table = arrow.Table.from_batches([batch])
                arrow.csv.write_csv(_as_printed(table), text, layout)
                yield text.getvalue()
        except (*PROBLEMS, arrow.ArrowException) as problem:
            raise self._damaged(problem) from problem

    def _damaged(self, problem: Exception) -> InputFileError:
        reason = " ".join(str(problem).split())
        return InputFileError(f"{self._path}: damaged or no Parquet table of f5py ({reason}); make the file again")


def _as_printed(table: Any) -> Any:
    """The columns as the text table shows them; the products are exact, so that they are rounded as printf does."""
    import numpy as np
    import pyarrow

    for i, field in enumerate(table.schema):
        column = table.column(i)
        if pyarrow.types.is_dictionary(field.type):
            column = column.cast(field.type.value_type)
        elif field.name in _DECIMALS and pyarrow.types.is_floating(field.type):
            power = 10.0 ** _DECIMALS[field.name]
            column = pyarrow.array(np.rint(column.to_numpy().astype(np.float64) * power) / power)
        table = table.set_column(i, field.name, column)
    return table
