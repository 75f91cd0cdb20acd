"""All decimal digits of a double, for the rare numbers that no shorter way rounds as printf does.

A double is ``m * 2**e``: an integer for e >= 0, and ``m * 5**-e / 10**-e`` otherwise, so that in both cases its digits
are those of an integer, which is held as limbs of nine decimal digits.
"""

from __future__ import annotations

import numpy as np

from f5py.accelerate import exact_kernel
from f5py.text._bytes_numba import bits_of, store_byte

_POINT = np.uint8(ord("."))
_ZERO = np.uint8(ord("0"))

_LIMB = np.uint64(10**9)
_LIMB_DIGITS = 9
_MAX_LIMBS = 88  # 5**1074 * 2**53 has 767 digits
_FRACTION_BITS = np.uint64(52)
_FRACTION = np.uint64(2**52 - 1)
_HIDDEN_BIT = np.uint64(2**52)
_MAX_EXPONENT = np.uint64(0x7FF)
_EXPONENT_OF_ONE_BIT = 1075
_WORD_ONE = np.uint64(1)
_STEP = 12  # 5**12 and 2**12 times a limb, and a carry, fit into a word


@exact_kernel
def _digits_of(value):
    """Digits of a positive finite double: an array of them with a zero before, their number, those behind the point."""
    bits = bits_of(value)
    mantissa = bits & _FRACTION
    exponent = np.int64((bits >> _FRACTION_BITS) & _MAX_EXPONENT)
    if exponent > 0:
        mantissa |= _HIDDEN_BIT
    else:
        exponent = np.int64(1)
    exponent -= _EXPONENT_OF_ONE_BIT
    while exponent < 0 and mantissa & _WORD_ONE != _WORD_ONE:
        mantissa >>= _WORD_ONE
        exponent += 1
    limbs = np.zeros(_MAX_LIMBS, np.uint64)
    limbs[0] = mantissa % _LIMB
    limbs[1] = mantissa // _LIMB
    n_limbs = 2
    base = 2 if exponent > 0 else 5
    left = int(abs(exponent))
    while left > 0:
        factor = np.uint64(base ** min(left, _STEP))
        left -= _STEP
        carry = np.uint64(0)
        for i in range(n_limbs):
            product = limbs[i] * factor + carry
            carry = product // _LIMB
            limbs[i] = product - carry * _LIMB
        if carry > np.uint64(0):
            limbs[n_limbs] = carry
            n_limbs += 1
    digits = np.zeros(n_limbs * _LIMB_DIGITS + 1, np.uint8)
    n_digits = 0
    for i in range(n_limbs - 1, -1, -1):
        divisor = _LIMB
        for _ in range(_LIMB_DIGITS):
            divisor //= np.uint64(10)
            digit = np.uint8(limbs[i] // divisor % np.uint64(10))
            if digit > 0 or n_digits > 0:
                n_digits += 1
                digits[n_digits] = digit
    return digits, n_digits, max(-exponent, 0)


@exact_kernel
def _round(digits, n_digits, keep):
    """Round to the first `keep` digits, ties to even; a carry goes into ``digits[0]``."""
    if keep < 0 or keep >= n_digits:
        return
    tie = digits[keep + 1] == 5
    for i in range(keep + 2, n_digits + 1):
        tie &= digits[i] == 0
    if digits[keep] % 2 == 1 if tie else digits[keep + 1] >= 5:
        i = keep
        while i > 0 and digits[i] == 9:
            digits[i] = 0
            i -= 1
        digits[i] += 1


@exact_kernel
def fixed_exactly(at, value, decimals):
    """Write a positive finite double as ``%.{decimals}f`` at an address; return the one behind it."""
    digits, n_digits, n_behind = _digits_of(value)
    n_whole = n_digits - n_behind
    keep = n_whole + decimals
    _round(digits, n_digits, keep)
    first = n_whole - 1
    if n_whole >= 0 and digits[0] > 0:
        first += 1
    for power in range(max(first, 0), -decimals - 1, -1):
        if power == -1:
            store_byte(at, _POINT)
            at += 1
        i = n_whole - power
        store_byte(at, np.uint8(_ZERO + (digits[i] if 0 <= i <= min(keep, n_digits) else 0)))
        at += 1
    return at


@exact_kernel
def six_digits_exactly(value):
    """The first six digits of a positive finite double, rounded, as an integer; and the first one's power of ten.

    The integer is 10**6 if rounding carried into a seventh digit.
    """
    digits, n_digits, n_behind = _digits_of(value)
    _round(digits, n_digits, np.int64(6))
    number = np.int64(0)
    for i in range(7):
        number = number * 10 + (np.int64(digits[i]) if i <= n_digits else 0)
    return number, n_digits - n_behind - 1
