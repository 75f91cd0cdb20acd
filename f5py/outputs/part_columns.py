"""The columns that a part has kept for the Parquet table of the run."""

from __future__ import annotations

from typing import BinaryIO, Protocol

from f5py.outputs.part_rows import GROUPS, LAST
from f5py.outputs.sink import DonePart


class ColumnTable(Protocol):
    """A Parquet table that takes the rows of parts."""

    def append(self, first: BinaryIO, groups: BinaryIO | None = None, last: BinaryIO | None = None) -> None:
        """Write rows: see `f5py.outputs.part_rows.append_rows`."""
        ...


def append_columns(part: DonePart, name: str, table: ColumnTable) -> None:
    """Write the rows that a part has kept in the file of this name, and in those beside it."""
    with part.open(name) as first:
        if not part.has(name + GROUPS):
            table.append(first)
            return
        with part.open(name + GROUPS) as groups, part.open(name + LAST) as last:
            table.append(first, groups, last)
