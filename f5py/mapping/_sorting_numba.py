"""Sort that decides ties as minimap2 does, and arrays that grow."""

import numpy as np

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter

_SMALL = 64
#: Elements of the scratch of `sort_pairs`: two for every bucket, three for every pending range.
SORT_SCRATCH = 512 + 3 * 256 * 8


@exact_inner
def _insert(x, y, begin, end):
    """Stable insertion sort."""
    for i in range(begin + 1, end):
        key = x[i]
        if key < x[i - 1]:
            value = y[i]
            j = i
            while j > begin and key < x[j - 1]:
                x[j] = x[j - 1]
                y[j] = y[j - 1]
                j -= 1
            x[j] = key
            y[j] = value


@exact_inner
def sort_pairs(x, y, begin, end, scratch):
    """Sort ``x[begin:end]`` in place with `y`; equal keys get the order of minimap2's radix sort.

    `scratch` has `SORT_SCRATCH` int64 elements.
    """
    if end - begin <= _SMALL:
        _insert(x, y, begin, end)
        return
    i = begin + 1
    while i < end and x[i - 1] <= x[i]:
        i += 1
    if i == end:
        return  # nothing would change its place
    stack = 512
    scratch[stack] = begin
    scratch[stack + 1] = end
    scratch[stack + 2] = 56
    stack += 3
    while stack > 512:
        stack -= 3
        first = scratch[stack]
        last = scratch[stack + 1]
        level = scratch[stack + 2]
        # where all keys have the same byte, they would stay where they are
        differing = np.uint64(0)
        for i in range(first + 1, last):
            differing |= x[i] ^ x[first]
        if differing == 0:
            continue
        while differing >> np.uint64(level) == 0:
            level -= 8
        shift = np.uint64(level)
        for b in range(512):
            scratch[b] = 0
        for i in range(first, last):
            scratch[256 + np.int64((x[i] >> shift) & np.uint64(255))] += 1
        at = first
        for b in range(256):
            scratch[b] = at
            at += scratch[256 + b]
            scratch[256 + b] = at
        for b in range(256):
            while scratch[b] != scratch[256 + b]:
                at = scratch[b]
                key = x[at]
                to = np.int64((key >> shift) & np.uint64(255))
                if to != b:
                    value = y[at]
                    while to != b:
                        place = scratch[to]
                        scratch[to] = place + 1
                        other_key = x[place]
                        other_value = y[place]
                        x[place] = key
                        y[place] = value
                        key = other_key
                        value = other_value
                        to = np.int64((key >> shift) & np.uint64(255))
                    x[scratch[b]] = key
                    y[scratch[b]] = value
                scratch[b] += 1
        if level > 0:
            at = first
            for b in range(256):
                end_of_bucket = scratch[256 + b]
                n = end_of_bucket - at
                if n > _SMALL:
                    scratch[stack] = at
                    scratch[stack + 1] = end_of_bucket
                    scratch[stack + 2] = level - 8
                    stack += 3
                elif n > 1:
                    _insert(x, y, at, end_of_bucket)
                at = end_of_bucket


@exact_kernel
def sort_reads(queue, reads, x, y, offsets):
    """Sort the pairs of each of some reads, as `sort_pairs` does.

    Parameters
    ----------
    x, y : uint64, int64, shape (offsets[-1],)
    """
    scratch = np.empty(SORT_SCRATCH, np.int64)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        sort_pairs(x, y, offsets[reads[i]], offsets[reads[i] + 1], scratch)


@exact_inner
def grown(array, n):
    """Return an array, or a copy with room for more than `n` elements."""
    if n <= array.shape[0]:
        return array
    larger = np.empty(max(n, 2 * array.shape[0]), array.dtype)
    for i in range(array.shape[0]):
        larger[i] = array[i]
    return larger


@exact_inner
def appended(array, n, value):
    """Return an array, or a larger copy, with a value behind its first `n` elements; and the new count."""
    array = grown(array, n + 1)
    array[n] = value
    return array, n + 1


@exact_inner
def extended(array, n, values):
    """Return an array, or a larger copy, with values behind its first `n` elements; and the new count."""
    array = grown(array, n + values.shape[0])
    for i in range(values.shape[0]):
        array[n + i] = values[i]
    return array, n + values.shape[0]
