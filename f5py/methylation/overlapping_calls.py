"""Overlapping alignments of the same read: at every site a read counts once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import Calls, ReadBatch, ReadStatus
from f5py.core.names import Names
from f5py.methylation.calls import join_motifs

if TYPE_CHECKING:
    from f5py.methylation._overlapping_calls_numba import SpanTable

_FIRST = 1 << 12
#: Contigs, starts and ends of alignments.
Places = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]


class AlignmentSpans:
    """Alignments by read, in about 70 bytes each."""

    def __init__(self) -> None:
        from f5py.methylation._overlapping_calls_numba import SpanTable

        self._n = 0
        self._spans: SpanTable = SpanTable(
            np.zeros((2 * _FIRST, 2), np.uint64), np.zeros(2 * _FIRST, np.int64), np.empty(_FIRST, np.int32),
            np.empty(_FIRST, np.int64), np.empty(_FIRST, np.int64), np.empty(_FIRST, np.int64),
        )  # fmt: skip

    def add(self, names: Names, places: Places, used: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Add all alignments or the `used` ones; return the index of each read's preceding one, or -1."""
        from f5py.methylation._overlapping_calls_numba import add_spans

        n = len(names)
        self._make_room(n)
        earlier = np.empty(n, np.int64)
        used = np.ones(n, np.bool_) if used is None else used
        self._n = add_spans(names.text, names.offsets, used, places, self._n, self._spans, earlier)
        return earlier

    def touched(self, names: Names, places: Places) -> NDArray[np.bool_]:
        """Find the alignments that overlap or touch an added one of the same read; bool, shape (n,)."""
        from f5py.methylation._overlapping_calls_numba import find_touched

        found = np.zeros(len(names), np.bool_)
        find_touched(names.text, names.offsets, places, self._spans, found)
        return found

    def drop_overlapping(self, earlier: NDArray[np.int64], contig: NDArray[np.int32], calls: Calls) -> int:
        """Drop the calls within `earlier` alignments, from `add`; return their number of sites."""
        from f5py.methylation._overlapping_calls_numba import drop_overlapping

        return int(drop_overlapping(earlier, contig, self._spans, calls))

    def _make_room(self, n: int) -> None:
        from f5py.methylation._overlapping_calls_numba import move_keys

        spans, size = self._spans, len(self._spans.contig)
        while size < self._n + n:
            size *= 2
        if size == len(spans.contig):
            return
        keys, latest = np.zeros((2 * size, 2), np.uint64), np.zeros(2 * size, np.int64)
        move_keys(spans.keys, spans.latest, keys, latest)
        self._spans = spans._replace(keys=keys, latest=latest)
        for name in spans._fields[2:]:
            old: NDArray[Any] = getattr(spans, name)
            column = np.empty(size, old.dtype)
            column[: self._n] = old[: self._n]
            self._spans = self._spans._replace(**{name: column})


class OverlappingCalls:
    """Filter of calls of groups that overlap an earlier alignment of the same read, on either strand.

    Earlier alignments are the called ones that precede in the input.

    Attributes
    ----------
    n_sites : int
        Sites of the dropped calls.
    """

    def __init__(self) -> None:
        self.n_sites = 0
        self._spans = AlignmentSpans()

    def add(self, batch: ReadBatch) -> NDArray[np.int64]:
        """Add the called alignments of a batch; see `AlignmentSpans.add`."""
        places = batch.contig, batch.reference_start, batch.reference_end
        return self._spans.add(batch.names, places, batch.status == ReadStatus.OK)

    def drop(self, batch: ReadBatch) -> int:
        """Drop overlapping calls of a batch, in the order of batches; return their number of sites."""
        earlier = self.add(batch)
        if not (earlier >= 0).any():
            return 0
        n_sites = 0
        for calls in batch.by_motif or [batch.calls]:
            n_sites += self._spans.drop_overlapping(earlier, batch.contig, calls)
        if batch.by_motif:
            join_motifs(batch)
        self.n_sites += n_sites
        return n_sites
