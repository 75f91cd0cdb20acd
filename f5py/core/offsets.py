"""Offsets of pieces that lie one after the other in an array."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def offsets_of(lengths: ArrayLike) -> NDArray[np.int64]:
    """Offsets of concatenated pieces of the given lengths; int64, one element longer than `lengths`."""
    pieces = np.asarray(lengths, np.int64)
    offsets = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum(pieces, out=offsets[1:])
    return offsets
