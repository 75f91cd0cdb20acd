"""Tables passed to a function instead of a file."""

from __future__ import annotations

from typing import Any, Protocol

from f5py.core.batch import ReadBatch
from f5py.outputs.sink import PartFiles, Sink


class TableConverter(Protocol):
    """Context manager that converts batches to tables."""

    def __enter__(self) -> TableConverter: ...

    def __exit__(self, *problem: Any) -> bool | None: ...

    def write(self, batch: ReadBatch) -> None: ...


class CallbackSink(Sink):
    """Output that passes Arrow tables to a function; not for parts."""

    def __init__(self, columns: TableConverter) -> None:
        super().__init__("")
        self._columns = columns

    def _open(self, part: PartFiles | None) -> None:
        self.files.enter_context(self._columns)

    def write(self, batch: ReadBatch) -> None:
        self._columns.write(batch)
