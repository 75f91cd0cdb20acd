"""Parquet tables of f5py as the equivalent tab-separated text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from f5py.errors import InputFileError
from f5py.io.arrow.parquet_table import ParquetTable
from f5py.io.bytes.byte_pieces import BytePieces

_ROWS_AT_ONCE = 1 << 16
#: Decimals of columns in the text table; Parquet has all digits.
_DECIMALS = {"log_lik_ratio": 2}


class ParquetText(BytePieces):
    """Stream of a Parquet file as tab-separated text with a header.

    Raises `MissingDependencyError` without pyarrow, `InputFileError` if the file is damaged or has no text form.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._table = ParquetTable(path, f"{path}: tables in Parquet")
        super().__init__(self._text())

    def close(self) -> None:
        if not self.closed:
            self._table.close()
        super().close()

    def _text(self) -> Iterator[bytes]:
        header = "\t".join(self._table.names)
        if header.count("\t") != len(self._table.names) - 1 or "\n" in header or "\r" in header:
            raise InputFileError(f"{self._path}: a column's name has a tab or an end of a line; make the table again")
        yield header.encode() + b"\n"
        for batch in self._table.batches(_ROWS_AT_ONCE):
            if len(batch):
                yield self._lines(batch)

    def _lines(self, batch: Any) -> bytes:
        import numpy as np
        import pyarrow
        import pyarrow.compute

        text = pyarrow.large_string()
        columns = [_round_as_text(field, batch.column(i)).cast(text) for i, field in enumerate(batch.schema)]
        end = pyarrow.array(["\n"] * len(batch), text)
        rows = pyarrow.compute.binary_join_element_wise(*columns, pyarrow.scalar("\t", text))
        lines = pyarrow.compute.binary_join_element_wise(rows, end, pyarrow.scalar("", text))
        _, offsets, pieces = lines.buffers()
        joined: bytes = pieces.slice(0, int(np.frombuffer(offsets, np.int64)[len(batch)])).to_pybytes()
        if (joined.count(b"\n"), joined.count(b"\t")) != (len(batch), len(batch) * (len(columns) - 1)):
            raise InputFileError(f"{self._path}: a value has a tab or an end of a line; make the table again")
        return joined


def _round_as_text(field: Any, column: Any) -> Any:
    """Round a column as the text table does; the products are exact, so rounding equals printf's."""
    import numpy as np
    import pyarrow

    if pyarrow.types.is_dictionary(field.type):
        return column.dictionary_decode()
    if field.name in _DECIMALS and pyarrow.types.is_floating(field.type):
        power = 10.0 ** _DECIMALS[field.name]
        return pyarrow.array(np.rint(column.to_numpy(zero_copy_only=False).astype(np.float64) * power) / power)
    return column
