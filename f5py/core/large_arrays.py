"""Large arrays with memory of their own, recycled during a run."""

import ctypes
import mmap
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Smaller arrays are not recycled.
_LEAST_BYTES = 1 << 20
_PAGE = 2 << 20
#: Allocations, of about three batches, that determine the recent peak.
_N_RECENT = 9


def private_memory(size: int, *advice: str) -> mmap.mmap:
    """Map anonymous memory, with huge pages and other `advice` if possible; raise `OSError`."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for name in ("MADV_HUGEPAGE", *advice):
        with suppress(AttributeError, OSError):
            memory.madvise(getattr(mmap, name))
    return memory


class _Recycler:
    """Recycler of large arrays' memory within `recycling` contexts.

    The kernel's clearing of new memory takes as long as decoding a batch's samples several times. It holds at most the
    recent peak of arrays in use.
    """

    def __init__(self) -> None:
        # finalizers append at any time, even in the thread with the lock
        self._kept: deque[mmap.mmap] = deque()
        self._lock = threading.Lock()
        self._made = 0  # bytes of arrays in use and of cached memory
        self._recent: deque[int] = deque(maxlen=_N_RECENT)  # bytes in use at each allocation
        self._inside = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if self._inside == 0:
                self._kept = deque()  # later returns go to the old one
                self._made = 0
                self._recent.clear()

    def array(self, n: int, dtype: DTypeLike) -> NDArray:
        kind = np.dtype(dtype)
        size = int(n) * kind.itemsize
        if not self._inside or size < _LEAST_BYTES:
            return np.empty(n, kind)
        try:
            with self._lock:
                memory, kept = self._take(size), self._kept
        except OSError:
            return np.empty(n, kind)
        loan = (ctypes.c_byte * len(memory)).from_buffer(memory)
        weakref.finalize(loan, kept.append, memory).atexit = False
        return np.frombuffer(memoryview(loan), kind, n)

    def _take(self, size: int) -> mmap.mmap:
        """Return the smallest cached memory of sufficient size, or new memory."""
        kept = []
        with suppress(IndexError):
            while True:
                kept.append(self._kept.popleft())
        kept.sort(key=len)
        try:
            at = next((i for i, memory in enumerate(kept) if len(memory) >= size), None)
            if at is not None:
                taken = kept.pop(at)
            else:
                taken = private_memory((size + size // 8) // _PAGE * _PAGE + _PAGE)
                self._made += len(taken)
            self._recent.append(self._made - sum(map(len, kept)))
            while kept and self._made > max(self._recent):
                self._made -= len(kept.pop(0))
        finally:
            self._kept.extend(kept)
        return taken


_recycler = _Recycler()
#: Context in which `recycled_array` reuses memory.
recycling = _recycler.__call__
#: Allocate an uninitialized array of n elements, in recycled memory if there is any.
recycled_array = _recycler.array
