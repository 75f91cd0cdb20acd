"""Jitted loops of the FM-index, and how to look into it; see `f5py.mapping.mem.fm_index`."""

# mypy: disable-error-code="assignment"
import numpy as np

from f5py.jit.bits import count_bits
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import grown

#: Blocks, and entries of the table, that a thread takes at a time.
BLOCKS_AT_A_TIME = 1 << 10
ENTRIES_AT_A_TIME = 1 << 12
_LOW = np.uint64(0xFFFFFFFF)
#: The bit of a block's first number that says that some of its rows have no base.
_HAS_ENDS = np.uint64(1 << 31)


@exact_kernel
def fill_blocks(queue, tasks, text, text_starts, reference_starts, suffixes, blocks):
    """Write the bases before the suffixes, and how many there are in each block; turn suffixes into places.

    Parameters
    ----------
    queue, tasks
        `BLOCKS_AT_A_TIME` blocks each.
    text : uint8
    text_starts, reference_starts : int64, shape (n_segments,)
    suffixes : int32
        Replaced by where they begin in the reference's bases.
    blocks : uint64, shape (n_blocks, 4)

    Returns
    -------
    int64
        Rows of the suffixes that no base comes before.
    """
    ends = np.empty(16, np.int64)
    n_ends = 0
    for t in claimed_indices(work_counter(queue), tasks.shape[0]):
        first = BLOCKS_AT_A_TIME * tasks[t]
        for block in range(first, min(first + BLOCKS_AT_A_TIME, blocks.shape[0])):
            low = np.uint64(0)
            high = np.uint64(0)
            counts = np.uint64(0)  # 16 bits for each base
            for i in range(min(64, suffixes.shape[0] - 64 * block)):
                row = 64 * block + i
                at = np.int64(suffixes[row])
                before = np.uint64(text[at - 1]) if at > 0 else np.uint64(0)
                if before == 0:
                    ends = grown(ends, n_ends + 1)
                    ends[n_ends] = row
                    n_ends += 1
                else:
                    before -= np.uint64(1)
                    low |= (before & np.uint64(1)) << np.uint64(i)
                    high |= (before >> np.uint64(1)) << np.uint64(i)
                    counts += np.uint64(1) << (np.uint64(16) * before)
                a = 0
                b = text_starts.shape[0]
                while b - a > 1:
                    middle = (a + b) // 2
                    if text_starts[middle] <= at:
                        a = middle
                    else:
                        b = middle
                suffixes[row] = reference_starts[a] + (at - text_starts[a])
            few = np.uint64(0xFFFF)
            blocks[block, 0] = (counts & few) | ((counts >> np.uint64(16)) & few) << np.uint64(32)
            blocks[block, 1] = ((counts >> np.uint64(32)) & few) | (counts >> np.uint64(48)) << np.uint64(32)
            blocks[block, 2] = low
            blocks[block, 3] = high
    return ends[:n_ends].copy()


@exact_kernel
def sum_blocks(blocks, ends, totals):
    """Turn the numbers of bases in blocks into those before them, and mark blocks with rows that have no base.

    Parameters
    ----------
    blocks : uint64, shape (n_blocks, 4)
        As `fill_blocks` has filled it; changed to what `f5py.mapping.mem.fm_index.FmIndex` has.
    ends : int64
        Rows without a base, ascending.
    totals : int64, shape (4,)
        Filled with the number of each base.
    """
    for b in range(4):
        totals[b] = 0
    for block in range(blocks.shape[0]):
        for half in range(2):
            counts = blocks[block, half]
            blocks[block, half] = np.uint64(totals[2 * half]) | np.uint64(totals[2 * half + 1]) << np.uint64(32)
            totals[2 * half] += np.int64(counts & _LOW)
            totals[2 * half + 1] += np.int64(counts >> np.uint64(32))
    for row in ends:
        blocks[row >> 6, 0] |= _HAS_ENDS


