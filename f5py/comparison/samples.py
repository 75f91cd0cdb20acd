"""Two samples of events, compared group by group: at every position of a strand, or for every k-mer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.comparison.event_rows import Levels
from f5py.io.bounds import POSITION_BITS
from f5py.threads.pool import WorkerPool

_FACTS = ("mean", "median", "sd")
_DIGITS = 5
_LOWEST, _HIGHEST = -308, 308
#: Powers of ten, each the closest number to it.
_POWERS = np.array([float(f"1e{exponent}") for exponent in range(_LOWEST, _HIGHEST + 1)])


def compare_samples(
    samples: tuple[Levels, Levels], contigs: list[str], kmers: list[str], *, by_kmer: bool, min_coverage: int,
    pool: WorkerPool,
) -> dict[str, Any]:  # fmt: skip
    """Compare two samples.

    Parameters
    ----------
    by_kmer : bool
        Compare all positions with the same k-mer on the read's strand together.
    min_coverage : int
        Groups with fewer values in either sample are left out.

    Returns
    -------
    dict of str to list or array
        Columns, ordered by contig, position and strand, or by k-mer. Levels are in pA: those of the groups' mean model
        level and standard deviation; dwell times in seconds; standard deviations have n - 1 for their divisor.
    """
    columns_of: Any = zip(*samples, strict=True)
    joined = Levels(*(np.concatenate(pair) for pair in columns_of))
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

    # Tables that are not scaled have a model scaled to each read: the mean of these is what the group is shown at.
    mean, stdv = (_sums(values[order], first, end) / (end - first) for values in (joined.model_mean, joined.model_stdv))
    for name, values in (("intensity", joined.level), ("dwell", joined.dwell)):
        described, tested = _compared(values[order], first, middle, end, pool)
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
    groups: NDArray[np.int64], joined: Levels, example: NDArray[np.int64], contigs: list[str], kmers: list[str],
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
    """Sum ``values[first:end]`` for stretches that do not overlap."""
    bounds = np.stack([first, end], axis=1).ravel()
    return np.add.reduceat(np.append(values, 0.0), bounds)[::2]


def _compared(
    values: NDArray[np.float64], first: NDArray[np.int64], middle: NDArray[np.int64], end: NDArray[np.int64],
    pool: WorkerPool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
    from f5py.comparison._two_samples_numba import compare_groups

    n = len(first)
    described, tested = np.empty((n, 2, 3)), np.empty((n, 4))
    if n:
        pool.run(compare_groups, np.arange(n), first, middle, end, values, described, tested)
    return described, tested


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """To significant digits, so that the text is short.

    Powers of ten come from a table: processors, and versions of NumPy, differ in the last bit of theirs.
    """
    size = np.abs(values)
    usable = np.isfinite(size) & (size >= _POWERS[1])
    exponent = np.searchsorted(_POWERS, np.where(usable, size, 1.0), side="right") - 1 + _LOWEST
    decimals = np.minimum(_DIGITS - 1 - exponent, _HIGHEST)
    scale = _POWERS[np.abs(decimals) - _LOWEST]
    with np.errstate(over="ignore"):
        rounded = np.where(decimals >= 0, np.rint(values * scale) / scale, np.rint(values / scale) * scale)
    return np.where(usable & np.isfinite(rounded), rounded, values)


def q_values(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Benjamini's and Hochberg's adjusted p-values, shape (n,): the least false discovery rate at which each counts."""
    n = len(p_values)
    order = np.argsort(p_values, kind="stable")[::-1]
    adjusted = np.empty(n)
    adjusted[order] = np.minimum.accumulate(p_values[order] * n / np.arange(n, 0, -1))
    return np.minimum(adjusted, 1.0)
