"""Arrays whose vectors do not lie across the lines of a cache."""

from __future__ import annotations

import numpy as np

from f5py.jit.c_memory import address_of_data
from f5py.jit.kernel import exact_inner

#: Floats of a cache line, which are those of a vector.
_LINE = 16


@exact_inner
def aligned_floats(n):
    """Make an array of `n` float32 that begins with a cache line; what lies across two takes twice the time."""
    room = np.empty(n + _LINE, np.float32)
    first = -(address_of_data(room) >> 2) & (_LINE - 1)
    return room[first : first + n]
