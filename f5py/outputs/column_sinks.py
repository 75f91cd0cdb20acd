"""Tables of columns: written to a Parquet file, or passed to a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO, Protocol

from f5py.core.batch import ReadBatch
from f5py.io.files.complete_file import complete_output
from f5py.outputs.sink import FinishedPart, PartFiles, Sink


class TableConverter(Protocol):
    """Context manager that converts batches to tables."""

    def __enter__(self) -> TableConverter: ...

    def __exit__(self, *problem: Any) -> bool | None: ...

    def write(self, batch: ReadBatch) -> None: ...

    def append(self, file: BinaryIO) -> None: ...


class ParquetSink(Sink):
    """Parquet file; `open_table` makes the converter for the open file."""

    part_name = "table.parquet"

    def __init__(self, path: str, open_table: Callable[[BinaryIO], TableConverter]) -> None:
        super().__init__(path)
        self._open_table = open_table

    def _open(self, part: PartFiles | None) -> None:
        file = self.files.enter_context(complete_output(self.path))
        self._table = self.files.enter_context(self._open_table(file))

    def write(self, batch: ReadBatch) -> None:
        self._table.write(batch)

    def append(self, part: FinishedPart) -> None:
        with part.open(self.part_name) as file:
            self._table.append(file)


class CallbackSink(Sink):
    """Output that passes Arrow tables to a function; not for parts."""

    def __init__(self, table: TableConverter) -> None:
        super().__init__("")
        self._table = table

    def _open(self, part: PartFiles | None) -> None:
        self.files.enter_context(self._table)

    def write(self, batch: ReadBatch) -> None:
        self._table.write(batch)
