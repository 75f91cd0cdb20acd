"""Arrays of which most is never touched."""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import DTypeLike, NDArray


def sparse_array(n: int, dtype: DTypeLike) -> NDArray:
    """Make an array of n zeros that takes memory only where it is touched, and gives it back when it goes.

    An array of the C library's memory would be made of what earlier arrays have touched.
    """
    kind = np.dtype(dtype)
    if n == 0:
        return np.empty(0, kind)
    try:
        return np.frombuffer(mmap.mmap(-1, int(n) * kind.itemsize), kind)
    except OSError:  # the system gives no such memory; there may be some of the other kind
        return np.zeros(n, kind)
