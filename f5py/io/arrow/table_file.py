"""A whole Arrow table as a file: text with tabs, CSV or Parquet."""

from __future__ import annotations

import io
from typing import Any

from f5py.errors import InputFileError
from f5py.io.arrow.arrow import import_arrow
from f5py.io.files.complete_file import complete_output
from f5py.io.files.table_output import complete_table
from f5py.options.output_names import kind_of_name

_ROWS_AT_ONCE = 1 << 16


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
