"""Intervals packed into rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def packed(start: NDArray[np.int64], end: NDArray[np.int64], gap: int) -> NDArray[np.int64]:
    """Find the first row in which each interval has room.

    Parameters
    ----------
    start, end : int64, shape (n,)
        Half-open intervals.
    gap : int
        Least distance between intervals of a row.

    Returns
    -------
    int64, shape (n,)
    """
    rows = np.zeros(len(start), np.int64)
    taken: list[int] = []
    for i in np.argsort(start, kind="stable").tolist():  # as many as a figure has reads or genes
        row = next((n for n, last in enumerate(taken) if last + gap <= start[i]), len(taken))
        taken[row : row + 1] = [int(end[i])]
        rows[i] = row
    return rows
