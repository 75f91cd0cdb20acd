"""Seeds of reads: minimizers that the reference has as well, and the anchors that they make.

A minimizer (Roberts et al., Bioinformatics 20:3363, 2004) is the k-mer with the smallest hash of `w` neighbours, on
either strand. Those that occur too often are passed over, but for the rarest of a long stretch without others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import SORT_SCRATCH, appended, grown, sort_pairs
from f5py.mapping.batch import Anchors, MappingBatch
from f5py.mapping.index._sketch_numba import NONE, Minimizers, Scheme, sketch
from f5py.mapping.index.reference_index import COUNT_BITS, ReferenceIndex, look_up
from f5py.mapping.settings import AVA, HPC, MAX_MAX_OCC, MID_OCC, OCC_DIST, Q_OCC_FRAC, STRANDS, K, Parameters, W
from f5py.threads.pool import WorkerPool, longest_first

#: Flags of an anchor, in the high word of y.
LONG_JOIN = 1 << 40
IGNORE = 1 << 41
TANDEM = 1 << 42
SELF = 1 << 43
#: The bit of x that says that the read's other strand was matched.
REVERSE = np.uint64(1 << 63)
#: Most minimizers that are rescued between two others.
_MOST_RESCUED = 128


@exact_inner
def _drop_frequent_in_read(key, place, n, mid_occ, fraction, slots):
    """Drop minimizers more frequent in the read than `mid_occ` and `fraction`; return how many stay."""
    mask = slots.shape[0] // 2 - 1
    for i in range(2 * (mask + 1)):
        slots[i] = -1
    limit = np.float32(n) * fraction
    any_dropped = False
    for i in range(n):
        slot = np.int64((key[i] >> np.uint64(8)) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) & mask
        while slots[2 * slot] >= 0 and key[slots[2 * slot]] != key[i]:
            slot = (slot + 1) & mask
        if slots[2 * slot] < 0:
            slots[2 * slot] = i
            slots[2 * slot + 1] = 0
        slots[2 * slot + 1] += 1
        if slots[2 * slot + 1] > mid_occ and np.float32(slots[2 * slot + 1]) > limit:
            any_dropped = True
    if not any_dropped:
        return n
    m = 0
    for i in range(n):
        slot = np.int64((key[i] >> np.uint64(8)) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) & mask
        while key[slots[2 * slot]] != key[i]:
            slot = (slot + 1) & mask
        count = slots[2 * slot + 1]
        if count > mid_occ and np.float32(count) > limit:
            place[i] = -1
    for i in range(n):
        if place[i] >= 0:
            key[m] = key[i]
            place[m] = place[i]
            m += 1
    return m


@exact_inner
def _choose_rescued(entries, begin, end, allowed, max_max_occ, dropped):
    """Drop the seeds of a run of frequent ones but the `allowed` rarest."""
    count_mask = (1 << COUNT_BITS) - 1
    for i in range(begin, end):
        dropped[i] = 1
    for _ in range(min(allowed, end - begin)):
        best = -1
        for i in range(begin, end):
            if dropped[i] == 1 and (best < 0 or (entries[i] & count_mask) < (entries[best] & count_mask)):
                best = i
        dropped[best] = 0
    for i in range(begin, end):
        if (entries[i] & count_mask) > max_max_occ:
            dropped[i] = 1


@exact_inner
def drop_frequent(entries, place, m, read_length, integers, dropped):
    """Drop the seeds with more places than `MID_OCC`, but for the rarest of a long stretch without others.

    `entries`, int64, have the number of places in the lowest `COUNT_BITS` bits, `place`, int64, last base << 1,
    ascending, in the lowest 32; bit 0 is not looked at. `dropped`, uint8, is zero, and set for those that are not used.
    """
    count_mask = (1 << COUNT_BITS) - 1
    mid_occ = integers[MID_OCC]
    if integers[OCC_DIST] > 0 and integers[MAX_MAX_OCC] > mid_occ:
        if m < 2:
            return
        i = 0
        while i < m:
            if (entries[i] & count_mask) <= mid_occ:
                i += 1
                continue
            j = i
            while j < m and (entries[j] & count_mask) > mid_occ:
                j += 1
            begin = 0 if i == 0 else (place[i - 1] & 0xFFFFFFFF) >> 1
            end = read_length if j == m else (place[j] & 0xFFFFFFFF) >> 1
            allowed = min(_MOST_RESCUED, np.int64((end - begin) / integers[OCC_DIST] + 0.499))
            _choose_rescued(entries, i, j, allowed, integers[MAX_MAX_OCC], dropped)
            i = j
    else:
        for i in range(m):
            if (entries[i] & count_mask) > mid_occ:
                dropped[i] = 1


@exact_inner
def seeds_of_read(minimizers, n, read_length, index, integers, floats, room):
    """Turn minimizers into seeds; return their number and how much of the read dropped ones cover.

    The first `n` become the seeds; bit 32 of a place marks one next to one with the same key. `room` is filled, an
    element a seed: its entry of `look_up`; 1 if it is dropped; scratch.
    """
    key, place = minimizers
    entries, dropped, slots = room
    count_mask = (1 << COUNT_BITS) - 1
    mid_occ = integers[MID_OCC]
    if n > mid_occ:
        n = _drop_frequent_in_read(key, place, n, mid_occ, floats[Q_OCC_FRAC], slots)
    m = 0
    any_frequent = False
    before = NONE
    for i in range(n):
        this = key[i] >> np.uint64(8)
        after = key[i + 1] >> np.uint64(8) if i + 1 < n else NONE
        entry = look_up(index, this)
        if entry != 0:
            tandem = np.int64(this == before) | np.int64(this == after)
            key[m] = key[i]  # m <= i: the next one is still as it was
            place[m] = place[i] | (tandem << 32)
            entries[m] = entry
            dropped[m] = 0
            if (entry & count_mask) > mid_occ:
                any_frequent = True
            m += 1
        before = this
    if any_frequent:
        drop_frequent(entries, place, m, read_length, integers, dropped)
    covered = 0
    begin = 0
    end = 0
    for i in range(m):
        if dropped[i]:
            last = ((place[i] & 0xFFFFFFFF) >> 1) + 1
            first = last - np.int64(key[i] & np.uint64(255))
            if first > end:
                covered += end - begin
                begin = first
            end = last
    return m, covered + end - begin


@exact_kernel
def seed_reads(queue, reads, bases, offsets, index, parameters, overlaps, sums):
    """Find the sorted anchors of reads.

    Return the reads in the order of this thread, their anchors, x and y, and span << 32 | last base of the used seeds.

    Parameters
    ----------
    bases, offsets : uint8, int64
        Codes of all reads.
    overlaps : tuple of int64
        For each read the rank of the first target without a smaller name, and the target that is the read, or -1; the
        rank of each target. Empty but for overlaps.
    sums : SeedSums
        Filled.
    """
    places = index.places
    integers, floats = parameters.integers, parameters.floats
    smaller, same, target_rank = overlaps
    n_anchors, n_seeds, rep_len = sums
    k = integers[K]
    ava = integers[AVA] != 0
    only_strand = integers[STRANDS]
    done = np.empty(16, np.int64)
    n_done = 0
    x, y, used = np.empty(1 << 12, np.uint64), np.empty(1 << 12, np.int64), np.empty(1 << 12, np.int64)
    n = n_used = 0
    ring = np.empty(2 * integers[W] + k, np.uint64)
    scratch = np.empty(SORT_SCRATCH, np.int64)
    key, dropped = np.empty(0, np.uint64), np.empty(0, np.uint8)
    place, entries = np.empty(0, np.int64), np.empty(0, np.int64)
    count_mask = (1 << COUNT_BITS) - 1
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        length = offsets[read + 1] - offsets[read]
        if key.shape[0] < length:
            key, dropped = np.empty(length, np.uint64), np.empty(length, np.uint8)
            place, entries = np.empty(length, np.int64), np.empty(length, np.int64)
        m = sketch(
            bases, offsets[read], offsets[read + 1], Scheme(k, integers[W], integers[HPC]), 0, ring,
            Minimizers(key, place), 0,
        )  # fmt: skip
        n_slots = 16
        while n_slots < 2 * m:
            n_slots *= 2
        slots = np.empty(2 * n_slots, np.int64)
        m, rep_len[read] = seeds_of_read(
            Minimizers(key, place), m, length, index, integers, floats, (entries, dropped, slots)
        )
        done, n_done = appended(done, n_done, read)
        begin = n
        used = grown(used, n_used + m)
        first_used = n_used
        for s in range(m):
            if dropped[s]:
                continue
            span = np.int64(key[s] & np.uint64(255))
            strand = place[s] & 1
            last = (place[s] & 0xFFFFFFFF) >> 1
            high = span << 32
            if place[s] >> 32:
                high |= TANDEM
            used[n_used] = (span << 32) | last
            n_used += 1
            count = entries[s] & count_mask
            first = entries[s] >> COUNT_BITS
            x = grown(x, n + count)
            y = grown(y, n + count)
            for p in range(first, first + count):
                is_forward = (places[p] & 1) == strand
                if only_strand and is_forward != (only_strand == 1):
                    continue
                target = places[p] >> 32
                at = (places[p] & 0xFFFFFFFF) >> 1
                flags = high
                if ava:
                    if target == same[read]:
                        if at == last:
                            continue
                        if is_forward:
                            flags |= SELF
                    if target_rank[target] < smaller[read]:
                        continue
                if is_forward:
                    x[n] = np.uint64((target << 32) | at)
                    y[n] = flags | last
                else:
                    x[n] = REVERSE | np.uint64((target << 32) | at)
                    y[n] = flags | (length - 1 - (last + 1 - span))
                n += 1
        sort_pairs(x, y, begin, n, scratch)
        n_anchors[read] = n - begin
        n_seeds[read] = n_used - first_used
    return done[:n_done], x[:n], y[:n], used[:n_used]


@exact_kernel
def gather(done, counts, offsets, source, target):
    """Copy one thread's results to the places of their reads.

    Parameters
    ----------
    done : int64
        The reads in the order in which the thread took them.
    counts : int64, shape (n_reads,)
        Bytes.
    offsets : int64, shape (n_reads + 1,)
        In `target`.
    source, target : uint8
        One read of `done` after another; filled for `done`.
    """
    at = 0
    for i in range(done.shape[0]):
        begin = offsets[done[i]]
        n = counts[done[i]]
        # loops over views are copied in vectors
        to = target[begin : begin + n]
        found = source[at : at + n]
        for j in range(n):
            to[j] = found[j]
        at += n


class OverlapTargets:
    """Names of targets, as overlaps of reads with themselves need them."""

    def __init__(self, index: ReferenceIndex) -> None:
        names = np.array([name.encode("utf-8", "surrogateescape") for name in index.names], object)
        order = np.argsort(names, kind="stable")
        self._names = [names[i] for i in order]
        self._order = order
        self._lengths = np.diff(index.offsets)
        #: Rank of each target's name; equal names have the rank of the first.
        self.rank = np.array([bisect_left(self._names, name) for name in names], np.int64)

    def of(self, batch: MappingBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each read, the number of targets with smaller names, and the target that is the read, or -1."""
        smaller = np.empty(len(batch), np.int64)
        same = np.full(len(batch), -1, np.int64)
        for i, text in enumerate(batch.names):
            name = text.encode("utf-8", "surrogateescape")
            smaller[i] = at = bisect_left(self._names, name)
            if self._names[at : at + 1] == [name]:
                target = self._order[at]
                if self._lengths[target] == batch.lengths[i]:
                    same[i] = target
        return smaller, same


