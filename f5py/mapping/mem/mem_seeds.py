"""Seeds that are maximal exact matches (MEM) between reads and the reference, and their anchors.

For every last base of a read, on either strand, the longest match that ends there is a seed, unless the one that ends a
base later begins at the same base and has as many places (Ahmed et al., *GPU acceleration of seed extension in DNA read
mapping*, GPUseed, 2016: definition 2). Its anchors are at its last base and every 32 bases before: one anchor for a
long match would be a chain of few seeds, which counts as uncertain. Where matches with the same first base have a place
in common, only the longest one has anchors there. Matches with too many places are passed over by the rule for
minimizers.
"""

# mypy: disable-error-code="assignment"
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import SORT_SCRATCH, appended, grown, sort_pairs
from f5py.mapping.batch import MappingBatch
from f5py.mapping.index.reference_index import contig_at
from f5py.mapping.index.seeds import REVERSE, SeedSums, collecting, drop_frequent, take_anchors
from f5py.mapping.mem.fm_index import FmIndex, rank
from f5py.mapping.settings import MID_OCC, Parameters
from f5py.threads.pool import WorkerPool, longest_first

#: Columns of a match: index of its last base, length, first row, number of rows.
LAST, LENGTH, ROW, COUNT = range(4)
N_COLUMNS = 4
#: Anchors of a match, from its end on, have a span of so many bases; what is left at the beginning has as many as this.
SPAN, SHORTEST = 32, 15
_MOST_COUNT = (1 << 28) - 1
_LOW = 0xFFFFFFFF


class MemSearch(NamedTuple):
    """Parameters of a search for matches."""

    fm_index: FmIndex
    contig_offsets: NDArray[np.int64]  # shape (n_contigs + 1,)
    min_length: int  # shortest match that is a seed, at least ``fm_index.k``
    parameters: Parameters


def find_mem_anchors(batch: MappingBatch, search: MemSearch, pool: WorkerPool) -> float:
    """Fill the sorted anchors of a batch with codes; return the seconds of work of all threads together."""
    sums = SeedSums.zero(len(batch))
    results: list[Any] = []
    seconds = search_reads(batch, np.arange(len(batch)), search, pool, sums, results)
    take_anchors(batch, results, sums)
    return seconds


def search_reads(
    batch: MappingBatch,
    reads: NDArray[np.int64],
    search: MemSearch,
    pool: WorkerPool,
    sums: SeedSums,
    results: list[Any],
) -> float:
    """Find the anchors of some reads; return the seconds of work of all threads together.

    Fills the sums of these reads; adds the result of each thread, for `take_anchors`.
    """
    order = reads[longest_first(batch.lengths[reads], np.ones(len(reads), np.bool_))]
    return pool.run(
        collecting(seed_reads_by_mems, results), order, batch.codes, batch.offsets, search.fm_index,
        search.contig_offsets, search.min_length, search.parameters.integers, sums, order=batch.number,
    )  # fmt: skip


@exact_inner
def write_strand(bases, begin, end, reverse, pattern):
    """Write one strand of a read."""
    for i in range(end - begin):
        base = bases[end - 1 - i] if reverse else bases[begin + i]
        pattern[i] = 3 - base if reverse and base < 4 else base


@exact_inner
def find_mems(pattern, n, min_length, index, counts, mems, at):
    """Append the matches of a strand to `mems` by ascending last base; return the row behind.

    For every last base the longest match of at least `min_length` bases, but not where the match that ends one base
    later has the same first base and as many places. Ends are tried from the last one on. A search that comes to a
    first base with as many places as the previous end had there would continue like it, and stops. `counts` is scratch.
    """
    blocks, ends, first_rows, _, table, k = index
    for i in range(n):
        counts[i] = 0
    first = at
    unknown = n  # index of the last unknown base up to the end that is tried
    word = 0
    is_ready = False
    last = n - 1
    while last >= min_length - 1:
        if unknown > last:
            unknown = last
            while unknown >= 0 and pattern[unknown] > 3:
                unknown -= 1
            last = unknown  # unknown bases cannot be the last one
            while unknown >= 0 and pattern[unknown] < 4:
                unknown -= 1
            is_ready = False
        if last - unknown < min_length:
            if unknown < 0:
                break
            last = unknown
            unknown = last + 1
            continue
        if is_ready:
            word = (word >> 2) | (np.int64(pattern[last - k + 1]) << (2 * (k - 1)))
        else:
            word = 0
            for i in range(last - k + 1, last + 1):
                word = (word << 2) | pattern[i]
            is_ready = True
        begin = np.int64(table[word, 0])
        end = np.int64(table[word, 1])
        if begin < end:
            start = last - k + 1
            while True:
                if counts[start] == end - begin:
                    break
                counts[start] = end - begin
                if start - 1 > unknown:
                    base = np.int64(pattern[start - 1])
                    longer_begin = first_rows[base] + rank(blocks, ends, base, begin)
                    longer_end = first_rows[base] + rank(blocks, ends, base, end)
                    if longer_begin < longer_end:
                        begin = longer_begin
                        end = longer_end
                        start -= 1
                        continue
                if last - start + 1 >= min_length:
                    mems[at, LAST] = last
                    mems[at, LENGTH] = last - start + 1
                    mems[at, ROW] = begin
                    mems[at, COUNT] = end - begin
                    at += 1
                break
        last -= 1
    mems[first:at] = mems[first:at][::-1].copy()
    return at


