"""Comparison of two samples of events at every position of a strand, or for every k-mer.

Kolmogorov-Smirnov test: D is the greatest difference of the cumulative distributions. Under the null hypothesis all
orders of the n + m values, paths from (0, 0) to (n, m), are equally probable. The p-value is the share of paths with
``|i / n - j / m| >= D`` somewhere: exact for n * m up to 40,000, by recursion over the last step, else asymptotic with
Stephens' correction. Ties make the exact value conservative.

Mann-Whitney test: U counts the pairs in which the first sample's value is greater, ties half. The p-value is two-sided,
by the normal approximation with corrections for continuity and ties.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.comparison.event_rows import ReadLevels
from f5py.io.bounds import POSITION_BITS
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.threads.pool import WorkerPool

_FACTS = ("mean", "median", "sd")
_DIGITS = 5
_LOWEST, _HIGHEST = -308, 308
#: Correctly rounded: processors and versions of NumPy differ in the last bit of their powers.
_POWERS = np.array([float(f"1e{exponent}") for exponent in range(_LOWEST, _HIGHEST + 1)])
#: Largest n * m of the exact distribution of D.
MOST_STEPS = 40_000
_MOST_TERMS = 100


@exact_inner
def _exact_tail(n, m, distance):
    """Compute the probability of ``max |i * m - j * n| >= distance`` on a path from (0, 0) to (n, m)."""
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
    """Compute the tail of Kolmogorov's distribution with Stephens' correction."""
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
    """Fill `result` with D, U of the first sample, each before its p-value; `a` and `b` are sorted."""
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
            break  # NaN, which callers exclude
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
    """Fill `result` with mean, median and standard deviation of sorted values."""
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
def compare_groups(queue, groups, first, middle, end, values, described, tested):
    """Compare the samples ``first:middle`` and ``middle:end`` of every group.

    Parameters
    ----------
    values : float64, shape (n,)
        Sorted within each sample in place.
    described, tested : float64, shape (n_groups, 2, 3), (n_groups, 4)
        As by `_describe` and `compare_sorted`.
    """
    for i in claimed_indices(work_counter(queue), groups.shape[0]):
        g = groups[i]
        a = values[first[g] : middle[g]]
        b = values[middle[g] : end[g]]
        a.sort()
        b.sort()
        _describe(a, described[g, 0])
        _describe(b, described[g, 1])
        compare_sorted(a, b, tested[g])


def compare_samples(
    samples: tuple[ReadLevels, ReadLevels], contigs: list[str], kmers: list[str], *, by_kmer: bool, min_coverage: int,
    pool: WorkerPool,
) -> dict[str, Any]:  # fmt: skip
    """Compare two samples; return columns by contig, position and strand, or by k-mer.

    Groups with fewer than `min_coverage` values in either sample are left out. Levels are in pA, by the group's mean
    model level and standard deviation, dwell times in seconds. Standard deviations have the divisor n - 1.
    """
    columns_of: Any = zip(*samples, strict=True)
    joined = ReadLevels(*(np.concatenate(pair) for pair in columns_of))
    sample = np.repeat([0, 1], [len(one.place) for one in samples])
    key = joined.kmer.astype(np.int64) if by_kmer else joined.place
    order = np.lexsort((sample, key))
    groups, first = np.unique(key[order], return_index=True)
    end = np.append(first[1:], len(order))
    middle = first + np.add.reduceat(sample[order] == 0, first) if len(order) else first
    kept = (middle - first >= min_coverage) & (end - middle >= min_coverage)
    groups, first, middle, end = groups[kept], first[kept], middle[kept], end[kept]
    example = order[first]
    columns = _places(groups, joined, example, contigs, kmers, by_kmer)
    columns |= {"c1_reads": middle - first, "c2_reads": end - middle}

    # Unscaled tables have the model scaled to each read: use the group's mean.
    mean, stdv = (_sums(values[order], first, end) / (end - first) for values in (joined.model_mean, joined.model_stdv))
    for name, values in (("intensity", joined.level), ("dwell", joined.dwell)):
        described, tested = np.empty((len(groups), 2, 3)), np.empty((len(groups), 4))
        if len(groups):
            pool.run(compare_groups, np.arange(len(groups)), first, middle, end, values[order], described, tested)
        if name == "intensity":
            described = described * stdv[:, None, None]
            described[:, :, :2] += mean[:, None, None]
        for s in (0, 1):
            for i, fact in enumerate(_FACTS):
                columns[f"c{s + 1}_{fact}_{name}"] = _rounded(described[:, s, i])
        for i, test in ((0, "KS"), (2, "MW")):
            columns[f"{test}_{name}_statistic"] = _rounded(tested[:, i])
            columns[f"{test}_{name}_pvalue"] = _rounded(tested[:, i + 1])
            columns[f"{test}_{name}_qvalue"] = _rounded(q_values(tested[:, i + 1]))
    if not by_kmer:
        return columns
    by_name = np.argsort(columns["kmer"], kind="stable")
    return {name: np.asarray(values)[by_name] for name, values in columns.items()}


def _places(
    groups: NDArray[np.int64], joined: ReadLevels, example: NDArray[np.int64], contigs: list[str], kmers: list[str],
    by_kmer: bool,
) -> dict[str, Any]:  # fmt: skip
    """Make the columns that identify a group."""
    kmer = np.array(kmers, object)[joined.kmer[example]]
    if by_kmer:
        return {"kmer": kmer}
    return {
        "contig": np.array(contigs, object)[groups >> (POSITION_BITS + 1)],
        "position": groups & (1 << POSITION_BITS) - 1,
        "strand": np.where(groups >> POSITION_BITS & 1, "-", "+").astype(object),
        "kmer": kmer,
    }


def _sums(values: NDArray[np.float64], first: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum ``values[first:end]`` for each of several disjoint ranges."""
    bounds = np.stack([first, end], axis=1).ravel()
    return np.add.reduceat(np.append(values, 0.0), bounds)[::2]


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to significant digits."""
    size = np.abs(values)
    usable = np.isfinite(size) & (size >= _POWERS[1])
    exponent = np.searchsorted(_POWERS, np.where(usable, size, 1.0), side="right") - 1 + _LOWEST
    decimals = np.minimum(_DIGITS - 1 - exponent, _HIGHEST)
    scale = _POWERS[np.abs(decimals) - _LOWEST]
    with np.errstate(over="ignore"):
        rounded = np.where(decimals >= 0, np.rint(values * scale) / scale, np.rint(values / scale) * scale)
    return np.where(usable & np.isfinite(rounded), rounded, values)


def q_values(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Adjust p-values for false discovery rate (Benjamini and Hochberg)."""
    n = len(p_values)
    order = np.argsort(p_values, kind="stable")[::-1]
    adjusted = np.empty(n)
    adjusted[order] = np.minimum.accumulate(p_values[order] * n / np.arange(n, 0, -1))
    return np.minimum(adjusted, 1.0)
