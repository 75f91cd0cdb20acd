"""Jitted loops that sort the suffixes of a text; see `f5py.mapping.mem.fm_index`.

A text has 0 for a separator and 1 to 4 for bases. Separators are smaller than bases, and the earlier ones smaller than
the later ones.
"""

# mypy: disable-error-code="assignment"
import numpy as np

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import SORT_SCRATCH, grown, sort_pairs

#: Symbols of a key: 5 ** 27 < 2 ** 63.
KEY_SYMBOLS = 27
#: Buckets, and groups, that a thread takes at a time.
BUCKETS_AT_A_TIME = 16
GROUPS_AT_A_TIME = 64


@exact_kernel
def count_segments(bases, offsets):
    """Count the stretches of known bases, and the bases in them.

    Parameters
    ----------
    bases : uint8, shape (offsets[-1],)
        0 to 3, 4 for unknown bases.
    offsets : int64, shape (n_contigs + 1,)
    """
    n_segments = 0
    n_bases = 0
    for c in range(offsets.shape[0] - 1):
        inside = False
        for i in range(offsets[c], offsets[c + 1]):
            if bases[i] < 4:
                n_bases += 1
                if not inside:
                    n_segments += 1
            inside = bases[i] < 4
    return n_segments, n_bases


@exact_kernel
def write_text(bases, offsets, text, text_starts, reference_starts):
    """Write the stretches of known bases, each with a separator behind it, and where they begin in text and `bases`.

    Parameters
    ----------
    bases, offsets
        See `count_segments`.
    text : uint8, shape (n_bases + n_segments,)
        Filled: 1 to 4 for bases, 0 for separators.
    text_starts, reference_starts : int64, shape (>= n_segments,)
        Filled.
    """
    n = 0
    s = 0
    for c in range(offsets.shape[0] - 1):
        inside = False
        for i in range(offsets[c], offsets[c + 1]):
            if bases[i] < 4:
                if not inside:
                    text_starts[s] = n
                    reference_starts[s] = i
                    s += 1
                text[n] = bases[i] + 1
                n += 1
            elif inside:
                text[n] = 0
                n += 1
            inside = bases[i] < 4
        if inside:
            text[n] = 0
            n += 1


@exact_inner
def _code_at(text, i, n_symbols):
    """Encode the first symbols of suffix `i` as a number to the base of 5; nothing counts behind a separator."""
    code = np.uint64(0)
    for _ in range(n_symbols):
        code *= np.uint64(5)
        if i < text.shape[0]:
            code += np.uint64(text[i])
            i = i + 1 if text[i] > 0 else text.shape[0]
    return code


@exact_kernel
def count_buckets(queue, chunks, text, chunk_size, n_symbols, counts):
    """Count the suffixes of each chunk of the text by their first symbols.

    Parameters
    ----------
    text : uint8
        See `write_text`.
    chunk_size : int
        Symbols of a chunk.
    n_symbols : int
        That the suffixes of a bucket have in common.
    counts : int64, shape (n_chunks, 5 ** n_symbols)
        Zero; filled.
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
            counts[chunk, code] += 1


@exact_kernel
def place_in_buckets(queue, chunks, text, chunk_size, n_symbols, places, suffixes):
    """Write every suffix into its bucket, where `places` says for each chunk.

    Parameters
    ----------
    queue, chunks, text, chunk_size, n_symbols
        See `count_buckets`.
    places : int64, shape (n_chunks, 5 ** n_symbols)
        First rows; moved on with every suffix.
    suffixes : int32, shape (len(text),)
        Filled with where in the text they begin.
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
            suffixes[places[chunk, code]] = i
            places[chunk, code] += 1


@exact_kernel
def sort_buckets(queue, tasks, text, starts, n_symbols, suffixes, ranks):
    """Sort the suffixes of every bucket by their next `KEY_SYMBOLS` symbols.

    Parameters
    ----------
    queue, tasks
        See `f5py.threads.pool`; `BUCKETS_AT_A_TIME` buckets each.
    text : uint8
    starts : int64, shape (n_buckets + 1,)
    n_symbols : int
        That buckets have in common.
    suffixes : int32
        Sorted in place.
    ranks : int32
        Filled: of each suffix the first row of those that are equal so far.

    Returns
    -------
    int64, shape (2 * n,)
        First row and end of the groups of suffixes that are equal so far.
    """
    key = np.empty(1024, np.uint64)
    place = np.empty(1024, np.int64)
    scratch = np.empty(SORT_SCRATCH, np.int64)
    groups = np.empty(64, np.int64)
    n_groups = 0
    for t in claimed_indices(work_counter(queue), tasks.shape[0]):
        first = BUCKETS_AT_A_TIME * tasks[t]
        for bucket in range(first, min(first + BUCKETS_AT_A_TIME, starts.shape[0] - 1)):
            begin = starts[bucket]
            n = starts[bucket + 1] - begin
            if key.shape[0] < n:
                key = np.empty(2 * n, np.uint64)
                place = np.empty(2 * n, np.int64)
            has_ended = bucket % 5 == 0  # at a separator: the earlier one is smaller
            for i in range(n):
                at = np.int64(suffixes[begin + i])
                key[i] = np.uint64(at) if has_ended else _code_at(text, at + n_symbols, KEY_SYMBOLS)
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
                    groups = grown(groups, 2 * n_groups + 2)
                    groups[2 * n_groups] = begin + i
                    groups[2 * n_groups + 1] = begin + j
                    n_groups += 1
                i = j
    return groups[: 2 * n_groups].copy()


@exact_kernel
def sort_groups(queue, tasks, groups, depth, suffixes, ranks):
    """Sort groups of suffixes that are equal in `depth` symbols by the rank of what follows.

    The first of each new group is written as its complement, for `rank_groups`: ranks must not change meanwhile.

    Parameters
    ----------
    queue, tasks
        See `f5py.threads.pool`; `GROUPS_AT_A_TIME` groups each.
    groups : int64, shape (2 * n,)
        First row and end of each.
    depth : int
    suffixes : int32, shape (n_rows,)
        Sorted in place.
    ranks : int32, shape (n_rows,)
        By the place of the suffix in the text.
    """
    key = np.empty(1024, np.uint64)
    place = np.empty(1024, np.int64)
    scratch = np.empty(SORT_SCRATCH, np.int64)
    for t in claimed_indices(work_counter(queue), tasks.shape[0]):
        first = GROUPS_AT_A_TIME * tasks[t]
        for g in range(first, min(first + GROUPS_AT_A_TIME, groups.shape[0] // 2)):
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
    """Write the ranks of sorted groups; return the groups that are left.

    Parameters
    ----------
    queue, tasks, groups
        See `sort_groups`, also for what is returned.
    suffixes : int32, shape (n_rows,)
        As `sort_groups` has left them; complements are undone.
    ranks : int32, shape (n_rows,)
        Filled for the suffixes of the groups.
    """
    left = np.empty(64, np.int64)
    n_left = 0
    for t in claimed_indices(work_counter(queue), tasks.shape[0]):
        first = GROUPS_AT_A_TIME * tasks[t]
        for g in range(first, min(first + GROUPS_AT_A_TIME, groups.shape[0] // 2)):
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
                    left = grown(left, 2 * n_left + 2)
                    left[2 * n_left] = begin
                    left[2 * n_left + 1] = at
                    n_left += 1
                begin = at
    return left[: 2 * n_left].copy()
