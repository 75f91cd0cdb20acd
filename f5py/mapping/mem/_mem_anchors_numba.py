"""Jitted loops from matches to sorted anchors; see `f5py.mapping.mem.mem_seeds`."""

# mypy: disable-error-code="assignment"
import numpy as np

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import SORT_SCRATCH, appended, grown, sort_pairs
from f5py.mapping.index._seeds_numba import REVERSE, drop_frequent
from f5py.mapping.mem._mems_numba import (
    COUNT,
    LAST,
    LENGTH,
    N_COLUMNS,
    ROW,
    find_mems,
    locate_mems,
    n_located,
    write_strand,
)
from f5py.mapping.mem.mem_arrays import GrowingAnchors, ReadMems
from f5py.mapping.settings import MID_OCC

#: Anchors of a match, from its end on, have a span of so many bases; what is left at the beginning has as many as this.
SPAN, SHORTEST = 32, 15
_MOST_COUNT = (1 << 28) - 1
_LOW = 0xFFFFFFFF


@exact_inner
def _order_seeds(mems, middle, n, read_length, key, entries, place):
    """Sort the matches of both strands by their last base on the read's forward strand.

    Filled: the matches' numbers, their counts and places as `drop_frequent` takes them.
    """
    scratch = np.empty(SORT_SCRATCH, np.int64)
    for m in range(n):
        last = np.int64(mems[m, LAST])
        if m >= middle:
            last = read_length - 1 - (last + 1 - mems[m, LENGTH])
        key[m] = np.uint64(last << 1 | np.int64(m >= middle))
        entries[m] = m
    sort_pairs(key, entries, 0, n, scratch)
    for i in range(n):
        m = entries[i]
        place[i] = np.int64(key[i])
        key[i] = np.uint64(m)
        entries[i] = min(np.int64(mems[m, COUNT]), _MOST_COUNT)


@exact_inner
def _covered(mems, key, place, dropped, n):
    """Bases of the read that dropped matches cover."""
    covered = np.int64(0)
    begin = np.int64(1) << 62
    for i in range(n - 1, -1, -1):
        if dropped[i]:
            end = (place[i] >> 1) + 1
            first = end - mems[np.int64(key[i]), LENGTH]
            if first < begin:
                covered += min(end, begin) - first
                begin = first
    return covered


@exact_inner
def n_anchors_of(length):
    """Count the anchors of a match."""
    return 1 + max(length - SHORTEST, 0) // SPAN


@exact_inner
def _write_anchors(at, last, length, is_reverse, contig_offsets, x, y, n):
    """Write the anchors of a match with its first base at that place of the reference; return how many are there."""
    a = 0
    b = contig_offsets.shape[0] - 1
    while b - a > 1:
        middle = (a + b) // 2
        if contig_offsets[middle] <= at:
            a = middle
        else:
            b = middle
    if at + length > contig_offsets[a + 1]:
        return n  # a damaged index says so
    n_pieces = n_anchors_of(length)
    for piece in range(n_pieces):
        before = SPAN * piece
        x[n] = np.uint64((np.int64(a) << 32) | (at + length - 1 - before - contig_offsets[a]))
        if is_reverse:
            x[n] |= REVERSE
        y[n] = ((SPAN if piece + 1 < n_pieces else length - before) << 32) | (last - before)
        n += 1
    return n


@exact_inner
def _sort_by_place(seeds, begin, end):
    """Sort seeds by their last bases."""
    key = np.empty(end - begin, np.uint64)
    values = seeds[begin:end].copy()
    for i in range(end - begin):
        key[i] = np.uint64((values[i] & _LOW) << 8 | values[i] >> 32)
    sort_pairs(key, values, 0, end - begin, np.empty(SORT_SCRATCH, np.int64))
    seeds[begin:end] = values


