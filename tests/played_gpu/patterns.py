"""Memory that holds a pattern, of which only the pages that are written take time and room."""

from __future__ import annotations

import ctypes
import mmap
import os
from functools import cache

import numpy as np
from numpy.typing import NDArray

#: Bytes of a pattern that are there; memory has them again and again.
_PIECE = 1 << 22
#: Less memory than this is rather filled.
_LITTLE = 1 << 16
_MAP_FIXED = 0x10
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_longlong,
]  # fmt: skip


@cache
def _piece(byte: int) -> int:
    """Return the descriptor of a file in memory that has this byte everywhere."""
    descriptor = os.memfd_create("pattern")
    os.write(descriptor, bytes([byte]) * _PIECE)
    return descriptor


def filled(size: int, byte: int) -> NDArray[np.uint8]:
    """Return as many bytes, all of this value, in memory of their own."""
    if size < _LITTLE:
        return np.full(size, byte, np.uint8)
    made = np.frombuffer(mmap.mmap(-1, size), np.uint8)  # which is given back with the array
    for first in range(0, size, _PIECE):
        length = min(_PIECE, size - first)
        protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | _MAP_FIXED
        place = made.ctypes.data + first
        if _libc.mmap(place, length, protection, flags, _piece(byte), 0) != place:
            raise MemoryError(os.strerror(ctypes.get_errno()))
    return made
