"""Jitted loops that find minimizers; see `f5py.mapping.index.seeds`."""

# mypy: disable-error-code="assignment,arg-type"
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_inner, exact_kernel

#: No k-mer: greater than every key.
NONE = np.uint64(0xFFFFFFFFFFFFFFFF)


@exact_kernel
def fill_codes(letters, codes):
    """Fill the codes of letters.

    Parameters
    ----------
    letters, codes : uint8, shape (n,)
        See `f5py.mapping.index.reference_index.codes_of`.
    """
    for i in range(letters.shape[0]):
        letter = letters[i] & np.uint8(0xDF)
        code = (letter >> np.uint8(1)) & np.uint8(3)
        is_base = letter == 65 or letter == 67 or letter == 71 or letter == 84 or letter == 85
        codes[i] = code ^ (code >> np.uint8(1)) if is_base else np.uint8(4)


@exact_inner
def hash_bits(x, mask):
    """Invertible hash of the bits in `mask`; uint64."""
    x = (~x + (x << np.uint64(21))) & mask
    x = x ^ (x >> np.uint64(24))
    x = (x + (x << np.uint64(3)) + (x << np.uint64(8))) & mask
    x = x ^ (x >> np.uint64(14))
    x = (x + (x << np.uint64(2)) + (x << np.uint64(4))) & mask
    x = x ^ (x >> np.uint64(28))
    return (x + (x << np.uint64(31))) & mask


class Scheme(NamedTuple):
    """Choice of minimizers."""

    k: int  # bases of a seed
    w: int  # seeds of a window
    hpc: int  # 1 if runs of a base count as one


class Minimizers(NamedTuple):
    """Minimizers, to be filled; room for one a base."""

    key: NDArray[np.uint64]  # hash << 8 | span
    place: NDArray[np.int64]  # number of the sequence << 32 | last base << 1 | strand


@exact_inner
def sketch(bases, begin, end, scheme, rid, ring, out, n):
    """Write the minimizers of ``bases[begin:end]`` from index `n` on; return the index after the last.

    Scratch is `ring`, uint64 of shape (2 * w + k,): keys and places of a window, then lengths of homopolymers.
    """
    k, w, hpc = scheme
    key_out, place_out = out
    mask = np.uint64((1 << (2 * k)) - 1)
    shift = np.uint64(2 * (k - 1))
    forward = np.uint64(0)
    backward = np.uint64(0)
    high = np.int64(rid) << 32
    for s in range(w):
        ring[s] = NONE
    runs = 2 * w  # the last k lengths of homopolymers, behind w keys and w places
    n_runs = 0
    length = 0
    span = 0
    slot = 0
    min_key = NONE
    min_place = np.int64(-1)
    min_slot = 0
    i = begin
    while i < end:
        key = NONE
        place = np.int64(-1)
        c = bases[i]
        if c < 4:
            if hpc:
                first = i
                while i + 1 < end and bases[i + 1] == c:
                    i += 1
                ring[runs + n_runs % k] = np.uint64(i + 1 - first)
                n_runs += 1
                span = 0
                for r in range(min(n_runs, k)):
                    span += np.int64(ring[runs + r])
            else:
                span = min(length + 1, k)
            forward = ((forward << np.uint64(2)) | np.uint64(c)) & mask
            backward = (backward >> np.uint64(2)) | (np.uint64(3 - c) << shift)
            if forward == backward:
                i += 1
                continue
            length += 1
            if length >= k and span < 256:
                key = (hash_bits(min(forward, backward), mask) << np.uint64(8)) | np.uint64(span)
                place = high | (np.int64(i - begin) << 1) | np.int64(backward < forward)
        else:
            length = 0
            n_runs = 0
            span = 0
        ring[slot] = key
        ring[w + slot] = np.uint64(place)
        if length == w + k - 1 and min_key != NONE:
            for s in range(1, w):  # oldest first; not the one just written
                at = slot + s if slot + s < w else slot + s - w
                if ring[at] == min_key and at != min_slot:
                    key_out[n] = min_key
                    place_out[n] = np.int64(ring[w + at])
                    n += 1
        if key <= min_key:
            if length >= w + k and min_key != NONE:
                key_out[n] = min_key
                place_out[n] = min_place
                n += 1
            min_key = key
            min_place = place
            min_slot = slot
        elif slot == min_slot:
            if length >= w + k - 1 and min_key != NONE:
                key_out[n] = min_key
                place_out[n] = min_place
                n += 1
            min_key = NONE
            for s in range(1, w + 1):
                at = slot + s if slot + s < w else slot + s - w
                if ring[at] <= min_key:
                    min_key = ring[at]
                    min_slot = at
            min_place = np.int64(ring[w + min_slot])
            if length >= w + k - 1 and min_key != NONE:
                for s in range(1, w + 1):
                    at = slot + s if slot + s < w else slot + s - w
                    if ring[at] == min_key and at != min_slot:
                        key_out[n] = min_key
                        place_out[n] = np.int64(ring[w + at])
                        n += 1
        slot += 1
        if slot == w:
            slot = 0
        i += 1
    if min_key != NONE:
        key_out[n] = min_key
        place_out[n] = min_place
        n += 1
    return n
