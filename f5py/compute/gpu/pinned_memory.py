"""Pinned host memory."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from f5py.core.large_arrays import private_memory

_PAGE, _ALIGNMENT = 4096, 64
#: So many threads take so many bytes each time from the system.
_TAKING, _TAKEN = 4, 8 << 20

#: What could not be taken from a device.
_never_freed: list[NDArray[np.uint8]] = []


def room(count: int, dtype: np.dtype) -> int:
    """Size of an array rounded up to the alignment."""
    return -(-count * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT


class PinnedMemory:
    """A block of pinned host memory, registered rather than allocated by CUDA, which takes three times as long."""

    def __init__(self, size: int) -> None:
        import cupy

        size = max(-(-size // _PAGE), 1) * _PAGE
        # private, as shared memory has small pages only; and a child process must not have it, or what is written next
        # would go to a copy that the device does not know
        held = np.frombuffer(private_memory(size, "MADV_DONTFORK"), np.uint8)
        self._bytes: NDArray[np.uint8] | None = None
        self._used = 0
        _take_from_system(held)
        cupy.cuda.runtime.hostRegister(held.ctypes.data, size, 0)
        self._bytes = held
        self._unregister = cupy.cuda.runtime.hostUnregister  # whoever collects garbage may be importing something

    def take(self, count: int, dtype: np.dtype) -> NDArray:
        """Allocate an array in the block."""
        assert self._bytes is not None
        first = self._used
        self._used += room(count, dtype)
        return self._bytes[first : first + count * dtype.itemsize].view(dtype)

    def close(self) -> None:
        """Unregister the memory; the last array in it frees it. May be called twice."""
        held, self._bytes = self._bytes, None
        if held is None:
            return
        try:
            self._unregister(held.ctypes.data)
        except Exception:  # a lost device; other memory at this address could not be registered
            _never_freed.append(held)

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()


def _take_from_system(memory: NDArray[np.uint8]) -> None:
    """Touch all pages in several threads: CUDA would do so in one, holding the GIL."""
    first, size = memory.ctypes.data, len(memory)
    with ThreadPoolExecutor(_TAKING, "f5py-pages") as threads:
        for at in range(0, size, _TAKEN):
            threads.submit(ctypes.memset, first + at, 0, min(_TAKEN, size - at))
