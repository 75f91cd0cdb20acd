"""Cache-aligned arrays for kernels."""

from __future__ import annotations

import numpy as np

from f5py.jit.c_memory import address_of_data
from f5py.jit.kernel import exact_inner

#: Floats of a cache line.
_LINE = 16


@exact_inner
def aligned_floats(n):
    """Allocate `n` float32 aligned to a cache line, which vector accesses then never cross."""
    room = np.empty(n + _LINE, np.float32)
    first = -(address_of_data(room) >> 2) & (_LINE - 1)
    return room[first : first + n]