@exact_inner
def anchors_of_mems(matches, read_length, integers, contig_offsets, places, so_far):
    """Choose the matches of a read that are used, and write their anchors.

    Parameters
    ----------
    matches : ReadMems
    read_length : int
    integers
        `f5py.mapping.settings.Parameters`.
    contig_offsets : int64
    places : int32
        Of the index.
    so_far : GrowingAnchors

    Returns
    -------
    x, y, n_anchors, used, n_used, covered
        With those of this read added; and how many of the read's bases matches cover that are not used.
    """
    mems, middle, n, located = matches
    x, y, n_anchors, used, n_used = so_far
    limit = integers[MID_OCC]
    key = np.empty(n, np.uint64)
    entries = np.empty(n, np.int64)
    place = np.empty(n, np.int64)
    dropped = np.zeros(n, np.uint8)
    _order_seeds(mems, middle, n, read_length, key, entries, place)
    drop_frequent(entries, place, n, read_length, integers, dropped)
    covered = _covered(mems, key, place, dropped, n)
    is_kept = np.zeros(n, np.uint8)
    first_used = n_used
    for i in range(n):
        if not dropped[i]:
            m = np.int64(key[i])
            is_kept[m] = 1
            length = np.int64(mems[m, LENGTH])
            n_pieces = n_anchors_of(length)
            used = grown(used, n_used + n_pieces)
            for piece in range(n_pieces):
                before = SPAN * piece
                span = SPAN if piece + 1 < n_pieces else length - before
                # from the end of the match on its own strand
                last = place[i] >> 1
                last = last - length + before + span if m >= middle else last - before
                used[n_used] = (span << 32) | last
                n_used += 1
    _sort_by_place(used, first_used, n_used)
    at = 0
    begin = n_anchors
    for m in range(n):
        is_reverse = m >= middle
        end_of_strand = n if is_reverse else middle
        count = np.int64(mems[m, COUNT])
        last = np.int64(mems[m, LAST])
        length = np.int64(mems[m, LENGTH])
        if count <= limit:  # always kept, as all those are whose rows are among its own
            if m + 1 < end_of_strand and last - length == mems[m + 1, LAST] - mems[m + 1, LENGTH]:
                count -= mems[m + 1, COUNT]
            x = grown(x, n_anchors + count * n_anchors_of(length))
            y = grown(y, n_anchors + count * n_anchors_of(length))
            for _ in range(count):
                n_anchors = _write_anchors(
                    np.int64(located[at]), last, length, is_reverse, contig_offsets, x, y, n_anchors
                )
                at += 1
        elif is_kept[m]:
            skip_begin = np.int64(0)
            skip_end = np.int64(0)
            other = m + 1
            while other < end_of_strand and mems[other, LAST] - mems[other, LENGTH] == last - length:
                if is_kept[other]:
                    skip_begin = np.int64(mems[other, ROW])
                    skip_end = skip_begin + mems[other, COUNT]
                    break
                other += 1
            x = grown(x, n_anchors + count * n_anchors_of(length))
            y = grown(y, n_anchors + count * n_anchors_of(length))
            row = np.int64(mems[m, ROW])
            for r in range(row, row + count):
                if r < skip_begin or r >= skip_end:
                    n_anchors = _write_anchors(
                        np.int64(places[r]), last, length, is_reverse, contig_offsets, x, y, n_anchors
                    )
    sort_pairs(x, y, begin, n_anchors, np.empty(SORT_SCRATCH, np.int64))
    return GrowingAnchors(x, y, n_anchors, used, n_used), covered


@exact_inner
def _no_anchors():
    return GrowingAnchors(
        np.empty(1 << 12, np.uint64), np.empty(1 << 12, np.int64), np.int64(0), np.empty(1 << 12, np.int64), np.int64(0)
    )


