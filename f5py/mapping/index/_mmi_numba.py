"""Jitted loops that read indices of minimap2; see `f5py.mapping.index.mmi_file`."""

# mypy: disable-error-code="assignment,arg-type"
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping.index._reference_index_numba import PLACE_BITS

_LETTERS = np.frombuffer(b"ACGTNNNNNNNNNNNN", np.uint8).copy()
_LOW = np.uint64(0xFFFFFFFF)
_1 = np.uint64(1)


class MmiBuckets(NamedTuple):
    """Buckets of all parts of a file."""

    text: NDArray[np.uint8]  # the file
    # begins, numbers, first_contigs, end_contigs: shape (n_buckets,): where a bucket begins, its number in its part,
    # and the contigs of that part
    begins: NDArray[np.int64]
    numbers: NDArray[np.int64]
    first_contigs: NDArray[np.int64]
    end_contigs: NDArray[np.int64]
    bits: int  # of a bucket's number


@exact_inner
def _number(text, at, n_bytes):
    """Read a little-endian number."""
    value = np.uint64(0)
    for i in range(n_bytes):
        value |= np.uint64(text[at + i]) << np.uint64(8 * i)
    return value


@exact_kernel
def find_buckets(text, at, begins):
    """Fill where the buckets of a part begin; return the end of the last one, -1 if it is beyond the file's.

    Parameters
    ----------
    text : uint8
        The file.
    at : int
        Where the first one begins.
    begins : int64, shape (n_buckets,)
        Filled.
    """
    size = text.shape[0]
    for b in range(begins.shape[0]):
        begins[b] = at
        if at + 4 > size:
            return -1
        at += 4 + 8 * np.int64(_number(text, at, 4))
        if at + 4 > size:
            return -1
        at += 4 + 16 * np.int64(_number(text, at, 4))
        if at > size:
            return -1
    return at


@exact_kernel
def count_places(queue, pieces, size, buckets, counts, is_damaged):
    """Count the places in pieces of `size` buckets by the index's own buckets.

    Parameters
    ----------
    buckets : MmiBuckets
    counts : uint32, shape (n_pieces, n_own_buckets)
        Zero; filled.
    is_damaged : bool, shape (1,)
        Set if there are places that are not in the file.
    """
    text = buckets.text
    mask = counts.shape[1] - 1
    for t in claimed_indices(work_counter(queue), pieces.shape[0]):
        first = pieces[t] * size
        for b in range(first, min(first + size, buckets.begins.shape[0])):
            at = buckets.begins[b]
            n_places = np.int64(_number(text, at, 4))
            at += 4 + 8 * n_places
            n_keys = np.int64(_number(text, at, 4))
            at += 4
            n = 0
            for _ in range(n_keys):
                key = _number(text, at, 8)
                value = _number(text, at + 8, 8)
                at += 16
                count = np.int64(1)
                if not key & _1:
                    count = np.int64(value & _LOW)
                    n += count
                    if np.int64(value >> np.uint64(32)) + count > n_places:
                        is_damaged[0] = True
                own = np.int64(((key >> _1) << np.uint64(buckets.bits)) & np.uint64(mask))
                own |= buckets.numbers[b] & mask
                counts[pieces[t], own] += np.uint32(count)
            if n != n_places:
                is_damaged[0] = True


@exact_kernel
def scatter_places(queue, pieces, size, buckets, offsets, layout, begins, seeds, is_damaged):
    """Write the places of pieces of `size` buckets to the index's own buckets.

    Parameters
    ----------
    buckets, is_damaged
        See `count_places`.
    offsets : int64, shape (n_contigs + 1,)
    layout : f5py.mapping.index._reference_index_numba.KeyLayout
    begins : int64, shape (n_pieces, n_own_buckets)
        Where those of each piece begin; overwritten.
    seeds : f5py.mapping.index._reference_index_numba.Buckets
        Filled.
    """
    text = buckets.text
    mask = (1 << layout.bucket_bits) - 1
    most = np.uint64(1) << np.uint64(2 * layout.k)
    is_wide = seeds.keys.shape[0] > 0
    for t in claimed_indices(work_counter(queue), pieces.shape[0]):
        p = pieces[t]
        for b in range(p * size, min((p + 1) * size, buckets.begins.shape[0])):
            places = buckets.begins[b] + 4
            at = places + 8 * np.int64(_number(text, places - 4, 4))
            n_keys = np.int64(_number(text, at, 4))
            at += 4
            for _ in range(n_keys):
                key = _number(text, at, 8)
                value = _number(text, at + 8, 8)
                at += 16
                hashed = ((key >> _1) << np.uint64(buckets.bits)) | np.uint64(buckets.numbers[b])
                if hashed >= most:
                    is_damaged[0] = True
                own = np.int64(hashed) & mask
                rest = hashed >> np.uint64(layout.bucket_bits)
                is_one = key & _1 != 0
                begin = places + 8 * np.int64(value >> np.uint64(32))
                for i in range(1 if is_one else np.int64(value & _LOW)):
                    place = value if is_one else _number(text, begin + 8 * i, 8)
                    contig = np.int64(place >> np.uint64(32)) + buckets.first_contigs[b]
                    last = np.int64(place & _LOW) >> 1
                    if contig < 0 or contig >= buckets.end_contigs[b]:
                        is_damaged[0] = True
                        contig = buckets.first_contigs[b]
                    if last < layout.k - 1 or last >= offsets[contig + 1] - offsets[contig]:
                        is_damaged[0] = True
                        last = 0
                    word = np.uint64((offsets[contig] + last) << 1) | (place & _1)
                    to = begins[p, own]
                    begins[p, own] = to + 1
                    if is_wide:
                        seeds.keys[to] = rest
                        seeds.words[to] = word
                    else:
                        seeds.words[to] = rest << np.uint64(PLACE_BITS) | word


@exact_kernel
def expand_bases(text, at, begin, letters):
    """Write the letters of bases from `begin` on.

    Parameters
    ----------
    text : uint8
        The file; the bases have four bits each from ``text[at]`` on.
    at, begin : int
    letters : uint8, shape (n,)
        Filled.
    """
    for i in range(letters.shape[0]):
        byte = text[at + ((begin + i) >> 1)]
        letters[i] = _LETTERS[(byte >> np.uint8(4 * ((begin + i) & 1))) & np.uint8(15)]
