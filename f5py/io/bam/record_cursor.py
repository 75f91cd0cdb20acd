"""Sequential access to record ranges of SAM and CRAM files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from f5py.io.bam.record_ranges import RecordRange

if TYPE_CHECKING:
    import pysam


class RecordCursor:
    """Iterator of record ranges by record numbers; a range before the current position restarts the file."""

    def __init__(self) -> None:
        self._records: Iterator[pysam.AlignedSegment] = iter(())
        self._at: int | None = None  # number of the next record

    def between(
        self, within: RecordRange, visit: Callable[[], Iterator[pysam.AlignedSegment]]
    ) -> Iterator[pysam.AlignedSegment]:
        """Yield the records of a range; `visit` iterates all. Raises `OSError` if the file is damaged."""
        if self._at is None or self._at > within.begin:
            self._records, self._at = visit(), 0
        for _ in islice(self._records, within.begin - self._at):
            self._at += 1
        for record in self._records if within.end is None else islice(self._records, within.end - within.begin):
            self._at += 1
            yield record
