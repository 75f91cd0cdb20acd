"""Numbers as text, against printf."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.io._format_numba import MAX_NUMBER, append_fixed, append_int


def _fixed(value, decimals):
    out = np.zeros(64, np.uint8)
    return out[: append_fixed(out, 0, np.float64(value), decimals)].tobytes().decode()


@pytest.mark.parametrize("decimals", [2, 3, 5, 6])
@settings(deadline=None)  # the first call compiles
@given(value=st.floats(-1e6, 1e6, width=32))
def test_floats_as_printf_writes_them(decimals, value):
    text = _fixed(value, decimals)
    assert text == f"{value:.{decimals}f}"
    assert len(text) <= MAX_NUMBER


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.125, "0.12"),
        (0.375, "0.38"),
        (-0.125, "-0.12"),
        (2.5, "2.50"),
        (-0.0, "-0.00"),
        (-0.001, "-0.00"),
        (np.inf, "inf"),
        (-np.inf, "-inf"),
        (np.nan, "nan"),
        (99.999, "100.00"),
    ],
)
def test_ties_signs_and_non_finite(value, text):
    assert _fixed(value, 2) == text


@settings(deadline=None)
@given(value=st.integers(-(2**62), 2**62))
def test_integers(value):
    out = np.zeros(64, np.uint8)
    assert out[: append_int(out, 0, value)].tobytes().decode() == str(value)
