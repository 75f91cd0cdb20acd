"""Which aligner takes which read of a batch."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from f5py.pipeline.batch import ReadBatch, ReadStatus, offsets_of
from f5py.pipeline.workers import longest_first

#: A read with this many events per base or more is not aligned at all.
MAX_EVENTS_PER_BASE = 15.0


class Aligner(Protocol):
    """An aligner backend."""

    def align(self, batch: ReadBatch, reads: list[int], keep_pairs: bool) -> None:
        """Fill the batch's alignment arrays for `reads`."""
        ...


def align_events(batch: ReadBatch, aligner: Aligner, keep_pairs: bool = False) -> None:
    """Align the events of every read to its k-mers; unaligned reads become `ReadStatus.NO_ALIGNMENT`.

    Parameters
    ----------
    batch : ReadBatch
        Events, k-mer ranks and scaling are read; the alignment arrays are filled.
    aligner : Aligner
    keep_pairs : bool
        Fill `aligned_pairs` too.
    """
    lengths = batch.read_length
    n_events = batch.n_events
    with np.errstate(divide="ignore", invalid="ignore"):
        events_per_base = n_events.astype(np.float32) / lengths.astype(np.float32)
    batch.drop(~(events_per_base < MAX_EVENTS_PER_BASE), ReadStatus.NO_ALIGNMENT)
    batch.first_event = np.full(len(batch.bases), -1, np.int32)
    batch.last_event = np.full(len(batch.bases), -1, np.int32)
    batch.n_pairs = np.zeros(len(batch), np.int64)
    batch.events_per_base = np.zeros(len(batch), np.float64)
    alignable = batch.status == ReadStatus.OK
    if keep_pairs:
        # A path has at most one pair per event and one per k-mer.
        batch.pair_offsets = offsets_of((lengths + n_events) * alignable)
        batch.aligned_pairs = np.empty((batch.pair_offsets[-1], 2), np.int32)
    aligner.align(batch, longest_first(lengths + n_events, alignable), keep_pairs)
    batch.drop(batch.n_pairs == 0, ReadStatus.NO_ALIGNMENT)
