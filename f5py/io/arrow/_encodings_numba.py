"""Jitted loops that encode columns for Parquet; see `f5py.io.arrow.encodings`."""

import numpy as np

from f5py.jit.kernel import exact_kernel
from f5py.text._bytes_numba import address_of, store_byte, store_word

#: Values of a block of differences, of each of its parts, and how many of these there are.
BLOCK, PART, N_PARTS = 128, 32, 4
#: What the first bytes of differences, and a block of them, take up at most.
MOST_AT_FIRST, MOST_PER_BLOCK = 32, 16 + N_PARTS + 8 * BLOCK
#: Slots of a table of values, at first, and how far a product of 64 bits is shifted to be one of them.
_FIRST_SLOTS, _FIRST_SHIFT = 1 << 12, np.uint64(64 - 12)
#: 2 to the power of 64, divided by the golden ratio: scatters numbers that are alike.
_SCATTER = np.uint64(0x9E3779B97F4A7C15)
_WORD, _HALF = np.uint64(64), np.uint64(32)
_ONE = np.uint64(1)
_LOW_BITS, _MORE_BITS, _BITS = np.uint64(0x7F), np.uint64(0x80), np.uint64(7)
_LOW_HALF = np.uint64(0xFFFFFFFF)


@exact_kernel
def _slot_of(key, shift):
    return np.int64((key ^ key >> _HALF) * _SCATTER >> shift)


@exact_kernel
def number_values(halves, codes, values):
    """Give different values numbers, in the order of their first occurrence.

    Returns how many there are, or -1 if `values` has no room for them.

    Parameters
    ----------
    halves : uint32, shape (n, 1 or 2)
        The bits of every value, the lower half first.
    codes : int32, shape (n,)
        Filled with the number of every value.
    values : uint64
        Filled with the bits of the different values.
    """
    n_halves = halves.shape[1]
    n_slots = _FIRST_SLOTS
    shift = _FIRST_SHIFT
    keys = np.zeros(n_slots, np.uint64)
    numbers = np.zeros(n_slots, np.int32)  # 1 + the number of a key; 0 for none
    n_values = 0
    for i in range(halves.shape[0]):
        key = np.uint64(halves[i, 0])
        if n_halves == 2:
            key |= np.uint64(halves[i, 1]) << _HALF
        at = _slot_of(key, shift)
        while numbers[at] != 0 and keys[at] != key:
            at = (at + 1) & (n_slots - 1)
        if numbers[at] == 0:
            if n_values == values.shape[0]:
                return -1
            values[n_values] = key
            n_values += 1
            keys[at], numbers[at] = key, n_values
            if 6 * n_values > n_slots:  # sparse, as processors do not foresee collisions
                n_slots *= 4
                shift -= np.uint64(2)
                keys = np.zeros(n_slots, np.uint64)
                numbers = np.zeros(n_slots, np.int32)
                for j in range(n_values):
                    at = _slot_of(values[j], shift)
                    while numbers[at] != 0:
                        at = (at + 1) & (n_slots - 1)
                    keys[at], numbers[at] = values[j], j + 1
            codes[i] = n_values - 1
        else:
            codes[i] = numbers[at] - 1
    return n_values


@exact_kernel
def _put_varint(to, value):
    """Write a number without sign in groups of seven bits, the lowest first; return the address behind it."""
    while value > _LOW_BITS:
        store_byte(to, np.uint8(value & _LOW_BITS | _MORE_BITS))
        value >>= _BITS
        to += 1
    store_byte(to, np.uint8(value))
    return to + 1


@exact_kernel
def _put_zigzag(to, value):
    """Write a number with a sign, which goes into the lowest bit."""
    return _put_varint(to, np.uint64(value << 1 ^ value >> 63))


@exact_kernel
def _put_part(to, above, first, width):
    """Write the lowest `width` bits of `PART` numbers from the one at `first` on; return the address behind them."""
    if width == 0:
        return to
    step = np.uint64(width)
    word = np.uint64(0)
    used = np.uint64(0)
    if PART * width <= 64:  # as it is where values hardly change: one word, and no branches
        for i in range(PART):
            word |= above[first + i] << np.uint64(i) * step
        store_word(to, word)
        return to + PART * width // 8
    for i in range(first, first + PART):
        value = above[i]
        word |= value << used
        used += step
        if used >= _WORD:
            store_word(to, word)
            to += 8
            used -= _WORD
            word = value >> (step - used) if used > 0 else np.uint64(0)
    if used > 0:  # half a word
        store_word(to, word)
        to += 4
    return to


@exact_kernel
def _width_of(every):
    """Count the bits of a number."""
    width = 0
    while every != 0:
        every >>= _ONE
        width += 1
    return width


@exact_kernel
def pack_differences(values, is_half, out):
    """Encode values by their differences (``DELTA_BINARY_PACKED``); return the number of bytes.

    Parameters
    ----------
    values : int64, shape (n,)
        At least one.
    is_half : bool
        Readers take them for numbers of 32 bits, and differences, too.
    out : uint8
        Filled, with room for `MOST_AT_FIRST` bytes, `MOST_PER_BLOCK` for each block, and a word.
    """
    begin = address_of(out)
    above = np.empty(BLOCK, np.uint64)  # differences, without the least of the block
    steps = np.empty(BLOCK, np.int64)
    n = values.shape[0]
    to = _put_varint(begin, np.uint64(BLOCK))
    to = _put_varint(to, np.uint64(N_PARTS))
    to = _put_varint(to, np.uint64(n))
    to = _put_zigzag(to, values[0])
    mask = _LOW_HALF if is_half else ~np.uint64(0)
    for first in range(1, n, BLOCK):
        n_here = min(BLOCK, n - first)
        for i in range(n_here):
            steps[i] = values[first + i] - values[first + i - 1]
        if is_half:
            for i in range(n_here):
                steps[i] = np.int64(np.int32(steps[i]))
        least = steps[0]
        for i in range(n_here):
            least = min(least, steps[i])
        steps[n_here:] = least
        for i in range(BLOCK):
            above[i] = np.uint64(steps[i] - least) & mask
        to = _put_zigzag(to, least)
        widths = to
        to += N_PARTS
        for part in range(N_PARTS):
            every = np.uint64(0)
            for i in range(PART):
                every |= above[part * PART + i]
            width = _width_of(every)
            to = _put_part(to, above, part * PART, width)
            store_byte(widths + part, np.uint8(width))
    return to - begin
