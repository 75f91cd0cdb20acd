"""Codes renumbered in the order of their first occurrence, as dictionaries of columns are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def numbered(codes: NDArray[np.int32], n_codes: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Renumber the codes that occur, in the order of their first occurrence.

    Parameters
    ----------
    codes : int32
        Each is below `n_codes`.

    Returns
    -------
    numbers : int32
        Of each element.
    used : int32
        The code that a number stands for.
    """
    from f5py.io.arrow._numbering_numba import renumber

    numbers = np.empty(len(codes), np.int32)
    used = np.empty(min(n_codes, len(codes)), np.int32)
    n_used = renumber(codes, numbers, np.full(n_codes, -1, np.int32), used)
    return numbers, used[:n_used]
