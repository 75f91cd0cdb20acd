"""Which aligner takes which read of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch


class Aligner(Protocol):
    """An aligner backend. `start` may return before the work is done; `finish` waits for it."""

    def start(self, batch: ReadBatch, reads: NDArray[np.int64], keep_pairs: bool) -> float:
        """Begin to fill the batch's alignment arrays for `reads`; return the CPU threads' seconds."""
        ...

    def finish(self, batch: ReadBatch) -> float:
        """Wait until everything that was started for the batch is in its arrays; return the CPU threads' seconds."""
        ...

    def close(self) -> None:
        """Give back what the aligner holds."""
        ...


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
    reads : int64, shape (n,)
        All reads to align.
    reason : uint8, shape (n,)
        `Reason` of each of them.
    """

    reads: NDArray[np.int64]
    reason: NDArray[np.uint8]

    def having(self, *reasons: Reason) -> NDArray[np.int64]:
        """The reads placed for one of these reasons, in order."""
        return self.reads[np.isin(self.reason, reasons)]

    def count(self, reason: Reason) -> int:
        """Number of reads placed for that reason."""
        return int((self.reason == reason).sum())


def place(
    batch: ReadBatch, reads: NDArray[np.int64], max_lf: float, max_epk: float, capacity_bases: int, capacity_events: int
) -> Placement:
    """Divide `reads` between the GPU and the CPU, in order of the batch.

    A read goes to the GPU if it is shorter than `max_lf` times the mean length of the batch, has fewer than `max_epk`
    events per base, and its bases and events still fit the arena.

    Parameters
    ----------
    batch : ReadBatch
    reads : int64
    max_lf, max_epk : float
    capacity_bases, capacity_events : int
        X and Y.
    """
    ordered = np.sort(reads)
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
    return Placement(ordered, reason)
