"""Two-sample tests against scipy's."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import scipy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from f5py.comparison.samples import _rounded, compare_sorted, q_values

from ..compiled import compiled

compare_sorted = compiled(compare_sorted)

_SAMPLES = st.lists(st.integers(0, 15), min_size=1, max_size=25)


class Found(NamedTuple):
    ks_statistic: float
    ks_pvalue: float
    u_statistic: float
    u_pvalue: float


def two_sample_tests(first: ArrayLike, second: ArrayLike) -> Found:
    result = np.empty(4)
    compare_sorted(np.sort(np.asarray(first, np.float64)), np.sort(np.asarray(second, np.float64)), result)
    return Found(*result.tolist())


@settings(deadline=None)
@given(_SAMPLES, _SAMPLES)
def test_any_two_samples_with_ties(a: list[int], b: list[int]):
    found = two_sample_tests(a, b)
    try:
        ks = scipy.stats.ks_2samp(a, b, method="exact")
    except RuntimeWarning:  # scipy does not get through with some, such as 00000 and 00001
        assume(False)
    assert found.ks_statistic == pytest.approx(ks.statistic)
    assert found.ks_pvalue == pytest.approx(ks.pvalue)
    assert found.u_statistic == scipy.stats.mannwhitneyu(a, b).statistic
    if len(set(a + b)) > 1:
        # scipy subtracts the correction even where U is its mean
        expected = scipy.stats.mannwhitneyu(a, b, method="asymptotic").pvalue
        assert found.u_pvalue == pytest.approx(min(expected, 1))
    else:
        assert found.u_pvalue == 1


@pytest.mark.parametrize(("n", "m", "shift"), [(30, 40, 2.5), (200, 190, 1.2), (150, 260, 0.0), (11, 3000, 0.3)])
def test_exact_values_are_right_where_they_are_tiny(n: int, m: int, shift: float):
    rng = np.random.default_rng(n)
    a, b = rng.normal(0, 1, n), rng.normal(shift, 1, m)
    found = two_sample_tests(a, b)
    expected = scipy.stats.ks_2samp(a, b, method="exact")
    assert found.ks_pvalue == pytest.approx(expected.pvalue, rel=1e-8)
    assert found.u_pvalue == pytest.approx(scipy.stats.mannwhitneyu(a, b, method="asymptotic").pvalue, rel=1e-9)


@pytest.mark.parametrize("shift", [0.0, 0.05, 0.15, 0.3])
def test_large_samples_are_near_the_exact_value(shift: float):
    rng = np.random.default_rng(8)
    a, b = rng.normal(0, 1, 700), rng.normal(shift, 1, 900)
    found = two_sample_tests(a, b)
    expected = scipy.stats.ks_2samp(a, b, method="exact")
    assert found.ks_statistic == pytest.approx(expected.statistic)
    assert np.log(found.ks_pvalue) == pytest.approx(np.log(expected.pvalue), abs=0.1)


def test_q_values_are_those_of_benjamini_and_hochberg():
    p = np.random.default_rng(1).random(500) ** 3
    p[:3] = 0, 1, 1
    np.testing.assert_allclose(q_values(p), scipy.stats.false_discovery_control(p))
    assert len(q_values(np.empty(0))) == 0


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