@exact_kernel
def seed_reads_by_mems(queue, reads, bases, offsets, index, min_length, integers, counts):
    """Find the matches of reads, and their sorted anchors.

    Parameters
    ----------
    bases, offsets : uint8, int64
        Codes of all reads.
    index : MemIndex
    min_length : int
    integers : int64
        `f5py.mapping.settings.Parameters`.
    counts : SeedCounts
        Filled.

    Returns
    -------
    done, x, y, seeds
        As `f5py.mapping.index._seeds_numba.seed_reads`.
    """
    index, contig_offsets = index
    n_anchors, n_seeds, rep_len = counts
    places = index.places
    done = np.empty(16, np.int64)
    n_done = 0
    so_far = _no_anchors()
    pattern = np.empty(0, np.uint8)
    counts = np.empty(0, np.int32)
    mems = np.empty((0, N_COLUMNS), np.int32)
    located = np.empty(0, np.int32)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        length = offsets[read + 1] - offsets[read]
        if pattern.shape[0] < length:
            pattern = np.empty(length, np.uint8)
            counts = np.empty(length, np.int32)
            mems = np.empty((2 * length, N_COLUMNS), np.int32)
        middle = 0
        end = 0
        for strand in range(2):
            write_strand(bases, offsets[read], offsets[read + 1], strand == 1, pattern)
            middle = end
            end = find_mems(pattern, length, min_length, index, counts, mems, end)
        n_places = n_located(mems, 0, middle, integers[MID_OCC]) + n_located(mems, middle, end, integers[MID_OCC])
        if located.shape[0] < n_places:
            located = np.empty(2 * n_places, np.int32)
        at = locate_mems(mems, 0, middle, integers[MID_OCC], places, located, 0)
        locate_mems(mems, middle, end, integers[MID_OCC], places, located, at)
        done, n_done = appended(done, n_done, read)
        before = so_far
        so_far, rep_len[read] = anchors_of_mems(
            ReadMems(mems, middle, end, located), length, integers, contig_offsets, places, so_far
        )
        n_anchors[read] = so_far.n_anchors - before.n_anchors
        n_seeds[read] = so_far.n_used - before.n_used
    x, y, n, used, n_used = so_far
    return done[:n_done], x[:n], y[:n], used[:n_used]


@exact_kernel
def anchors_of_found(queue, reads, offsets, first_read, index, matches, integers, counts):
    """Find the sorted anchors of reads whose matches a GPU has found.

    Parameters
    ----------
    offsets : int64
        Of the bases of all reads.
    first_read : int
        The first of those that the GPU had together.
    index : MemPlaces
    matches : FoundMems
    integers : int64
        `f5py.mapping.settings.Parameters`.
    counts : SeedCounts
        Filled.

    Returns
    -------
    done, x, y, seeds
    """
    contig_offsets, places = index
    found, firsts, located = matches
    n_anchors, n_seeds, rep_len = counts
    done = np.empty(16, np.int64)
    n_done = 0
    so_far = _no_anchors()
    mems = np.empty((0, N_COLUMNS), np.int32)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        length = offsets[read + 1] - offsets[read]
        forward = 2 * (offsets[read] - offsets[first_read] + read - first_read) + 1
        reverse = forward + length + 1
        begin = _first_from(found, forward)
        middle = _first_from(found, reverse) - begin
        n_mems = _first_from(found, reverse + length) - begin
        if mems.shape[0] < n_mems:
            mems = np.empty((2 * n_mems, N_COLUMNS), np.int32)
        for m in range(n_mems):
            for column in range(N_COLUMNS):
                mems[m, column] = found[begin + m, column]
            mems[m, LAST] -= reverse if m >= middle else forward
        done, n_done = appended(done, n_done, read)
        before = so_far
        at = np.int64(firsts[begin]) if n_mems > 0 else 0
        so_far, rep_len[read] = anchors_of_mems(
            ReadMems(mems, middle, n_mems, located[at:]), length, integers, contig_offsets, places, so_far
        )
        n_anchors[read] = so_far.n_anchors - before.n_anchors
        n_seeds[read] = so_far.n_used - before.n_used
    x, y, n, used, n_used = so_far
    return done[:n_done], x[:n], y[:n], used[:n_used]


@exact_inner
def _first_from(found, last):
    """Find the first match that does not end before `last`."""
    low = 0
    high = found.shape[0]
    while low < high:
        middle = (low + high) // 2
        if found[middle, LAST] < last:
            low = middle + 1
        else:
            high = middle
    return low
