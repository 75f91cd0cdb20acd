"""Levels in units of their own spread, as some pore models have them, become picoampere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.errors import PoreModelError
from f5py.pore_model.model import PoreModel

#: Levels in units of spread are about 0; currents are some tens of picoampere.
_LARGEST_UNIT = 10.0


def are_units_of_spread(levels: NDArray[np.floating]) -> bool:
    """Return whether levels cannot be picoampere."""
    return float(np.median(np.abs(levels))) < _LARGEST_UNIT


def like_builtin(
    file: str, k: int, levels: NDArray[np.float64], like: PoreModel | None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Give levels the mean and the spread of a built-in model, if they need it, and its standard deviations.

    K-mers of direct RNA may be spelled in either direction: the one that fits the built-in model better is taken.
    Raises `PoreModelError` if there is no such model of the same k.

    Parameters
    ----------
    file : str
        For messages.
    levels : float64, shape (4 ** k,)
        In pA or in any other unit, in the order of the k-mers' ranks.
    like : PoreModel or None
        The built-in model of the same chemistry.

    Returns
    -------
    level_mean, level_stdv : float32, shape (4 ** k,)
        In pA.
    """
    if like is None or like.k != k:
        known = "there is no built-in model of this chemistry" if like is None else f"the built-in one has k = {like.k}"
        raise PoreModelError(
            f"{file}: has no standard deviations of its {k}-mers, and {known} to take them from; give a file with the "
            "columns kmer, level_mean and level_stdv, in picoampere"
        )
    expected = like.level_mean.astype(np.float64)
    if not are_units_of_spread(levels):
        return levels.astype(np.float32), like.level_stdv
    reverse = reverse_kmers(levels, k)
    if _correlation(reverse, expected) > _correlation(levels, expected):
        levels = reverse
    scaled = (levels - levels.mean()) / levels.std() * expected.std() + expected.mean()
    return scaled.astype(np.float32), like.level_stdv


def reverse_kmers(levels: NDArray, k: int) -> NDArray:
    """Levels by k-mers that are spelled in the other direction."""
    return np.ascontiguousarray(levels.reshape((4,) * k).transpose(range(k)[::-1])).ravel()


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def by_order(levels: NDArray[np.floating], like: PoreModel) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Levels of which only the order is known: normally distributed, with the mean and spread of another model's.

    In pA, float32; the standard deviation is the median of the other model's.
    """
    from statistics import NormalDist

    n = len(levels)
    _, place, count = np.unique(levels, return_inverse=True, return_counts=True)
    share = (np.cumsum(count) - count / 2)[place] / n
    distribution = NormalDist(float(like.level_mean.mean()), float(like.level_mean.std()))
    mean = np.array(list(map(distribution.inv_cdf, share.tolist())))
    return mean.astype(np.float32), np.full(n, np.median(like.level_stdv), np.float32)
