"""Formatting of numbers and strings into byte buffers, as by C's printf.

Up to eight characters are made at once, as the bytes of one word, and stored together: so eight bytes after a number's
start may be overwritten. Rare numbers, with digits that a product in double precision does not decide, are left to the
C library.

Functions named ``append_...`` take an array and an index and return the next index; those named ``write_...`` take and
return addresses, see `f5py.text._bytes_numba`.
"""

import numpy as np

from f5py.jit.c_memory import address_of_data
from f5py.jit.instructions import lowest_bit
from f5py.jit.kernel import exact_inner
from f5py.text._bytes_numba import bits_of, copy_bytes, print_fixed, print_general, store_byte, store_word

TAB = np.uint8(ord("\t"))
NEWLINE = np.uint8(ord("\n"))
COMMA = np.uint8(ord(","))
ZERO = np.uint8(ord("0"))
PLUS = np.uint8(ord("+"))
MINUS = np.uint8(ord("-"))
POINT = np.uint8(ord("."))

#: Most bytes of `append_int`, `write_general`, and `append_fixed` for float32.
MAX_NUMBER = 48

_SEVEN_DIGITS = 1e7
_POWERS = 10.0 ** np.arange(16)
_EIGHT_ZEROS = np.uint64(0x3030303030303030)
_WORD_POINT = np.uint64(ord("."))
_TEN_TO_4 = np.uint64(10**4)
_TEN_TO_8 = np.uint64(10**8)
_HALVES = np.uint64(0x0000007F0000007F)
_QUARTERS = np.uint64(0x000F000F000F000F)
_PER_10000 = np.uint64(3518437209)  # x * 3518437209 >> 45 is x // 10**4 for x < 2**32
_PER_100 = np.uint64(10486)  # x * 10486 >> 20 is x // 100 for x < 10**4
_PER_10 = np.uint64(103)  # x * 103 >> 10 is x // 10 for x < 100


@exact_inner
def append_bytes(out, at, text):
    """Copy `text` to ``out[at:]``; return the index after it."""
    copy_bytes(address_of_data(out) + at, text, text.shape[0])
    return at + text.shape[0]


@exact_inner
def append_int(out, at, value):
    """Write an integer as ``%d``; return the index after it."""
    return write_int(address_of_data(out) + at, value) - address_of_data(out)


@exact_inner
def append_fixed(out, at, value, decimals):
    """Write a double as ``%.{decimals}f``, exactly, with 1 to 6 decimals; return the index after it."""
    return write_fixed(address_of_data(out) + at, value, decimals) - address_of_data(out)


@exact_inner
def eight_digits(value):
    """Split a uint64 below 10**8 into eight digits, bytes 0 to 9, the first in the lowest byte."""
    high = (value * _PER_10000) >> np.uint64(45)
    fours = high | (value - high * _TEN_TO_4) << np.uint64(32)
    hundreds = ((fours * _PER_100) >> np.uint64(20)) & _HALVES
    twos = ((fours - hundreds * np.uint64(100)) << np.uint64(16)) | hundreds
    tens = ((twos * _PER_10) >> np.uint64(10)) & _QUARTERS
    return tens | (twos - tens * np.uint64(10)) << np.uint64(8)


@exact_inner
def int_word(value):
    """Format a uint64 below 10**8; also return its number of characters."""
    digits = eight_digits(value)
    leading = lowest_bit(digits | np.uint64(1) << np.uint64(56)) >> 3
    return (digits | _EIGHT_ZEROS) >> np.uint64(8 * leading), 8 - leading


@exact_inner
def _write_small(at, value):
    word, n = int_word(value)
    store_word(at, word)
    return at + n


@exact_inner
def _write_large(at, value):
    """Write a uint64 from 10**8 on."""
    high = value // _TEN_TO_8
    if high >= _TEN_TO_8:
        higher = value // np.uint64(10**16)
        at = _write_small(at, higher)
        store_word(at, eight_digits(high - higher * _TEN_TO_8) | _EIGHT_ZEROS)
        at += 8
    else:
        at = _write_small(at, high)
    store_word(at, eight_digits(value - high * _TEN_TO_8) | _EIGHT_ZEROS)
    return at + 8


