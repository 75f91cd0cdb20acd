"""Jitted loops of the index of a reference; see `f5py.mapping.index.reference_index`."""

# mypy: disable-error-code="assignment,arg-type"
import numpy as np

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping.index._sketch_numba import NONE, sketch

#: Bits of the number of places in an entry of the table; the others say where they begin.
COUNT_BITS = 28
_DIGIT = 11


@exact_kernel
def sketch_contigs(queue, contigs, bases, offsets, scheme, out, n_found):
    """Find the minimizers of contigs; those of contig c begin at ``offsets[c]`` of `out`.

    Parameters
    ----------
    bases : uint8, shape (offsets[-1],)
        0 to 3, 4 for others.
    offsets : int64, shape (n_contigs + 1,)
    scheme : f5py.mapping.index._sketch_numba.Scheme
    out : f5py.mapping.index._sketch_numba.Minimizers
        Filled; one element a base.
    n_found : int64, shape (n_contigs,)
        Filled.
    """
    k, w = scheme.k, scheme.w
    ring = np.empty(2 * w + k, np.uint64)
    for i in claimed_indices(work_counter(queue), contigs.shape[0]):
        c = contigs[i]
        begin = offsets[c]
        n = sketch(bases, begin, offsets[c + 1], scheme, c, ring, out, begin)
        n_found[c] = n - begin


@exact_kernel
def close_up(offsets, n_found, keys, places):
    """Move the minimizers of all contigs together, without their spans; return how many there are.

    Parameters
    ----------
    offsets, n_found
        See `sketch_contigs`, which has filled the latter.
    keys, places : uint64, int64, shape (offsets[-1],)
        The minimizers, moved in place.
    """
    n = 0
    for c in range(n_found.shape[0]):
        for i in range(offsets[c], offsets[c] + n_found[c]):
            keys[n] = keys[i] >> np.uint64(8)
            places[n] = places[i]
            n += 1
    return n


@exact_kernel
def sort_by_key(keys, places, other_keys, other_places, n, n_bits):
    """Sort stably by key, digit by digit; return whether the result is in the other arrays.

    Parameters
    ----------
    keys, places : uint64, int64, shape (>= n,)
        Overwritten, as the others are.
    other_keys, other_places : uint64, int64, shape (>= n,)
        Scratch, or the result.
    n : int
    n_bits : int
        Of a key; all higher ones are 0.
    """
    counts = np.empty((1 << _DIGIT) + 1, np.int64)
    swapped = False
    low = 0
    mask = np.uint64((1 << _DIGIT) - 1)
    while low < n_bits:
        shift = np.uint64(low)
        for b in range(counts.shape[0]):
            counts[b] = 0
        for i in range(n):
            counts[np.int64((keys[i] >> shift) & mask) + 1] += 1
        for b in range(1, counts.shape[0]):
            counts[b] += counts[b - 1]
        for i in range(n):
            b = np.int64((keys[i] >> shift) & mask)
            other_keys[counts[b]] = keys[i]
            other_places[counts[b]] = places[i]
            counts[b] += 1
        keys, other_keys = other_keys, keys
        places, other_places = other_places, places
        swapped = not swapped
        low += _DIGIT
    return swapped


@exact_kernel
def count_keys(keys, n, counts):
    """Write the number of places of every distinct key; return how many keys there are.

    Parameters
    ----------
    keys : uint64, shape (>= n,)
        Sorted.
    n : int
    counts : int32, shape (>= n,)
        Filled.
    """
    n_keys = 0
    i = 0
    while i < n:
        j = i + 1
        while j < n and keys[j] == keys[i]:
            j += 1
        counts[n_keys] = j - i
        n_keys += 1
        i = j
    return n_keys


@exact_kernel
def fill_table(keys, places, counts, n_keys, table):
    """Fill the hash table: key, then where its places begin and how many there are. Places of a key ascend.

    Parameters
    ----------
    keys, places : uint64, int64, shape (n,)
        Sorted by key; places are then sorted for each key.
    counts : int32, shape (n_keys,)
        See `count_keys`.
    n_keys : int
    table : uint64, shape (2 * n_slots,)
        Filled; of a power of two of slots, more than there are keys.
    """
    mask = table.shape[0] // 2 - 1
    for s in range(mask + 1):
        table[2 * s] = NONE
        table[2 * s + 1] = 0  # what was in the memory is nothing for a file
    first = 0
    for c in range(n_keys):
        key = keys[first]
        slot = np.int64(key) & mask
        while table[2 * slot] != NONE:
            slot = (slot + 1) & mask
        table[2 * slot] = key
        table[2 * slot + 1] = np.uint64((first << COUNT_BITS) | counts[c])
        for i in range(first + 1, first + counts[c]):
            place = places[i]
            j = i
            while j > first and places[j - 1] > place:
                places[j] = places[j - 1]
                j -= 1
            places[j] = place
        first += counts[c]


@exact_inner
def look_up(table, key):
    """Entry of a key: first place << COUNT_BITS | number of places; 0 for a key that does not occur."""
    mask = table.shape[0] // 2 - 1
    slot = np.int64(key) & mask
    while True:
        found = table[2 * slot]
        if found == key:
            return np.int64(table[2 * slot + 1])
        if found == NONE:
            return 0
        slot = (slot + 1) & mask


@exact_kernel
def is_sound(bases, offsets, table, places, k):
    """Return whether an index that may be damaged leads nowhere outside of itself, and every look-up of a key ends.

    `offsets` has one element at least, and `table` a power of two of slots.

    Parameters
    ----------
    bases, offsets, table, places, k
        See `f5py.mapping.index.reference_index.ReferenceIndex`.
    """
    n_contigs = offsets.shape[0] - 1
    if offsets[0] != 0 or offsets[n_contigs] != bases.shape[0]:
        return False
    for i in range(n_contigs):
        if offsets[i + 1] < offsets[i]:
            return False
    for i in range(bases.shape[0]):
        if bases[i] > 4:
            return False
    for place in places:
        contig, last = place >> 32, (place & 0xFFFFFFFF) >> 1
        if contig < 0 or contig >= n_contigs:
            return False
        if last < k - 1 or last >= offsets[contig + 1] - offsets[contig]:
            return False
    has_end = False
    for slot in range(table.shape[0] // 2):
        if table[2 * slot] == NONE:
            has_end = True
            continue
        found = np.int64(table[2 * slot + 1])
        if found < 0 or (found >> COUNT_BITS) + (found & ((1 << COUNT_BITS) - 1)) > places.shape[0]:
            return False
    return has_end
