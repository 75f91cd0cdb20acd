"""Jitted search for maximal exact matches; see `f5py.mapping.mem.mem_seeds`."""

# mypy: disable-error-code="assignment"
import numpy as np

from f5py.jit.kernel import exact_inner
from f5py.mapping.mem._fm_index_numba import rank

#: Columns of a match: index of its last base, length, first row, number of rows.
LAST, LENGTH, ROW, COUNT = range(4)
N_COLUMNS = 4


@exact_inner
def write_strand(bases, begin, end, reverse, pattern):
    """Write one strand of a read."""
    n = end - begin
    for i in range(n):
        if not reverse:
            pattern[i] = bases[begin + i]
        else:
            base = bases[end - 1 - i]
            pattern[i] = 3 - base if base < 4 else 4


@exact_inner
def find_mems(pattern, n, min_length, index, counts, mems, at):
    """Find the matches of a strand of a read.

    For every last base the longest match of at least `min_length` bases, but not where the match that ends one base
    later has the same first base and as many places. Ends are tried from the last one on: where a search has come to a
    first base with as many places as that of the end before it had, it would go on like that one, and stops.

    Parameters
    ----------
    pattern : uint8, shape (>= n,)
    n, min_length : int
    index : f5py.mapping.mem.fm_index.FmIndex
        Its k is at most `min_length`.
    counts : int32, shape (>= n,)
        Scratch.
    mems : int32, shape (>= at + n, N_COLUMNS)
        Filled from row `at` on, by ascending last base.
    at : int

    Returns
    -------
    int
        The row behind the last match.
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
    low = first
    high = at - 1
    while low < high:
        for column in range(N_COLUMNS):
            mems[low, column], mems[high, column] = mems[high, column], mems[low, column]
        low += 1
        high -= 1
    return at


@exact_inner
def first_of_nested(mems, m, end):
    """Return whether match `m + 1` has rows among those of match `m`: both begin with the same base of the read."""
    if m + 1 >= end:
        return False
    return mems[m, LAST] - mems[m, LENGTH] == mems[m + 1, LAST] - mems[m + 1, LENGTH]


@exact_inner
def locate_mems(mems, begin, end, max_count, places, located, at):
    """Write where the matches with at most `max_count` places are, but not again those of a longer one.

    A match is followed by those with the same first base and later ends, whose rows are among its own.

    Returns
    -------
    int
        The element of `located` behind the last place.
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
    """Count the places that `locate_mems` writes."""
    n = np.int64(0)
    for m in range(begin, end):
        if mems[m, COUNT] <= max_count:
            n += mems[m, COUNT]
            if first_of_nested(mems, m, end):
                n -= mems[m + 1, COUNT]
    return n
