"""Packing of intervals into rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def pack_rows(start: NDArray[np.int64], end: NDArray[np.int64], gap: int) -> NDArray[np.int64]:
    """Return the first row with room for each half-open interval, at least `gap` from others."""
    rows = np.zeros(len(start), np.int64)
    taken: list[int] = []
    for i in np.argsort(start, kind="stable").tolist():
        row = next((n for n, last in enumerate(taken) if last + gap <= start[i]), len(taken))
        taken[row : row + 1] = [int(end[i])]
        rows[i] = row
    return rows
