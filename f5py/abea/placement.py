"""Which aligner takes which read of a batch, and the alignment stage itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.pipeline.batch import ReadBatch, ReadStatus, offsets_of
from f5py.pipeline.workers import longest_first

#: A read with this many events per base or more is not aligned at all.
MAX_EVENTS_PER_BASE = 15.0


class Aligner(Protocol):
    """An aligner backend. `start` may return before the work is done; `finish` waits for it."""

    def start(self, batch: ReadBatch, reads: list[int], keep_pairs: bool) -> None:
        """Begin to fill the batch's alignment arrays for `reads`."""
        ...

    def finish(self, batch: ReadBatch) -> None:
        """Wait until everything that was started for the batch is in its arrays."""
        ...

    def close(self) -> None:
        """Give back what the aligner holds."""
        ...


def start_alignment(batch: ReadBatch, aligner: Aligner, keep_pairs: bool = False) -> None:
    """Begin to align the events of every read to its k-mers.

    Parameters
    ----------
    batch : ReadBatch
        Events, k-mer ranks and scaling are read; the alignment arrays are made, and filled until
        `finish_alignment` returns.
    aligner : Aligner
    keep_pairs : bool
        Fill `aligned_pairs` too.
    """
    lengths = batch.read_length
    n_events = batch.n_events
    with np.errstate(divide="ignore", invalid="ignore"):
        events_per_base = n_events.astype(np.float32) / lengths.astype(np.float32)
    batch.drop(~(events_per_base < MAX_EVENTS_PER_BASE), ReadStatus.NO_ALIGNMENT)
    # Not filled here but by the aligners, in their threads: for a batch of long reads that takes as long as aligning.
    batch.first_event = np.empty(len(batch.bases), np.int32)
    batch.last_event = np.empty(len(batch.bases), np.int32)
    batch.n_pairs = np.zeros(len(batch), np.int64)
    batch.events_per_base = np.zeros(len(batch), np.float64)
    alignable = batch.status == ReadStatus.OK
    for read in np.flatnonzero(~alignable).tolist():
        unaligned = slice(batch.base_offsets[read], batch.base_offsets[read + 1])
        batch.first_event[unaligned] = batch.last_event[unaligned] = -1
    if keep_pairs:
        # A path has at most one pair per event and one per k-mer.
        batch.pair_offsets = offsets_of((lengths + n_events) * alignable)
        batch.aligned_pairs = np.empty((batch.pair_offsets[-1], 2), np.int32)
    aligner.start(batch, longest_first(lengths + n_events, alignable), keep_pairs)


def finish_alignment(batch: ReadBatch, aligner: Aligner) -> None:
    """Wait for the alignment; reads without an acceptable one become `ReadStatus.NO_ALIGNMENT`."""
    aligner.finish(batch)
    batch.drop(batch.n_pairs == 0, ReadStatus.NO_ALIGNMENT)


class Reason(IntEnum):
    """Why a read was given to the GPU or to the CPU."""

    GPU = 0
    LONG = 1  # not shorter than max-lf times the batch's mean length
    MANY_EVENTS = 2  # max-epk events per base or more
    NO_MEMORY = 3  # does not fit into what is left of the arena


@dataclass(frozen=True)
class Placement:
    """Who aligns which read.

    Attributes
    ----------
    reads : list of int
        All reads to align.
    reason : uint8, shape (len(reads),)
        `Reason` of each of them.
    """

    reads: list[int]
    reason: NDArray[np.uint8]

    def having(self, *reasons: Reason) -> list[int]:
        """The reads placed for one of these reasons, in order."""
        chosen = np.isin(self.reason, reasons)
        return [read for read, is_chosen in zip(self.reads, chosen.tolist(), strict=True) if is_chosen]

    def count(self, reason: Reason) -> int:
        """Number of reads placed for that reason."""
        return int((self.reason == reason).sum())


def place(
    batch: ReadBatch, reads: list[int], max_lf: float, max_epk: float, capacity_bases: int, capacity_events: int
) -> Placement:
    """Divide `reads` between the GPU and the CPU, in order of the batch.

    A read goes to the GPU if it is shorter than `max_lf` times the mean length of the batch, has fewer than `max_epk`
    events per base, and its bases and events still fit the arena.

    Parameters
    ----------
    batch : ReadBatch
    reads : list of int
    max_lf, max_epk : float
    capacity_bases, capacity_events : int
        X and Y.
    """
    ordered = np.sort(np.asarray(reads, np.int64))
    lengths = batch.read_length[ordered]
    n_events = batch.n_events[ordered]
    reason = np.full(len(ordered), Reason.GPU, np.uint8)
    events_per_base = n_events.astype(np.float32) / lengths.astype(np.float32)
    reason[events_per_base >= max_epk] = Reason.MANY_EVENTS
    reason[lengths >= max_lf * batch.read_length.mean()] = Reason.LONG
    eligible = np.flatnonzero(reason == Reason.GPU)
    if lengths[eligible].sum() + len(eligible) > capacity_bases or n_events[eligible].sum() > capacity_events:
        bases = events = 0
        for i in eligible.tolist():
            if bases + lengths[i] + 1 <= capacity_bases and events + n_events[i] <= capacity_events:
                bases += int(lengths[i]) + 1
                events += int(n_events[i])
            else:
                reason[i] = Reason.NO_MEMORY
    return Placement(ordered.tolist(), reason)
