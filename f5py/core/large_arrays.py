"""Large arrays with memory of their own."""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Smaller arrays are made of the C library's memory.
_LEAST_BYTES = 1 << 20
#: Memory is asked for in pages of this size.
_PAGE = 2 << 20
#: So many pieces of memory are kept for the next arrays, at most.
_N_KEPT = 2


def _memory(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


class _Recycler:
    """Keeps the memory of large arrays for the next ones, while anybody is inside of `recycling`.

    The system clears what it gives, which for the samples of a batch takes as long as to decode them three times.
    """

    def __init__(self) -> None:
        # without a lock: memory comes back whenever an array goes, which may be while another one is made
        self._kept: deque[mmap.mmap] = deque()
        self._inside = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if self._inside == 0:
                self._kept.clear()

    def array(self, n: int, dtype: DTypeLike) -> NDArray:
        kind = np.dtype(dtype)
        size = int(n) * kind.itemsize
        if not self._inside or size < _LEAST_BYTES:
            return np.empty(n, kind)
        memory = self._take(size)
        if memory is None:
            try:
                memory = _memory((size + size // 8) // _PAGE * _PAGE + _PAGE)
            except OSError:
                return np.empty(n, kind)
            with suppress(AttributeError, OSError):
                memory.madvise(mmap.MADV_HUGEPAGE)
        loan = (ctypes.c_byte * len(memory)).from_buffer(memory)
        weakref.finalize(loan, self._give_back, memory).atexit = False
        return np.frombuffer(memoryview(loan), kind, n)

    def _take(self, size: int) -> mmap.mmap | None:
        """Take the smallest kept memory of that size or more; if all is less, one piece is let go for what is made."""
        kept = []
        with suppress(IndexError):
            while True:
                kept.append(self._kept.popleft())
        kept.sort(key=len)
        at = next((i for i, memory in enumerate(kept) if len(memory) >= size), 0)
        taken = kept.pop(at) if kept else None
        self._kept.extend(kept)
        return taken if taken is not None and len(taken) >= size else None

    def _give_back(self, memory: mmap.mmap) -> None:
        if self._inside and len(self._kept) < _N_KEPT:
            self._kept.append(memory)


_recycler = _Recycler()
#: A context in which `recycled_array` keeps the memory of arrays that go; for a run.
recycling = _recycler.__call__
#: Make an array of n elements, in the memory of one that has gone if there is any; what is in it is undefined.
recycled_array = _recycler.array
