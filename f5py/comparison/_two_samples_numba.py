"""Jitted tests of whether two samples have the same distribution.

Kolmogorov and Smirnov: D is the greatest difference of the two cumulative distributions. For samples of n and m values
every order of all values is as probable as any other if the distributions are the same; an order is a path from (0, 0)
to (n, m), and the p-value the share of paths that reach ``|i / n - j / m| >= D`` somewhere. It is computed exactly, by
the recursion over the path's last step, if n times m is at most 40,000, else from Kolmogorov's asymptotic distribution
with Stephens' correction. Ties make the exact value conservative.

Mann and Whitney: U counts the pairs in which the first sample's value is the greater one, ties half. Its p-value is
that of the normal approximation, two-sided, with corrections for continuity and for ties.
"""

import math

import numpy as np

from f5py.core._turns_numba import counter, own_turns
from f5py.jit.kernel import exact_inner, exact_kernel

#: The exact distribution of D takes as many steps as the product of the sizes.
MOST_STEPS = 40_000
_MOST_TERMS = 100


@exact_inner
def _exact_tail(n, m, distance):
    """Probability that ``max |i * m - j * n|`` of a random path from (0, 0) to (n, m) is at least `distance`."""
    tail = np.empty(m + 1)
    tail[0] = 0.0
    for j in range(1, m + 1):
        tail[j] = 1.0 if tail[j - 1] == 1.0 or j * n >= distance else 0.0
    for i in range(1, n + 1):
        if i * m >= distance:
            tail[0] = 1.0
        for j in range(1, m + 1):
            if abs(i * m - j * n) >= distance:
                tail[j] = 1.0
            else:
                tail[j] = (i * tail[j] + j * tail[j - 1]) / (i + j)
    return tail[m]


@exact_inner
def _asymptotic_tail(n, m, statistic):
    """Kolmogorov's distribution at the statistic with Stephens' correction for the sizes."""
    size = math.sqrt(n * m / (n + m))
    x = (size + 0.12 + 0.11 / size) * statistic
    if x < 0.2:
        return 1.0
    total = 0.0
    sign = 1.0
    for i in range(1, _MOST_TERMS):
        term = math.exp(-2.0 * i * i * x * x)
        total += sign * term
        sign = -sign
        if term < 1e-18 * total:
            break
    return min(max(2.0 * total, 0.0), 1.0)


@exact_inner
def compare_sorted(a, b, result):
    """Fill `result` with D, its p-value, U of the first sample and its p-value; `a` and `b` ascend.

    Parameters
    ----------
    a, b : float64, shape (n,), (m,)
        Samples, ascending, without NaN.
    result : float64, shape (4,)
        Filled.
    """
    n, m = a.shape[0], b.shape[0]
    i = j = 0
    greatest = 0
    rank_sum = 0.0
    ties = 0.0
    while i < n or j < m:
        value = b[j] if i == n or (j < m and b[j] < a[i]) else a[i]
        from_a = i
        from_b = j
        while i < n and a[i] == value:
            i += 1
        while j < m and b[j] == value:
            j += 1
        equal = i - from_a + j - from_b
        if equal == 0:
            break  # not a number, which equals nothing; callers leave them out
        rank_sum += (i - from_a) * (from_a + from_b + 0.5 * (equal + 1))
        ties += float(equal) ** 3 - equal
        greatest = max(greatest, abs(i * m - j * n))
    statistic = greatest / (n * m)
    result[0] = statistic
    result[1] = _exact_tail(n, m, greatest) if n * m <= MOST_STEPS else _asymptotic_tail(n, m, statistic)
    u = rank_sum - 0.5 * n * (n + 1)
    total = n + m
    variance = n * m / 12.0 * (total + 1 - ties / (total * (total - 1.0))) if total > 1 else 0.0
    result[2] = u
    if variance <= 0.0:
        result[3] = 1.0
    else:
        z = max(abs(u - 0.5 * n * m) - 0.5, 0.0) / math.sqrt(variance)
        result[3] = math.erfc(z / math.sqrt(2.0))


@exact_inner
def _describe(values, result):
    """Fill `result` with mean, median and standard deviation of ascending values."""
    n = values.shape[0]
    mean = 0.0
    for i in range(n):
        mean += values[i]
    mean /= n
    squares = 0.0
    for i in range(n):
        squares += (values[i] - mean) ** 2
    result[0] = mean
    result[1] = 0.5 * (values[(n - 1) // 2] + values[n // 2])
    result[2] = math.sqrt(squares / (n - 1)) if n > 1 else 0.0


@exact_kernel
def compare_groups(turn, groups, first, middle, end, values, described, tested):
    """Compare the samples of every group.

    Parameters
    ----------
    groups : int64
        Those to compare, by turns.
    first, middle, end : int64, shape (n_groups,)
        Group g has the first sample in ``first[g]:middle[g]`` and the second in ``middle[g]:end[g]``.
    values : float64, shape (n,)
        Sorted within each sample in place.
    described : float64, shape (n_groups, 2, 3)
        Filled with `_describe` of both samples.
    tested : float64, shape (n_groups, 4)
        Filled as by `compare_sorted`.
    """
    for i in own_turns(counter(turn), groups.shape[0]):
        g = groups[i]
        a = values[first[g] : middle[g]]
        b = values[middle[g] : end[g]]
        a.sort()
        b.sort()
        _describe(a, described[g, 0])
        _describe(b, described[g, 1])
        compare_sorted(a, b, tested[g])
