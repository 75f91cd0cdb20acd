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

import numpy as np
from numpy.typing import NDArray


def q_values(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Benjamini's and Hochberg's adjusted p-values, shape (n,)."""
    n = len(p_values)
    order = np.argsort(p_values, kind="stable")[::-1]
    adjusted = np.empty(n)
    adjusted[order] = np.minimum.accumulate(p_values[order] * n / np.arange(n, 0, -1))
    return np.minimum(adjusted, 1.0)
