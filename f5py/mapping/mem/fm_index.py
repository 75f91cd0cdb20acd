r"""FM-index of a reference: the suffixes of its text that begin with a word.

The text is the stretches of known bases, each followed by a separator that matches nothing; only the forward strand.
Rows are its suffixes in order; the bases before them are the Burrows-Wheeler transform. Those that begin with a word P
are neighbours, and those that begin with bP are found from them (Ferragina and Manzini, FOCS 2000):

.. math:: l' = C(b) + \mathit{Occ}(b, l), \qquad u' = C(b) + \mathit{Occ}(b, u)

with half-open intervals of rows, C(b) the first row that begins with b and Occ(b, y) how often b is among the bases
before the first y suffixes. Suffixes are sorted by their first symbols into buckets, and the buckets by 27 symbols
more. Equal ones are sorted by the ranks of the next symbols, doubling the depth (Larsson and Sadakane, Theor. Comput.
Sci. 387:258, 2007).

Memory: half a byte a base for the transform, four for the places, and 8 bytes for each of the 4^k words of the table:
at most 512 MiB, and less than 32 bytes a base. Twice the places and one byte a base more while it is built.
"""

# mypy: disable-error-code="assignment"
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.errors import InputFileError
from f5py.jit.instructions import count_bits
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import SORT_SCRATCH, appended, sort_pairs
from f5py.mapping.index.packed_bases import count_marks
from f5py.mapping.index.reference_index import contig_at
from f5py.mapping.index.seeds import collecting
from f5py.threads.pool import WorkerPool

#: Longest words of the table.
MOST_TABLE_BASES = 13
_MOST_ROWS = 2**31 - 64
#: Symbols that the buckets have in common, for texts up to so many bases, and for longer ones.
_FEW_SYMBOLS, _SMALL_TEXT, _MANY_SYMBOLS = 5, 1 << 24, 7
_N_CHUNKS = 32
#: Symbols of a sort key: 5 ** 27 < 2 ** 63.
_KEY_SYMBOLS = 27
#: Blocks, entries of the table, buckets and groups that a thread takes at a time.
_BLOCKS_AT_A_TIME, _ENTRIES_AT_A_TIME = 1 << 10, 1 << 12
_BUCKETS_AT_A_TIME, _GROUPS_AT_A_TIME = 16, 64
_LOW = np.uint64(0xFFFFFFFF)
#: The bit of a block's first number that says that some of its rows have no base.
_HAS_ENDS = np.uint64(1 << 31)


class FmIndex(NamedTuple):
    """FM-index of a reference."""

    # shape (n_blocks, 4): of 64 rows each: how often A, C, G and T come before the suffixes of earlier blocks, 32 bits
    # each; low and high bits of the bases before its own suffixes. A suffix that begins a stretch counts as none, but
    # its bits are those of A; bit 31 of the first count says that there is one.
    blocks: NDArray[np.uint64]
    ends: NDArray[np.int64]  # rows of those suffixes, ascending
    first_rows: NDArray[np.int64]  # shape (4,): the first row of the suffixes that begin with each base
    places: NDArray[np.int32]  # shape (n_rows,): where suffixes begin in the reference's bases
    # shape (4 ** k, 2): first row and end of the suffixes that begin with each word of k bases, the first base the
    # highest two bits
    table: NDArray[np.uint32]
    k: int


