"""Conversion of normalized levels to picoampere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.errors import PoreModelError
from f5py.pore_model.model import PoreModel

#: Limit between normalized levels and picoampere.
_LARGEST_UNIT = 10.0


def are_units_of_spread(levels: NDArray[np.floating]) -> bool:
    """Return whether levels are normalized, not in picoampere."""
    return float(np.median(np.abs(levels))) < _LARGEST_UNIT


def like_builtin(
    file: str, k: int, levels: NDArray[np.float64], like: PoreModel | None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Rescale normalized levels to a built-in model's mean and spread, and return its standard deviations.

    K-mers of direct RNA may be spelled in either direction; the one that fits better is used. Raises `PoreModelError`
    if there is no model of the same k.

    Parameters
    ----------
    file : str
        For messages.
    levels : float64, shape (4 ** k,)
        In any unit, in rank order.
    like : PoreModel or None
        Built-in model of the same chemistry.

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
    """Reorder levels for k-mers spelled in the other direction."""
    return np.ascontiguousarray(levels.reshape((4,) * k).transpose(range(k)[::-1])).ravel()


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def rank_levels(levels: NDArray[np.floating], like: PoreModel) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return normally distributed levels in the order of `levels`, with the mean and spread of a model.

    In pA, float32; the standard deviation is the model's median.
    """
    from statistics import NormalDist

    n = len(levels)
    _, place, count = np.unique(levels, return_inverse=True, return_counts=True)
    share = (np.cumsum(count) - count / 2)[place] / n
    distribution = NormalDist(float(like.level_mean.mean()), float(like.level_mean.std()))
    mean = np.array(list(map(distribution.inv_cdf, share.tolist())))
    return mean.astype(np.float32), np.full(n, np.median(like.level_stdv), np.float32)