@exact_inner
def rank(blocks, ends, base, row):
    """Count how often a base comes before the suffixes of the rows before `row`."""
    block = row >> 6
    count = blocks[block, base >> 1] >> np.uint64(32 * (base & 1)) & _LOW
    low = blocks[block, 2]
    high = blocks[block, 3]
    same = (low if base & 1 else ~low) & (high if base & 2 else ~high)
    same &= (np.uint64(1) << np.uint64(row & 63)) - np.uint64(1)
    if base == 0 and count & _HAS_ENDS:  # rows without a base look like an A
        a = 0
        b = ends.shape[0]
        while a < b:
            middle = (a + b) // 2
            if ends[middle] < 64 * block:
                a = middle + 1
            else:
                b = middle
        n = np.int64(count & ~_HAS_ENDS)
        while a < ends.shape[0] and ends[a] < row:
            n -= 1
            a += 1
        return n + count_bits(same)
    return np.int64(count) + count_bits(same)


@exact_kernel
def extend_table(queue, tasks, n_entries, blocks, ends, first_rows, table):
    """From the rows of all words of a length to those of the words with one base more before them.

    Parameters
    ----------
    queue, tasks
        See `f5py.threads.pool`; `ENTRIES_AT_A_TIME` entries each.
    n_entries : int
        Words of the shorter length.
    blocks, ends, first_rows
        See `f5py.mapping.mem.fm_index.FmIndex`.
    table : uint32, shape (>= 4 * n_entries, 2)
        First row and end of each word; filled up to ``4 * n_entries``.
    """
    for t in claimed_indices(work_counter(queue), tasks.shape[0]):
        first = ENTRIES_AT_A_TIME * tasks[t]
        for word in range(first, min(first + ENTRIES_AT_A_TIME, n_entries)):
            begin = np.int64(table[word, 0])
            end = np.int64(table[word, 1])
            for b in range(3, -1, -1):
                longer = b * n_entries + word
                table[longer, 0] = 0
                table[longer, 1] = 0
                if begin < end:
                    a = first_rows[b] + rank(blocks, ends, b, begin)
                    z = first_rows[b] + rank(blocks, ends, b, end)
                    if a < z:
                        table[longer, 0] = a
                        table[longer, 1] = z


@exact_kernel
def is_sound(blocks, ends, first_rows, places, n_bases):
    """Return whether no search leaves the arrays: rows without a base ascend, and all numbers are those of the bases.

    Parameters
    ----------
    blocks, ends, first_rows, places
        `f5py.mapping.mem.fm_index.FmIndex`; of as many blocks as the places have.
    n_bases : int
        Of the reference.
    """
    n_rows = places.shape[0]
    for row in range(n_rows):
        if places[row] < 0 or places[row] > n_bases:  # a separator stands behind
            return False
    for i in range(ends.shape[0]):
        if ends[i] < 0 or ends[i] >= n_rows or (i > 0 and ends[i] <= ends[i - 1]):
            return False
    totals = np.zeros(4, np.int64)
    at = 0
    for block in range(blocks.shape[0]):
        low = blocks[block, 2]
        high = blocks[block, 3]
        n = min(64, n_rows - 64 * block)
        rows = ~np.uint64(0) if n == 64 else (np.uint64(1) << np.uint64(n)) - np.uint64(1)
        first = at
        while at < ends.shape[0] and ends[at] < 64 * (block + 1):
            at += 1
        for base in range(4):
            count = blocks[block, base >> 1] >> np.uint64(32 * (base & 1)) & _LOW
            if base == 0:
                if (count & _HAS_ENDS != 0) != (at > first):
                    return False
                count &= ~_HAS_ENDS
            if np.int64(count) != totals[base]:
                return False
            same = (low if base & 1 else ~low) & (high if base & 2 else ~high) & rows
            totals[base] += count_bits(same) - (at - first if base == 0 else 0)
    begin = ends.shape[0]
    for base in range(4):
        if first_rows[base] != begin:
            return False
        begin += totals[base]
    return begin == n_rows