def build_fm_index(
    bases: NDArray[np.uint8], offsets: NDArray[np.int64], pool: WorkerPool, min_length: int = MOST_TABLE_BASES
) -> FmIndex:
    """Index the codes of contigs for words of at least `min_length` bases.

    Raises `InputFileError` if the reference has too many bases.
    """
    begins, ends = _segments(bases, offsets)
    n_segments, n_rows = len(begins), int((ends - begins).sum()) + len(begins)
    if offsets[-1] >= _MOST_ROWS or n_rows >= _MOST_ROWS:
        raise InputFileError(
            f"--seeds mem: the reference has {int(offsets[-1])} bases, and at most {_MOST_ROWS} can be indexed; "
            "leave --seeds out, or map to parts of it"
        )
    text_starts = offsets_of(ends - begins + 1)
    reference_starts = np.append(begins, 0)
    text = np.zeros(n_rows, np.uint8)
    for begin, end, at in zip(begins.tolist(), ends.tolist(), text_starts.tolist(), strict=False):
        np.add(bases[begin:end], 1, out=text[at : at + end - begin])
    suffixes = sorted_suffixes(text, pool)
    blocks = np.zeros((n_rows // 64 + 1, 4), np.uint64)
    found = _collected(pool, fill_blocks, -(-len(blocks) // _BLOCKS_AT_A_TIME), text, text_starts, reference_starts,
                       suffixes, blocks)  # fmt: skip
    rows = np.sort(found)
    counts = blocks[:, :2].astype("<u8").view("<u4")
    totals = np.cumsum(counts, axis=0, dtype=np.uint32)
    blocks[:, :2] = (totals - counts).view("<u8")
    blocks[rows >> 6, 0] |= _HAS_ENDS
    first_rows = n_segments + offsets_of(totals[-1])[:4]
    return with_table(FmIndex(blocks, rows, first_rows, suffixes, np.empty((0, 2), np.uint32), 0), pool, min_length)


def _segments(bases: NDArray[np.uint8], offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return begins and ends of the stretches of known bases."""
    known = np.pad(bases < 4, 1)
    inside = offsets[1:-1][known[offsets[1:-1]] & known[offsets[1:-1] + 1]]
    begins = np.flatnonzero(known[1:] & ~known[:-1])
    ends = np.flatnonzero(known[:-1] & ~known[1:])
    return np.union1d(begins, inside), np.union1d(ends, inside)


def with_table(index: FmIndex, pool: WorkerPool, min_length: int) -> FmIndex:
    """Make the table of an index, for words of at least `min_length` bases."""
    n_rows = len(index.places)
    k = 1
    while k < min(min_length, MOST_TABLE_BASES) and 4**k < n_rows:
        k += 1
    table = np.empty((4**k, 2), np.uint32)
    table[0] = 0, n_rows
    for length in range(k):
        tasks = np.arange(-(-(4**length) // _ENTRIES_AT_A_TIME))
        pool.run(extend_table, tasks, 4**length, index.blocks, index.ends, index.first_rows, table)
    return index._replace(table=table, k=k)


def sorted_suffixes(text: NDArray[np.uint8], pool: WorkerPool) -> NDArray[np.int32]:
    """Sort the suffixes of a text of bases (1 to 4) and separators (0, also the last symbol)."""
    n_symbols = _FEW_SYMBOLS if len(text) <= _SMALL_TEXT else _MANY_SYMBOLS
    chunks, chunk_size = np.arange(_N_CHUNKS), -(-len(text) // _N_CHUNKS)
    counts = np.zeros((_N_CHUNKS, 5**n_symbols), np.int64)
    pool.run(place_in_buckets, chunks, text, chunk_size, n_symbols, counts, np.empty(0, np.int32))
    ends = offsets_of(counts.T.ravel())
    places = np.ascontiguousarray(ends[:-1].reshape(-1, _N_CHUNKS).T)
    starts = ends[::_N_CHUNKS].copy()
    suffixes, ranks = np.empty(len(text), np.int32), np.empty(len(text), np.int32)
    pool.run(place_in_buckets, chunks, text, chunk_size, n_symbols, places, suffixes)
    n_tasks = -(-(5**n_symbols) // _BUCKETS_AT_A_TIME)
    groups = _collected(pool, sort_buckets, n_tasks, text, starts, n_symbols, suffixes, ranks)
    depth = n_symbols + _KEY_SYMBOLS
    while len(groups):
        tasks = np.arange(-(-len(groups) // (2 * _GROUPS_AT_A_TIME)))
        pool.run(sort_groups, tasks, groups, depth, suffixes, ranks)
        groups = _collected(pool, rank_groups, len(tasks), groups, suffixes, ranks)
        depth *= 2
    return suffixes


def _collected(pool: WorkerPool, kernel: Any, n_tasks: int, *arguments: Any) -> NDArray[np.int64]:
    """Run a kernel in all threads, and concatenate its results."""
    results: list[NDArray[np.int64]] = []
    pool.run(collecting(kernel, results), np.arange(n_tasks), *arguments)
    return np.concatenate(results) if results else np.empty(0, np.int64)


@exact_kernel
def fill_blocks(queue, tasks, text, text_starts, reference_starts, suffixes, blocks):
    """Write the bases before suffixes and their counts by block; return the rows without such a base.

    Parameters
    ----------
    tasks : int64
        `_BLOCKS_AT_A_TIME` blocks each.
    text_starts, reference_starts : int64, shape (n_segments + 1,)
        Where segments begin, each with room for an end.
    suffixes : int32
        Starts in the text; replaced by starts in the reference's bases.
    """
    ends = np.empty(16, np.int64)
    n_ends = 0
    for t in claimed_indices(work_counter(queue), tasks.shape[0]):
        first = _BLOCKS_AT_A_TIME * tasks[t]
        for block in range(first, min(first + _BLOCKS_AT_A_TIME, blocks.shape[0])):
            low = np.uint64(0)
            high = np.uint64(0)
            counts = np.uint64(0)  # 16 bits for each base
            for i in range(min(64, suffixes.shape[0] - 64 * block)):
                row = 64 * block + i
                at = np.int64(suffixes[row])
                before = np.uint64(text[at - 1]) if at > 0 else np.uint64(0)
                if before == 0:
                    ends, n_ends = appended(ends, n_ends, row)
                else:
                    before -= np.uint64(1)
                    low |= (before & np.uint64(1)) << np.uint64(i)
                    high |= (before >> np.uint64(1)) << np.uint64(i)
                    counts += np.uint64(1) << (np.uint64(16) * before)
                a = contig_at(text_starts, at)
                suffixes[row] = reference_starts[a] + (at - text_starts[a])
            few = np.uint64(0xFFFF)
            blocks[block, 0] = (counts & few) | ((counts >> np.uint64(16)) & few) << np.uint64(32)
            blocks[block, 1] = ((counts >> np.uint64(32)) & few) | (counts >> np.uint64(48)) << np.uint64(32)
            blocks[block, 2] = low
            blocks[block, 3] = high
    return ends[:n_ends].copy()


@exact_inner
def rank(blocks, ends, base, row):
    """Count a base among the bases before the suffixes of the rows before `row`."""
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
    """Extend the rows of all words of a length by each base before them.

    Parameters
    ----------
    tasks : int64
        `_ENTRIES_AT_A_TIME` entries each.
    n_entries : int
        Words of the shorter length.
    table : uint32, shape (>= 4 * n_entries, 2)
        First row and end of each word; filled up to ``4 * n_entries``.
    """
    for t in claimed_indices(work_counter(queue), tasks.shape[0]):
        first = _ENTRIES_AT_A_TIME * tasks[t]
        for word in range(first, min(first + _ENTRIES_AT_A_TIME, n_entries)):
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


def is_sound(index: FmIndex, n_bases: int) -> bool:
    """Return whether searches stay inside the arrays: ascending rows without a base, right counts."""
    places, ends, n_rows, n_blocks = index.places, index.ends, len(index.places), len(index.blocks)
    if n_rows and not (places.min() >= 0 and places.max() <= n_bases):  # a separator stands behind
        return False
    if len(ends) and not (ends[0] >= 0 and ends[-1] < n_rows and (np.diff(ends) > 0).all()):
        return False
    counts = np.ascontiguousarray(index.blocks[:, :2]).view("<u4")
    n_ends = np.bincount(ends >> 6, minlength=n_blocks)
    if not np.array_equal(counts[:, 0] >> 31, n_ends > 0):
        return False
    counts[:, 0] &= np.uint32(2**31 - 1)
    is_row = np.full(n_blocks, 2**64 - 1, np.uint64)
    is_row[-1] = (1 << n_rows % 64) - 1
    low, high = index.blocks[:, 2], index.blocks[:, 3]
    begin = len(ends)
    for base in range(4):
        n_here = count_marks((low if base & 1 else ~low) & (high if base & 2 else ~high) & is_row)
        totals = np.cumsum(n_here - n_ends if base == 0 else n_here)
        if index.first_rows[base] != begin or counts[0, base] or not np.array_equal(counts[1:, base], totals[:-1]):
            return False
        begin += int(totals[-1])
    return begin == n_rows


@exact_inner
def _code_at(text, i, n_symbols):
    """Encode the first symbols of suffix `i` to the base of 5, up to a separator."""
    code = np.uint64(0)
    for _ in range(n_symbols):
        code *= np.uint64(5)
        if i < text.shape[0]:
            code += np.uint64(text[i])
            i = i + 1 if text[i] > 0 else text.shape[0]
    return code


@exact_kernel
def place_in_buckets(queue, chunks, text, chunk_size, n_symbols, places, suffixes):
    """Count the suffixes of chunks of the text by bucket, or write them into their buckets.

    Parameters
    ----------
    chunk_size, n_symbols : int
        Symbols of a chunk, and those that the suffixes of a bucket share.
    places : int64, shape (n_chunks, 5 ** n_symbols)
        Next row of each chunk and bucket, or zero; increased by the number of suffixes.
    suffixes : int32, shape (len(text),) or (0,)
        Filled with starts in the text, if it has room for them.
    """
    top = 1
    for _ in range(n_symbols - 1):
        top *= 5
    for t in claimed_indices(work_counter(queue), chunks.shape[0]):
        chunk = chunks[t]
        end = min((chunk + 1) * chunk_size, text.shape[0])
        code = np.int64(_code_at(text, end, n_symbols))
        for i in range(end - 1, chunk * chunk_size - 1, -1):
            code = text[i] * top + code // 5 if text[i] > 0 else 0
            if suffixes.shape[0] > 0:
                suffixes[places[chunk, code]] = i
            places[chunk, code] += 1


@exact_kernel
def sort_buckets(queue, tasks, text, starts, n_symbols, suffixes, ranks):
    """Sort the suffixes of every bucket by their next `_KEY_SYMBOLS` symbols.

    Return first row and end of the groups of equal suffixes so far; int64, shape (2 * n,).

    Parameters
    ----------
    tasks : int64
        `_BUCKETS_AT_A_TIME` buckets each.
    suffixes : int32
        Sorted in place.
    ranks : int32
        Filled with the first row of the equal suffixes so far.
    """
    key = np.empty(1024, np.uint64)
    place = np.empty(1024, np.int64)
    scratch = np.empty(SORT_SCRATCH, np.int64)
    groups = np.empty(64, np.int64)
    n_groups = 0
    for t in claimed_indices(work_counter(queue), tasks.shape[0]):
        first = _BUCKETS_AT_A_TIME * tasks[t]
        for bucket in range(first, min(first + _BUCKETS_AT_A_TIME, starts.shape[0] - 1)):
            begin = starts[bucket]
            n = starts[bucket + 1] - begin
            if key.shape[0] < n:
                key = np.empty(2 * n, np.uint64)
                place = np.empty(2 * n, np.int64)
            has_ended = bucket % 5 == 0  # at a separator: the earlier one is smaller
            for i in range(n):
                at = np.int64(suffixes[begin + i])
                key[i] = np.uint64(at) if has_ended else _code_at(text, at + n_symbols, _KEY_SYMBOLS)
                place[i] = at
            sort_pairs(key, place, 0, n, scratch)
            i = 0
            while i < n:
                j = i + 1
                while j < n and key[j] == key[i]:
                    j += 1
                is_tied = j - i > 1
                if is_tied and key[i] % np.uint64(5) == 0:
                    for k in range(i, j):
                        key[k] = np.uint64(place[k])
                    sort_pairs(key, place, i, j, scratch)
                    is_tied = False
                for k in range(i, j):
                    suffixes[begin + k] = place[k]
                    ranks[place[k]] = begin + (i if is_tied else k)
                if is_tied:
                    groups, n_groups = appended(groups, n_groups, begin + i)
                    groups, n_groups = appended(groups, n_groups, begin + j)
                i = j
    return groups[:n_groups].copy()


@exact_kernel
def sort_groups(queue, tasks, groups, depth, suffixes, ranks):
    """Sort groups of suffixes with `depth` equal symbols by the rank of the rest.

    The first of each new group is written as its complement, for `rank_groups`: ranks must not change meanwhile.

    Parameters
    ----------
    tasks : int64
        `_GROUPS_AT_A_TIME` groups each.
    groups : int64, shape (2 * n,)
        First row and end of each.
    ranks : int32, shape (n_rows,)
        By the start of the suffix in the text.
    """
    key = np.empty(1024, np.uint64)
    place = np.empty(1024, np.int64)
    scratch = np.empty(SORT_SCRATCH, np.int64)
    for t in claimed_indices(work_counter(queue), tasks.shape[0]):
        first = _GROUPS_AT_A_TIME * tasks[t]
        for g in range(first, min(first + _GROUPS_AT_A_TIME, groups.shape[0] // 2)):
            begin = groups[2 * g]
            n = groups[2 * g + 1] - begin
            if key.shape[0] < n:
                key = np.empty(2 * n, np.uint64)
                place = np.empty(2 * n, np.int64)
            for i in range(n):
                at = np.int64(suffixes[begin + i])
                key[i] = np.uint64(ranks[at + depth])
                place[i] = at
            sort_pairs(key, place, 0, n, scratch)
            for i in range(n):
                suffixes[begin + i] = place[i] if i > 0 and key[i] == key[i - 1] else ~place[i]


@exact_kernel
def rank_groups(queue, tasks, groups, suffixes, ranks):
    """Write the ranks of sorted groups; return the groups of still equal suffixes.

    Parameters
    ----------
    suffixes : int32, shape (n_rows,)
        As left by `sort_groups`; complements are undone.
    """
    left = np.empty(64, np.int64)
    n_left = 0
    for t in claimed_indices(work_counter(queue), tasks.shape[0]):
        first = _GROUPS_AT_A_TIME * tasks[t]
        for g in range(first, min(first + _GROUPS_AT_A_TIME, groups.shape[0] // 2)):
            end = groups[2 * g + 1]
            begin = groups[2 * g]
            while begin < end:
                at = begin
                while at == begin or (at < end and suffixes[at] >= 0):
                    if at == begin:
                        suffixes[at] = ~suffixes[at]
                    ranks[suffixes[at]] = begin
                    at += 1
                if at - begin > 1:
                    left, n_left = appended(left, n_left, begin)
                    left, n_left = appended(left, n_left, at)
                begin = at
    return left[:n_left].copy()
