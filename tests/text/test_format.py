"""Numbers as text, against printf."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.jit.c_memory import address_of_data
from f5py.jit.kernel import exact_kernel
from f5py.text._format_numba import (
    MAX_NUMBER,
    append_bytes,
    append_fixed,
    append_int,
    fixed_words,
    int_words,
    write_general,
)

from ..compiled import compiled

append_bytes = compiled(append_bytes)
append_fixed = compiled(append_fixed)
append_int = compiled(append_int)
fixed_words = compiled(fixed_words)
int_words = compiled(int_words)

_GUARD = 7


@exact_kernel
def append_general(out, at, value):
    """`write_general` with an array and an index."""
    return write_general(address_of_data(out) + at, value) - address_of_data(out)


def _text(append, *arguments, room=MAX_NUMBER):
    """Return what `append` writes from the third byte on, if it keeps to its room."""
    out = np.full(3 + room + 8, _GUARD, np.uint8)
    end = append(out, 3, *arguments)
    assert (out[:3] == _GUARD).all()
    assert (out[3 + room :] == _GUARD).all()
    return out[3:end].tobytes().decode()


def _fixed(value, decimals, **room):
    return _text(append_fixed, np.float64(value), decimals, **room)


def _printf(template, value):
    text = template % float(value)
    return "-nan" if text == "nan" and np.signbit(value) else text


def _awkward_numbers():
    """Float32 of every magnitude, ties, neighbours of ties, and special values."""
    rng = np.random.default_rng(5)
    ties = rng.integers(0, 10**7, 250) / 2.0 ** rng.integers(0, 12, 250)
    typical = rng.normal(size=250) * 10 ** rng.uniform(-7, 12, 250)
    with np.errstate(over="ignore"):
        powers = np.float32(10.0 ** np.arange(-45, 39))
    rounded = np.concatenate([ties, typical]).astype(np.float32)
    special = np.array([0.0, np.nan, np.inf, 1e-45, 3.4028235e38, 999999.5, 99999.95, 2**23 + 0.5], np.float32)
    numbers = np.concatenate(
        [
            rng.integers(0, 2**32, 400, dtype=np.uint32).view(np.float32),
            rounded,
            np.nextafter(rounded, np.float32(np.inf)),
            powers,
            np.nextafter(powers, np.float32(0.0)),
            special,
        ]
    )
    return np.concatenate([numbers, -numbers])


@pytest.mark.parametrize("decimals", [1, 2, 3, 5, 6])
def test_fixed_decimals_of_any_float32(decimals):
    for value in _awkward_numbers():
        assert _fixed(value, decimals) == _printf(f"%.{decimals}f", value)


def test_six_significant_digits_of_any_float32():
    for value in _awkward_numbers():
        assert _text(append_general, np.float64(value)) == _printf("%g", value)


@settings(deadline=None)  # the first call compiles
@given(value=st.floats(), decimals=st.sampled_from([2, 3, 5, 6]))
def test_any_double(value, decimals):
    assert _fixed(value, decimals, room=400) == _printf(f"%.{decimals}f", value)
    assert _text(append_general, value) == _printf("%g", value)


@settings(deadline=None)
@given(numerator=st.integers(0, 10**10), up=st.booleans())
def test_doubles_beside_ties(numerator, up):
    value = np.nextafter(numerator / 1000 + 0.0005, np.inf if up else -np.inf)
    assert _fixed(value, 3) == f"{value:.3f}"
    assert _text(append_general, value) == f"{value:g}"


@settings(deadline=None)
@given(value=st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-(10**9), 10**9)))
def test_integers(value):
    assert _text(append_int, value) == str(value)


def test_integers_of_every_length_and_type():
    for digits in range(19):
        for value in (10**digits, 10**digits - 1, -(10**digits)):
            assert _text(append_int, value) == str(value)
    for dtype in (np.int8, np.uint8, np.int16, np.int32):
        for limit in (np.iinfo(dtype).min, np.iinfo(dtype).max):
            assert _text(append_int, dtype(limit)) == str(limit)


def test_bytes_are_copied_as_they_are():
    text = np.frombuffer(b"any length of text will do, also this one", np.uint8)
    for n in (0, 1, 15, 16, 17, len(text)):
        assert _text(append_bytes, text[:n], room=n) == text[:n].tobytes().decode()


def _characters(word, length):
    return np.uint64(word).tobytes()[:length].decode()


def test_columns_of_words():
    values = np.concatenate([_awkward_numbers(), np.float32(np.random.default_rng(1).normal(90, 20, 1000))])
    n = len(values)
    words, lengths, signs = np.zeros(n, np.uint64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    fixed_words(values, n, 2, words, lengths, signs)
    for value, word, length, sign in zip(values, words, lengths, signs, strict=True):
        assert sign == (np.signbit(value) or np.isnan(value))
        if length:
            assert "-" * sign + _characters(word, length) == _printf("%.2f", value)
        else:
            ten_digits = abs(value) >= 99999.985
            tie = not np.isfinite(value) or abs(float(value)) * 100 % 1 == 0.5
            assert ten_digits or tie
    integers = np.array([0, 5, 99, 10**7, 10**8 - 1, 10**8, -1, 2**62])
    int_words(integers, len(integers), words, lengths)
    texts = [_characters(*pair) for pair in zip(words[:8], lengths[:8], strict=True)]
    assert texts == ["0", "5", "99", "10000000", "99999999", "", "", ""]
