"""Calls of a read where an earlier alignment of it lies, so that a read counts once at every site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import Calls, ReadBatch, ReadStatus
from f5py.core.names import Names
from f5py.methylation.calls import join_motifs

if TYPE_CHECKING:
    from f5py.methylation._covered_numba import Spans

_FIRST = 1 << 12
#: Contigs, first positions and those behind the last, of alignments.
Places = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]


class AlignmentSpans:
    """Where the alignments of each read are. Some 70 bytes are kept of every alignment."""

    def __init__(self) -> None:
        from f5py.methylation._covered_numba import Spans

        self._n = 0
        self._spans: Spans = Spans(
            np.zeros((2 * _FIRST, 2), np.uint64), np.zeros(2 * _FIRST, np.int64), np.empty(_FIRST, np.int32),
            np.empty(_FIRST, np.int64), np.empty(_FIRST, np.int64), np.empty(_FIRST, np.int64),
        )  # fmt: skip

    def add(self, names: Names, places: Places, used: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Add alignments, or those that are `used`; return which one of the same read came before each, or -1."""
        from f5py.methylation._covered_numba import add_spans

        n = len(names)
        self._make_room(n)
        earlier = np.empty(n, np.int64)
        used = np.ones(n, np.bool_) if used is None else used
        self._n = add_spans(names.text, names.offsets, used, places, self._n, self._spans, earlier)
        return earlier

    def touched(self, names: Names, places: Places) -> NDArray[np.bool_]:
        """Find the alignments that overlap or touch one of the same read that was added; bool, shape (n,)."""
        from f5py.methylation._covered_numba import find_touched

        found = np.zeros(len(names), np.bool_)
        find_touched(names.text, names.offsets, places, self._spans, found)
        return found

    def drop_covered(self, earlier: NDArray[np.int64], contig: NDArray[np.int32], calls: Calls) -> int:
        """Drop the calls that `earlier` alignments, as from `add`, cover; return how many sites those had."""
        from f5py.methylation._covered_numba import drop_covered

        return int(drop_covered(earlier, contig, self._spans, calls))

    def _make_room(self, n: int) -> None:
        from f5py.methylation._covered_numba import move_keys

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


class CoveredCalls:
    """Drops calls of groups that overlap an earlier alignment of the same read, whatever its strand.

    Earlier is what comes before in the input and was called.

    Attributes
    ----------
    n_sites : int
        Sites of the calls that were dropped.
    """

    def __init__(self) -> None:
        self.n_sites = 0
        self._spans = AlignmentSpans()

    def add(self, batch: ReadBatch) -> NDArray[np.int64]:
        """Add the alignments of a batch that were called; see `AlignmentSpans.add`."""
        places = batch.contig, batch.reference_start, batch.reference_end
        return self._spans.add(batch.names, places, batch.status == ReadStatus.OK)

    def drop(self, batch: ReadBatch) -> int:
        """Drop calls of a batch; to be called with all batches in their order. Return how many sites those had."""
        earlier = self.add(batch)
        if not (earlier >= 0).any():
            return 0
        n_sites = 0
        for calls in batch.by_motif or [batch.calls]:
            n_sites += self._spans.drop_covered(earlier, batch.contig, calls)
        if batch.by_motif:
            join_motifs(batch)
        self.n_sites += n_sites
        return n_sites
