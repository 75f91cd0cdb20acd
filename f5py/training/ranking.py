"""How well a score tells two states apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MOST_POINTS = 200


def area_under_curve(states: NDArray[np.bool_], scores: NDArray[np.floating]) -> float | None:
    """Area under the ROC curve: how often a methylated call has the higher score; ties count half.

    Returns
    -------
    float or None
        None if a state does not occur.
    """
    n, m = int(states.sum()), int((~states).sum())
    if not n or not m:
        return None
    _, which, count = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[which]
    return float((rank[states].sum() - n * (n + 1) / 2) / n / m)


def roc_points(states: NDArray[np.bool_], scores: NDArray[np.floating]) -> dict[str, list[float]]:
    """Some points of the ROC curve: rates of false and of true positives, ascending."""
    order = np.argsort(-scores, kind="stable")
    true = np.concatenate([[0], np.cumsum(states[order])])
    false = np.arange(len(true)) - true
    ends = np.append(np.flatnonzero(np.diff(scores[order])) + 1, len(order))
    points = np.concatenate([[0], ends])[:: max(len(ends) // _MOST_POINTS, 1)]
    points = np.unique(np.append(points, len(order)))
    return {
        "false_positive_rate": (false[points] / max(false[-1], 1)).round(5).tolist(),
        "true_positive_rate": (true[points] / max(true[-1], 1)).round(5).tolist(),
    }
