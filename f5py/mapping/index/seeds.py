"""Seeds of reads: minimizers that the reference has as well, and the anchors that they make.

A minimizer (Roberts et al., Bioinformatics 20:3363, 2004) is the k-mer with the smallest hash of `w` neighbours, on
either strand. Those that occur too often are passed over, but for the rarest of a long stretch without others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.mapping.batch import Anchors, MappingBatch
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.settings import AVA, HPC, K, Parameters
from f5py.threads.pool import WorkerPool, longest_first


class OverlapTargets:
    """Names of targets, as overlaps of reads with themselves need them."""

    def __init__(self, index: ReferenceIndex) -> None:
        names = np.array([name.encode("utf-8", "surrogateescape") for name in index.names], object)
        order = np.argsort(names, kind="stable")
        self._names = [names[i] for i in order]
        self._order = order
        self._lengths = np.diff(index.offsets)
        self.rank = np.empty(len(names), np.int64)
        #: Rank of each target's name; equal names have the rank of the first.
        for place, i in enumerate(order):
            is_same = place > 0 and self._names[place] == self._names[place - 1]
            self.rank[i] = self.rank[order[place - 1]] if is_same else place

    def of(self, batch: MappingBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each read, the number of targets with smaller names, and the target that is the read, or -1."""
        from bisect import bisect_left

        smaller = np.empty(len(batch), np.int64)
        same = np.full(len(batch), -1, np.int64)
        for i, name in enumerate(batch.names):
            smaller[i] = at = bisect_left(self._names, name.encode("utf-8", "surrogateescape"))
            if at < len(self._names) and self._names[at] == name.encode("utf-8", "surrogateescape"):
                target = self._order[at]
                if self._lengths[target] == batch.lengths[i]:
                    same[i] = target
        return smaller, same


def collecting(kernel: Callable[..., Any], results: list[Any]) -> Callable[..., None]:
    """Make a function for `WorkerPool.run` that keeps what each thread returns."""

    def call(*arguments: Any) -> None:
        results.append(kernel(*arguments))

    return call


def copy_to_places(
    done: NDArray[np.int64],
    counts: NDArray[np.int64],
    offsets: NDArray[np.int64],
    source: NDArray,
    target: NDArray,
) -> None:
    """Copy what one thread has found of its reads to their places, as bytes: so arrays of all types have one code.

    Parameters
    ----------
    done : int64
        The reads in the order in which the thread took them.
    counts, offsets : int64
        Elements of each read, and where they begin in `target`.
    source : array
        One read of `done` after another.
    target : array
        Of elements of the same size. Filled for `done`.
    """
    from f5py.mapping.index._seeds_numba import gather

    size = target.itemsize
    gather(done, counts * size, offsets * size, source.view(np.uint8), target.view(np.uint8))


def suits_gpu(parameters: Parameters) -> bool:
    """Return whether a GPU can find seeds of this kind: of k-mers that are never their own reverse complement."""
    integers = parameters.integers
    return bool(integers[K] % 2 == 1 and not integers[HPC] and not integers[AVA])


class SeedSums(NamedTuple):
    """Numbers of each read of a batch, to be filled; int64, shape (n_reads,)."""

    n_anchors: NDArray[np.int64]
    n_seeds: NDArray[np.int64]
    rep_len: NDArray[np.int64]  # bases that seeds cover which are too frequent to be used

    @classmethod
    def zero(cls, n: int) -> SeedSums:
        """Make those of `n` reads."""
        return cls(np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64))


def find_anchors(
    batch: MappingBatch,
    index: ReferenceIndex,
    parameters: Parameters,
    pool: WorkerPool,
    overlaps: OverlapTargets | None = None,
) -> float:
    """Find the sorted anchors of all reads; fills ``batch.anchors``.

    Return the seconds that all threads together have worked.

    Parameters
    ----------
    batch : MappingBatch
        With codes.
    overlaps : OverlapTargets, optional
        For overlaps of reads with themselves.
    """
    sums = SeedSums.zero(len(batch))
    results: list[Any] = []
    seconds = seed_some(batch, np.arange(len(batch)), index, parameters, pool, sums, results, overlaps)
    take_anchors(batch, results, sums.n_anchors, sums.n_seeds, sums.rep_len)
    return seconds


def seed_some(
    batch: MappingBatch,
    reads: NDArray[np.int64],
    index: ReferenceIndex,
    parameters: Parameters,
    pool: WorkerPool,
    sums: SeedSums,
    results: list[Any],
    overlaps: OverlapTargets | None = None,
) -> float:
    """Find the sorted anchors of some reads.

    Return the seconds that all threads together have worked.

    Parameters
    ----------
    sums : SeedSums
        Filled for these reads.
    results : list
        For `take_anchors`; of reads that are in it already, what is added counts.
    batch, index, parameters, pool, overlaps
        See `find_anchors`.
    """
    from f5py.mapping.index._reference_index_numba import SeedIndex
    from f5py.mapping.index._seeds_numba import OverlapRanks, SeedCounts, seed_reads

    smaller, same, rank = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    if overlaps is not None:
        smaller, same = overlaps.of(batch)
        rank = overlaps.rank
    order = reads[longest_first(batch.lengths[reads], np.ones(len(reads), np.bool_))]
    return pool.run(
        collecting(seed_reads, results), order, batch.codes, batch.offsets, SeedIndex(*index.seeds),
        parameters, OverlapRanks(smaller, same, rank), SeedCounts(*sums), order=batch.number,
    )  # fmt: skip


def take_anchors(
    batch: MappingBatch,
    results: list[Any],
    n_anchors: NDArray[np.int64],
    n_seeds: NDArray[np.int64],
    rep_len: NDArray[np.int64],
) -> None:
    """Fill ``batch.anchors`` with what the threads have found: their reads, with x, y and seeds of these.

    Parameters
    ----------
    results : list
        Of `seed_reads`, from every thread.
    n_anchors, n_seeds, rep_len : int64, shape (n_reads,)
    """
    offsets, seed_offsets = offsets_of(n_anchors), offsets_of(n_seeds)
    if results and _is_all(results[0], len(batch), int(offsets[-1]), int(seed_offsets[-1])):
        (_, x, y, seeds), *results = results  # of some of these reads others may have found more
    else:
        x, y = np.empty(offsets[-1], np.uint64), np.empty(offsets[-1], np.int64)
        seeds = np.empty(seed_offsets[-1], np.int64)
    for done, found_x, found_y, found_seeds in results:
        copy_to_places(done, n_anchors, offsets, found_x, x)
        copy_to_places(done, n_anchors, offsets, found_y, y)
        copy_to_places(done, n_seeds, seed_offsets, found_seeds, seeds)
    empty = np.empty(0, np.int32)
    batch.anchors = Anchors(x, y, offsets, seeds, seed_offsets, rep_len, empty, empty)


def _is_all(result: Any, n_reads: int, n_anchors: int, n_seeds: int) -> bool:
    """Return whether all has a place in what one thread has found, in the order of the reads."""
    done, x, _, seeds = result
    return len(x) == n_anchors and len(seeds) == n_seeds and np.array_equal(done, np.arange(n_reads))
