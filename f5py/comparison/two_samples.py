"""Tests of whether two samples have the same distribution.

Kolmogorov and Smirnov: D is the greatest difference of the two cumulative distributions. For samples of n and m values
every order of all values is as probable as any other if the distributions are the same; an order is a path from (0, 0)
to (n, m), and the p-value the share of paths that reach ``|i / n - j / m| >= D`` somewhere. It is computed exactly, by
the recursion over the path's last step, if n times m is at most 40,000, else from Kolmogorov's asymptotic distribution
with Stephens' correction. Ties make the exact value conservative.

Mann and Whitney: U counts the pairs in which the first sample's value is the greater one, ties half. Its p-value is
that of the normal approximation, two-sided, with corrections for continuity and for ties.

Of many tests, q-values are those of Benjamini and Hochberg: the smallest false discovery rate at which a test counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class TwoSampleTests(NamedTuple):
    """Statistics and p-values of both tests."""

    ks_statistic: float
    ks_pvalue: float
    u_statistic: float
    u_pvalue: float


def two_sample_tests(first: ArrayLike, second: ArrayLike) -> TwoSampleTests:
    """Compare two samples.

    Parameters
    ----------
    first, second : array_like of float
        One or more values each.

    Raises
    ------
    ValueError
        A sample is empty, or has a value that is not a number.
    """
    from f5py.comparison._two_samples_numba import compare_sorted

    a, b = (np.sort(np.asarray(values, np.float64)) for values in (first, second))
    if not len(a) or not len(b):
        raise ValueError("both samples need values")
    if np.isnan(a[-1]) or np.isnan(b[-1]):
        raise ValueError("a value is not a number (NaN)")
    result = np.empty(4)
    compare_sorted(a, b, result)
    return TwoSampleTests(*result.tolist())


def q_values(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Benjamini's and Hochberg's adjusted p-values, shape (n,)."""
    n = len(p_values)
    order = np.argsort(p_values, kind="stable")[::-1]
    adjusted = np.empty(n)
    adjusted[order] = np.minimum.accumulate(p_values[order] * n / np.arange(n, 0, -1))
    return np.minimum(adjusted, 1.0)