def collecting(kernel: Callable[..., Any], results: list[Any]) -> Callable[..., None]:
    """Make a function for `WorkerPool.run` that collects the results of the threads."""

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
    """Copy one thread's results of any type to the places of their reads, as bytes; see `gather`.

    Counts and offsets are those of elements, of which `target` has as large ones as `source`.
    """
    size = target.itemsize
    gather(done, counts * size, offsets * size, source.view(np.uint8), target.view(np.uint8))


def suits_gpu(parameters: Parameters) -> bool:
    """Return whether a GPU can find these seeds: k-mers that never equal their reverse complement."""
    integers = parameters.integers
    return bool(integers[K] % 2 == 1 and not integers[HPC] and not integers[AVA] and not integers[STRANDS])


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
    take_anchors(batch, results, sums)
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
        For `take_anchors`; added results replace earlier ones of the same reads.
    """
    nothing = np.empty(0, np.int64)
    ranks = (nothing, nothing, nothing) if overlaps is None else (*overlaps.of(batch), overlaps.rank)
    order = reads[longest_first(batch.lengths[reads], np.ones(len(reads), np.bool_))]
    return pool.run(
        collecting(seed_reads, results), order, batch.codes, batch.offsets, index.seeds, parameters, ranks, sums,
        order=batch.number,
    )  # fmt: skip


def take_anchors(batch: MappingBatch, results: list[Any], sums: SeedSums) -> None:
    """Fill ``batch.anchors`` from the results of `seed_reads` of all threads."""
    n_anchors, n_seeds, rep_len = sums
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
    """Return whether one thread has found the results of all reads, in their order."""
    done, x, _, seeds = result
    return len(x) == n_anchors and len(seeds) == n_seeds and np.array_equal(done, np.arange(n_reads))
