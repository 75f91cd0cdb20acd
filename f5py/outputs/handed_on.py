"""Tables that go to a function instead of a file."""

from __future__ import annotations

from typing import Any, Protocol

from f5py.core.batch import ReadBatch
from f5py.outputs.sink import OfPart, Sink


class Columns(Protocol):
    """Hands the rows of batches on; a context manager."""

    def __enter__(self) -> Columns: ...

    def __exit__(self, *problem: Any) -> bool | None: ...

    def write(self, batch: ReadBatch) -> None:
        """Hand the rows of a batch on."""
        ...


class HandedOn(Sink):
    """A table that goes to a function as Arrow tables; there is none of a part.

    Parameters
    ----------
    columns : Columns
        What makes Arrow tables of batches, and gives them to the function.
    """

    def __init__(self, columns: Columns) -> None:
        super().__init__("")
        self._columns = columns

    def _open(self, part: OfPart | None) -> None:
        self.files.enter_context(self._columns)

    def write(self, batch: ReadBatch) -> None:
        self._columns.write(batch)
