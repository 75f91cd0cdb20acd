"""Rounding of what the comparison of two samples prints."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from f5py.comparison.samples import _rounded


@given(st.lists(st.floats(min_value=1e-300, max_value=1e300), min_size=1, max_size=20), st.sampled_from([1, -1]))
def test_five_digits_as_python_rounds(values: list[float], sign: int):
    found = _rounded(np.array(values) * sign)
    expected = np.array([float(f"{value * sign:.4e}") for value in values])
    np.testing.assert_allclose(found, expected, rtol=1.2e-4)  # ties may go the other way
    assert (
        np.mean([len(f"{value:.15g}".strip("-0.").split("e")[0].replace(".", "").rstrip("0")) <= 5 for value in found])
        == 1
    )


def test_what_has_no_digits_stays():
    values = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324])
    np.testing.assert_array_equal(_rounded(values), values)


def test_powers_of_ten_keep_their_size():
    values = np.array([1.0, 10.0, 0.1, 1e-5, 123456.0, 99999.6, 0.001234565])
    np.testing.assert_array_equal(_rounded(values), [1.0, 10.0, 0.1, 1e-5, 123460.0, 100000.0, 0.0012346])