@exact_inner
def write_int(at, value):
    """Write an integer as ``%d``; return the address after it."""
    positive = np.uint64(value)
    if value < 0:
        store_byte(at, MINUS)
        at += 1
        positive = np.uint64(-np.int64(value))
    if positive < _TEN_TO_8:
        return _write_small(at, positive)
    return _write_large(at, positive)


@exact_inner
def fixed_word(magnitude, decimals):
    """Format a double, positive or zero, as ``%.{decimals}f``; also return its length, up to eight.

    The length is zero for longer numbers and ties. Without branches, so that loops are vectorized.
    """
    scaled = magnitude * _POWERS[decimals]
    rounded = np.rint(scaled)
    # A rounded product is at a tie or on its correct side.
    usual = (rounded < _SEVEN_DIGITS) & (abs(scaled - rounded) != 0.5)
    digits = eight_digits(np.uint64(np.int64(rounded if usual else 0.0)))
    leading = lowest_bit(digits | np.uint64(1) << np.uint64(8 * (7 - decimals))) >> 3
    word = (digits | _EIGHT_ZEROS) >> np.uint64(8 * leading)
    shift = np.uint64(8 * (8 - decimals - leading))
    whole = word & ((np.uint64(1) << shift) - np.uint64(1))
    fraction = (word >> shift) << (shift + np.uint64(8))
    return whole | _WORD_POINT << shift | fraction, 9 - leading if usual else 0


@exact_inner
def fixed_words(values, n, decimals, words, lengths, signs):
    """Format the first `n` float32 by `fixed_word`; `signs` is 1 for negative numbers.

    NaN is negative on all processors, as 0 / 0 is on x86.
    """
    for i in range(n):
        value = np.float64(values[i])
        words[i], lengths[i] = fixed_word(abs(value), decimals)
        signs[i] = np.int64(bits_of(value) >> np.uint64(63)) | (value != value)


@exact_inner
def int_words(values, n, words, lengths):
    """Format the first `n` integers by `int_word`; the length is 0 for negative ones and from 10**8 on."""
    for i in range(n):
        value = np.uint64(values[i])
        usual = value < _TEN_TO_8
        words[i], length = int_word(value if usual else np.uint64(0))
        lengths[i] = length if usual else 0


@exact_inner
def write_fixed(at, value, decimals):
    """Write a double as ``%.{decimals}f`` with 1 to 6 decimals; return the address after it."""
    word, n = fixed_word(abs(value), decimals)
    if n == 0:
        return write_fixed_long(at, value, np.int64(decimals))
    store_byte(at, MINUS)
    at += np.int64(bits_of(value) >> np.uint64(63))
    store_word(at, word)
    return at + n


@exact_inner
def write_fixed_long(at, value, decimals):
    """Write long numbers, ties, infinities and NaN by the C library."""
    return print_fixed(at, decimals, value)


@exact_inner
def write_general(at, value):
    """Write a double as ``%g``, exactly; return the address after it."""
    magnitude = abs(value)
    if not 1e-4 <= magnitude < 1e6:
        return print_general(at, value)
    exponent = 5
    scaled = magnitude
    while scaled < 1e5:
        exponent -= 1
        scaled = magnitude * _POWERS[5 - exponent]
    rounded = np.rint(scaled)
    if abs(scaled - rounded) == 0.5 or rounded == 1e6:
        return print_general(at, value)
    if value < 0:
        store_byte(at, MINUS)
        at += 1
    return _write_significant(at, np.int64(rounded), exponent)


@exact_inner
def _write_significant(at, digits, exponent):
    """Write ``digits * 10 ** (exponent - 5)``, of six digits, as ``%g``; `exponent` is from -4 to 5."""
    n_whole = exponent + 1
    n_digits = 6
    while n_digits > max(n_whole, 1) and digits % 10 == 0:
        digits //= 10
        n_digits -= 1
    if n_whole <= 0:
        store_byte(at, ZERO)
        store_byte(at + 1, POINT)
        for i in range(-n_whole):
            store_byte(at + 2 + i, ZERO)
        at += 2 - n_whole
        n_whole = n_digits
    text = (eight_digits(np.uint64(digits)) | _EIGHT_ZEROS) >> np.uint64(8 * (8 - n_digits))
    for i in range(n_digits):
        if i == n_whole:
            store_byte(at, POINT)
            at += 1
        store_byte(at, np.uint8(text & np.uint64(0xFF)))
        text >>= np.uint64(8)
        at += 1
    return at
