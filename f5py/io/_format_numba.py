"""Jitted text formatting: numbers and strings into byte buffers, as C's printf writes them."""

from __future__ import annotations

import numpy as np

from f5py.accelerate import kernel

TAB = np.uint8(ord("\t"))
NEWLINE = np.uint8(ord("\n"))
_ZERO = np.uint8(ord("0"))
_MINUS = np.uint8(ord("-"))
_POINT = np.uint8(ord("."))
_NAN = np.frombuffer(b"nan", np.uint8)
_INFINITY = np.frombuffer(b"inf", np.uint8)

#: Bytes that `append_int` and `append_fixed` need at most.
MAX_NUMBER = 32


@kernel
def append_bytes(out, at, text):
    """Copy `text` to ``out[at:]``; return the index behind it."""
    for i in range(text.shape[0]):
        out[at + i] = text[i]
    return at + text.shape[0]


@kernel
def append_int(out, at, value):
    """Write an integer as ``%d``; return the index behind it."""
    if value < 0:
        out[at] = _MINUS
        at += 1
        value = -value
    digits = 1
    rest = value // 10
    while rest > 0:
        digits += 1
        rest //= 10
    for i in range(at + digits - 1, at - 1, -1):
        out[i] = _ZERO + np.uint8(value % 10)
        value //= 10
    return at + digits


@kernel
def append_fixed(out, at, value, decimals):
    """Write a double as ``%.{decimals}f``; return the index behind it.

    Exact for values that came from float32 and up to six decimals, as long as they are below 1e9: the product with
    the power of ten then is exact, and ties are rounded to even, as printf does.
    """
    if np.isnan(value):
        return append_bytes(out, at, _NAN)
    if value < 0.0 or (value == 0.0 and np.copysign(1.0, value) < 0.0):
        out[at] = _MINUS
        at += 1
        value = -value
    if np.isinf(value):
        return append_bytes(out, at, _INFINITY)
    power = 1
    for _ in range(decimals):
        power *= 10
    scaled = np.int64(np.rint(value * power))
    at = append_int(out, at, scaled // power)
    out[at] = _POINT
    fraction = scaled % power
    for i in range(at + decimals, at, -1):
        out[i] = _ZERO + np.uint8(fraction % 10)
        fraction //= 10
    return at + decimals + 1
