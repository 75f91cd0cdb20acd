"""Placement of a batch's reads on a GPU and on the CPU threads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.arena import ArenaSize
from f5py.core.batch import ReadBatch

#: How much longer the GPU takes for a single read than a CPU thread, measured on an H100 beside a Xeon; it wins by the
#: number of reads.
LATENCY_RATIO = 10.0
#: What a base of many reads costs the GPU, in terms of a base on a CPU thread.
THROUGHPUT_RATIO = 0.02


class Backend(Protocol):
    """Interface of what computes a batch: of signals, from the samples to the recalibrated alignment."""

    def compute(self, batch: Any) -> None:
        """Fill the batch's arrays. May be called in several threads, with a batch in each."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...


class Reason(IntEnum):
    """Reasons for giving a read to the GPU or to the CPU."""

    GPU = 0
    LONG = 1  # not shorter than max-lf times the batch's mean length
    MANY_EVENTS = 2  # max-epk events per base or more
    NO_MEMORY = 3  # does not fit into what is left of the arena


@dataclass(frozen=True)
class Placement:
    """Division of a batch's reads among processors."""

    reads: NDArray[np.int64]  # shape (n,): all reads of the batch that have a signal, in order
    reason: NDArray[np.uint8]  # shape (n,): `Reason` of each of them

    def having(self, reason: Reason) -> NDArray[np.int64]:
        """List the reads placed for that reason, in order."""
        return self.reads[self.reason == reason]

    def count(self, reason: Reason) -> int:
        """Count the reads placed for that reason."""
        return int((self.reason == reason).sum())

    def move(self, moved: NDArray[np.bool_], reason: Reason) -> None:
        """Place those of the GPU's reads for which `moved` is true for another reason."""
        self.reason[np.flatnonzero(self.reason == Reason.GPU)[moved]] = reason


def place(
    batch: ReadBatch, reads: NDArray[np.int64], k: int, max_lf: float, size: ArenaSize, n_threads: int
) -> Placement:
    """Divide `reads` between the GPU and the CPU by what is known before there are events.

    A read goes to the GPU if it has a k-mer, if it is shorter than `max_lf` times the mean length of the batch or would
    make the GPU end no later than the CPU threads, and if it and those before it fit the arena.

    Parameters
    ----------
    reads : int64
        In order.
    n_threads : int
        CPU threads.
    """
    lengths = batch.read_length[reads]
    reason = np.full(len(reads), Reason.GPU, np.uint8)
    is_long = lengths >= max_lf * batch.read_length.mean()
    if is_long.any():
        is_long = lengths > _longest_for_gpu(lengths, is_long, n_threads)
    reason[is_long | (lengths < k)] = Reason.LONG
    placement = Placement(reads, reason)
    chosen = placement.having(Reason.GPU)
    bases = np.cumsum(batch.read_length[chosen] + 1)
    samples = np.cumsum(batch.n_samples[chosen])
    fits = (bases <= size.bases) & (samples <= size.samples) & (np.arange(len(chosen)) < size.reads)
    placement.move(~fits, Reason.NO_MEMORY)
    return placement


def _longest_for_gpu(lengths: NDArray[np.int64], is_long: NDArray[np.bool_], n_threads: int) -> int:
    """Find the length up to which reads go to the GPU, so that it and the CPU threads end as early as possible.

    Either takes as long as its longest read, on one thread or in one warp, or as all of its reads on all threads or
    multiprocessors.

    Parameters
    ----------
    lengths : int64, shape (n,)
    is_long : bool, shape (n,)
        Reads that may go to the CPU; the others go to the GPU.
    """
    long = np.sort(lengths[is_long])
    others = lengths[~is_long]
    # of i reads given to the GPU, 0 <= i <= n
    given = np.concatenate([[0], np.cumsum(long)])
    kept = given[-1] - given
    on_cpu = np.maximum(np.append(np.full(len(long), long[-1]), 0), kept / n_threads)
    longest = np.maximum(np.append(0, long), others.max(initial=0))
    on_gpu = np.maximum(LATENCY_RATIO * longest, (others.sum() + given) * THROUGHPUT_RATIO)
    end = np.maximum(on_cpu, on_gpu)
    most = len(end) - 1 - int(np.argmin(end[::-1]))  # of equals the one that leaves the CPU least to do
    return int(longest[most])
