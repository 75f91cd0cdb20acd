"""Placement of a batch's reads on a GPU and the CPU threads."""

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
    """Interface of a processor of batches."""

    def compute(self, batch: Any) -> None:
        """Fill the batch's arrays; thread-safe for distinct batches."""
        ...

    def close(self) -> None:
        """Release its resources."""
        ...


class PlacementReason(IntEnum):
    """Reasons for placing a read on the GPU or the CPU."""

    GPU = 0
    LONG = 1  # not shorter than max-lf times the batch's mean length
    MANY_EVENTS = 2  # max-epk events per base or more
    NO_MEMORY = 3  # does not fit into what is left of the arena


@dataclass(frozen=True)
class Placement:
    """Division of a batch's reads among processors."""

    reads: NDArray[np.int64]  # shape (n,): all reads of the batch that have a signal, in order
    reason: NDArray[np.uint8]  # shape (n,): `PlacementReason` of each of them

    def having(self, reason: PlacementReason) -> NDArray[np.int64]:
        """List the reads placed for that reason, in order."""
        return self.reads[self.reason == reason]

    def count(self, reason: PlacementReason) -> int:
        return int((self.reason == reason).sum())

    def move(self, moved: NDArray[np.bool_], reason: PlacementReason) -> None:
        """Change the reason of the GPU's reads in the mask `moved`."""
        self.reason[np.flatnonzero(self.reason == PlacementReason.GPU)[moved]] = reason


def place(
    batch: ReadBatch, reads: NDArray[np.int64], k: int, max_lf: float, size: ArenaSize, n_threads: int
) -> Placement:
    """Divide `reads`, in order, between GPU and CPU by their numbers of bases.

    The GPU gets a read with a k-mer if it fits the arena and either is shorter than `max_lf` times the batch's mean or
    would not delay the batch beyond the CPU threads.
    """
    lengths = batch.read_length[reads]
    reason = np.full(len(reads), PlacementReason.GPU, np.uint8)
    is_long = lengths >= max_lf * batch.read_length.mean()
    if is_long.any():
        is_long = lengths > _longest_for_gpu(lengths, is_long, n_threads)
    reason[is_long | (lengths < k)] = PlacementReason.LONG
    placement = Placement(reads, reason)
    chosen = placement.having(PlacementReason.GPU)
    bases = np.cumsum(batch.read_length[chosen] + 1)
    samples = np.cumsum(batch.n_samples[chosen])
    fits = (bases <= size.bases) & (samples <= size.samples) & (np.arange(len(chosen)) < size.reads)
    placement.move(~fits, PlacementReason.NO_MEMORY)
    return placement


def _longest_for_gpu(lengths: NDArray[np.int64], is_long: NDArray[np.bool_], n_threads: int) -> int:
    """Find the length limit for the GPU that ends GPU and CPU threads as early as possible.

    Either takes as long as its longest read, on one thread or in one warp, or as all of its reads on all threads or
    multiprocessors. Reads in `is_long` may go to the CPU.
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