@exact_inner
def first_of_nested(mems, m, end):
    """Return whether match `m + 1` begins with the same base as match `m`, so has rows among its own."""
    if m + 1 >= end:
        return False
    return mems[m, LAST] - mems[m, LENGTH] == mems[m + 1, LAST] - mems[m + 1, LENGTH]


@exact_inner
def locate_mems(mems, begin, end, max_count, places, located, at):
    """Append the places of matches with at most `max_count` places, without those of a longer match.

    The next matches may have the same first base and later ends: their rows are among its own.
    """
    for m in range(begin, end):
        if mems[m, COUNT] > max_count:
            continue
        skip_begin = np.int64(0)
        skip_end = np.int64(0)
        if first_of_nested(mems, m, end):
            skip_begin = np.int64(mems[m + 1, ROW])
            skip_end = skip_begin + mems[m + 1, COUNT]
        row = np.int64(mems[m, ROW])
        for r in range(row, row + mems[m, COUNT]):
            if r < skip_begin or r >= skip_end:
                located[at] = places[r]
                at += 1
    return at


@exact_inner
def n_located(mems, begin, end, max_count):
    """Count the places of `locate_mems`."""
    n = np.int64(0)
    for m in range(begin, end):
        if mems[m, COUNT] <= max_count:
            n += mems[m, COUNT]
            if first_of_nested(mems, m, end):
                n -= mems[m + 1, COUNT]
    return n


@exact_inner
def _order_seeds(mems, middle, n, read_length, key, entries, place):
    """Sort the matches of both strands by their last base on the forward strand of the read.

    Fills the numbers of the matches, their counts and places, as for `drop_frequent`.
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
    """Count the bases of a read that dropped matches cover."""
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
    """Append the anchors of a match that begins at a place of the reference; return their total number."""
    a = contig_at(contig_offsets, at)
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
def anchors_of_mems(mems, middle, n, located, read_length, integers, contig_offsets, places, so_far):
    """Choose a read's matches, append their anchors, and count the bases under unused matches.

    Matches of the forward strand come first, up to `middle`. `located` is of `locate_mems`, for both strands, with
    `MID_OCC` as the limit. `so_far` has x, y and number of the previous reads' anchors, their seeds and the number.
    """
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
    return (x, y, n_anchors, used, n_used), covered


@exact_inner
def _no_anchors():
    size = 1 << 12
    return np.empty(size, np.uint64), np.empty(size, np.int64), np.int64(0), np.empty(size, np.int64), np.int64(0)


@exact_kernel
def seed_reads_by_mems(queue, reads, bases, offsets, index, contig_offsets, min_length, integers, sums):
    """Find the matches of reads and their sorted anchors; as `f5py.mapping.index.seeds.seed_reads`.

    Parameters
    ----------
    bases, offsets : uint8, int64
        Codes of all reads.
    index : FmIndex
    sums : SeedSums
        Filled.
    """
    n_anchors, n_seeds, rep_len = sums
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
            mems, middle, end, located, length, integers, contig_offsets, places, so_far
        )
        n_anchors[read] = so_far[2] - before[2]
        n_seeds[read] = so_far[4] - before[4]
    x, y, n, used, n_used = so_far
    return done[:n_done], x[:n], y[:n], used[:n_used]


@exact_kernel
def anchors_of_found(queue, reads, offsets, first_read, contig_offsets, places, found, firsts, located, integers, sums):
    """Find the sorted anchors of reads from a GPU's matches; as `seed_reads_by_mems`.

    Parameters
    ----------
    first_read : int
        The first read of the GPU's round.
    found : int32, shape (n, N_COLUMNS)
        Matches, with their last bases in the output of ``mems_pack``, ascending.
    firsts : int32, shape (n,)
        Where the places of each begin in `located`.
    """
    n_anchors, n_seeds, rep_len = sums
    done = np.empty(16, np.int64)
    n_done = 0
    so_far = _no_anchors()
    mems = np.empty((0, N_COLUMNS), np.int32)
    lasts = found[:, LAST]
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        length = offsets[read + 1] - offsets[read]
        forward = 2 * (offsets[read] - offsets[first_read] + read - first_read) + 1
        reverse = forward + length + 1
        begin = np.searchsorted(lasts, forward)
        middle = np.searchsorted(lasts, reverse) - begin
        n_mems = np.searchsorted(lasts, reverse + length) - begin
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
            mems, middle, n_mems, located[at:], length, integers, contig_offsets, places, so_far
        )
        n_anchors[read] = so_far[2] - before[2]
        n_seeds[read] = so_far[4] - before[4]
    x, y, n, used, n_used = so_far
    return done[:n_done], x[:n], y[:n], used[:n_used]
