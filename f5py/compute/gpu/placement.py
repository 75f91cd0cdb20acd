"""Which read of a batch goes to a GPU, and which to the CPU threads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.arena import ArenaSize
from f5py.core.batch import ReadBatch


class Backend(Protocol):
    """What computes a batch from its samples to its recalibrated alignment."""

    def compute(self, batch: ReadBatch) -> None:
        """Fill the batch's arrays. May be called in several threads, with a batch in each."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...


class Reason(IntEnum):
    """Why a read was given to the GPU or to the CPU."""

    GPU = 0
    LONG = 1  # not shorter than max-lf times the batch's mean length
    MANY_EVENTS = 2  # max-epk events per base or more
    NO_MEMORY = 3  # does not fit into what is left of the arena


@dataclass(frozen=True)
class Placement:
    """Who computes which read.

    Attributes
    ----------
    reads : int64, shape (n,)
        All reads of the batch that have a signal, in order.
    reason : uint8, shape (n,)
        `Reason` of each of them.
    """

    reads: NDArray[np.int64]
    reason: NDArray[np.uint8]

    def having(self, reason: Reason) -> NDArray[np.int64]:
        """The reads placed for that reason, in order."""
        return self.reads[self.reason == reason]

    def count(self, reason: Reason) -> int:
        """Number of reads placed for that reason."""
        return int((self.reason == reason).sum())

    def move(self, moved: NDArray[np.bool_], reason: Reason) -> None:
        """Place those of the GPU's reads for which `moved` is true for another reason."""
        self.reason[np.flatnonzero(self.reason == Reason.GPU)[moved]] = reason


def place(batch: ReadBatch, reads: NDArray[np.int64], k: int, max_lf: float, size: ArenaSize) -> Placement:
    """Divide `reads` between the GPU and the CPU by what is known before there are events.

    A read goes to the GPU if it has a k-mer, is shorter than `max_lf` times the mean length of the batch, and if it and
    those before it fit the arena.

    Parameters
    ----------
    batch : ReadBatch
    reads : int64
        In order.
    k : int
    max_lf : float
    size : ArenaSize
    """
    lengths = batch.read_length[reads]
    reason = np.full(len(reads), Reason.GPU, np.uint8)
    reason[(lengths >= max_lf * batch.read_length.mean()) | (lengths < k)] = Reason.LONG
    placement = Placement(reads, reason)
    chosen = placement.having(Reason.GPU)
    bases = np.cumsum(batch.read_length[chosen] + 1)
    samples = np.cumsum(batch.n_samples[chosen])
    fits = (bases <= size.bases) & (samples <= size.samples) & (np.arange(len(chosen)) < size.reads)
    placement.move(~fits, Reason.NO_MEMORY)
    return placement
