"""ROC curves, and the areas under them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MOST_POINTS = 200


def area_under_curve(states: NDArray[np.bool_], scores: NDArray[np.floating]) -> float | None:
    """Compute the area under the ROC curve, or None if a state does not occur."""
    return area_of_counts(*_counts(states, scores))


def area_of_counts(methylated: NDArray[np.integer], unmethylated: NDArray[np.integer]) -> float | None:
    """Compute the area under the ROC curve from counts by ascending score; ties count half."""
    n, m = int(methylated.sum()), int(unmethylated.sum())
    if not n or not m:
        return None
    lower = np.cumsum(unmethylated) - unmethylated
    return float((methylated * (lower + 0.5 * unmethylated)).sum() / n / m)


def roc_points(states: NDArray[np.bool_], scores: NDArray[np.floating]) -> dict[str, list[float]]:
    """Return points of the ROC curve: rates of false and true positives, ascending."""
    return roc_of_counts(*_counts(states, scores))


def roc_of_counts(methylated: NDArray[np.integer], unmethylated: NDArray[np.integer]) -> dict[str, list[float]]:
    """Return points of the ROC curve from counts by ascending score."""
    used = np.flatnonzero(methylated + unmethylated)[::-1]
    true = np.concatenate([[0], np.cumsum(methylated[used])])
    false = np.concatenate([[0], np.cumsum(unmethylated[used])])
    points = np.unique(np.append(np.arange(len(true))[:: max(len(used) // _MOST_POINTS, 1)], len(used)))
    return {
        "false_positive_rate": (false[points] / max(false[-1], 1)).round(5).tolist(),
        "true_positive_rate": (true[points] / max(true[-1], 1)).round(5).tolist(),
    }


def _counts(states: NDArray[np.bool_], scores: NDArray[np.floating]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count methylated and unmethylated calls by ascending score."""
    distinct, which = np.unique(scores, return_inverse=True)
    n = len(distinct)
    return np.bincount(which[states], minlength=n), np.bincount(which[~states], minlength=n)
