"""Records of other parts that affect a later part: duplicates, and overlapping alignments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.core.windows import Windows
from f5py.io.bam._bam_numba import DUPLICATE, KEPT
from f5py.io.bam.alignments import AlignmentFile, RecordCounts
from f5py.io.bam.bam_records import RecordColumns, chosen_records
from f5py.io.bam.record_ranges import RecordRange
from f5py.io.bam.record_reads import RecordReads
from f5py.io.reads.read_index import ReadIndex
from f5py.methylation.overlapping_calls import AlignmentSpans, Places
from f5py.pipeline.batch_records import Part, RecordSlice
from f5py.pipeline.record_filter import BatchLimits, SeenRecords, classified, cut


class RecordSource(Protocol):
    """Attributes of a loader used for preceding records."""

    alignments: AlignmentFile
    reads: ReadIndex | RecordReads
    windows: Windows | None
    seen: SeenRecords | None
    batch_size: int
    max_bases: int


class PrecedingRecords:
    """Visit the records between parts, so that each part equals that of one run over everything.

    For duplicate filtering, all preceding records are marked as seen. Where calls count once per read, alignments
    before a part are loaded if a later part of this process has an overlapping one of the same read: their effect
    depends on whether they can be called.
    """

    def __init__(self, loader: RecordSource, parts: Sequence[Part], are_loaded: bool, ultra_threshold: int) -> None:
        self._loader = loader
        self._parts = parts
        self._are_loaded = are_loaded
        self._ultra_threshold = ultra_threshold

    def before(self, part: Part) -> Iterator[list[RecordSlice]]:
        """Yield the records of each batch that a part needs before it."""
        loader = self._loader
        if part.before is None or not (self._are_loaded or loader.seen is not None):
            return
        limits = BatchLimits(loader.batch_size, loader.max_bases, self._ultra_threshold, False)
        stretches: list[RecordSlice] = []
        state = np.zeros(4, np.int64)
        later = self._later if self._are_loaded else None
        for data, starts, kinds, rows, lengths in self._visited(part.before, loader.seen):
            if later is None:
                continue
            kept = np.flatnonzero(kinds == KEPT)
            names, places = _spans_of(data, starts, kept)
            kinds[kept[~later.touched(names, places)]] = DUPLICATE
            first = 0
            while first < len(kinds):
                end = cut(kinds, lengths, first, len(kinds), limits, state)
                chosen = first + np.flatnonzero(kinds[first:end] == KEPT)
                if len(chosen):  # without the others, of which there may be many chunks
                    few, offsets = chosen_records(data, starts, chosen)
                    kinds_of_few = np.full(len(chosen), KEPT, np.uint8)
                    stretches.append(RecordSlice.of(few, offsets, kinds_of_few, rows[chosen], 0, len(chosen), 0))
                first = end
                if state[3]:
                    yield stretches
                    stretches = []
                    state[:] = 0
        if stretches:
            yield stretches

    @cached_property
    def _later(self) -> AlignmentSpans:
        """Alignments of the parts after the first skipped records."""
        spans = AlignmentSpans()
        first = next(i for i, part in enumerate(self._parts) if part.before is not None)
        for part in self._parts[first:]:
            for data, starts, kinds, _, _ in self._visited(part.records, None):
                spans.add(*_spans_of(data, starts, np.flatnonzero(kinds == KEPT)))
        return spans

    def _visited(
        self, within: RecordRange | None, seen: SeenRecords | None
    ) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]]:
        """Yield records with their `classified` kinds, without counting them."""
        loader = self._loader
        alignments = loader.alignments
        with closing(alignments.chunks(loader.windows, loader.batch_size, within)) as chunks:
            for data, starts, n in chunks:
                yield data, starts, *classified(alignments, loader.reads, seen, data, starts, n, RecordCounts())


def _spans_of(data: NDArray[np.uint8], starts: NDArray[np.int64], chosen: NDArray[np.int64]) -> tuple[Names, Places]:
    columns = RecordColumns.of(data, starts, chosen)
    return Names(columns.names, columns.name_offsets), (columns.contig, columns.start, columns.end)
