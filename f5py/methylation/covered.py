"""Calls of a read where an earlier alignment of it lies, so that a read counts once at every site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch, ReadStatus
from f5py.methylation.calls import join_motifs

if TYPE_CHECKING:
    from f5py.methylation._covered_numba import Spans

_FIRST = 1 << 12


class CoveredCalls:
    """Drops calls of groups that overlap an earlier alignment of the same read, whatever its strand.

    Earlier is what comes before in the input and was called. Some 70 bytes are kept of every alignment.

    Attributes
    ----------
    n_sites : int
        Sites of the calls that were dropped.
    """

    def __init__(self) -> None:
        from f5py.methylation._covered_numba import Spans

        self.n_sites = 0
        self._n = 0
        self._spans: Spans = Spans(
            np.zeros((2 * _FIRST, 2), np.uint64), np.zeros(2 * _FIRST, np.int64), np.empty(_FIRST, np.int32),
            np.empty(_FIRST, np.int64), np.empty(_FIRST, np.int64), np.empty(_FIRST, np.int64),
        )  # fmt: skip

    def drop(self, batch: ReadBatch) -> None:
        """Drop calls of a batch; to be called with all batches in their order."""
        from f5py.methylation._covered_numba import add_spans, drop_covered

        self._make_room(len(batch))
        earlier = np.empty(len(batch), np.int64)
        used = batch.status == ReadStatus.OK
        names = batch.names
        self._n = add_spans(
            names.text, names.offsets, used, (batch.contig, batch.reference_start, batch.reference_end), self._n,
            self._spans, earlier,
        )  # fmt: skip
        if not (earlier >= 0).any():
            return
        for calls in batch.by_motif or [batch.calls]:
            self.n_sites += int(drop_covered(earlier, batch.contig, self._spans, calls))
        if batch.by_motif:
            join_motifs(batch)

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
