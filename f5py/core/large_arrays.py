"""Large arrays with memory of their own."""

from __future__ import annotations

import ctypes
import mmap
import threading
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
#: So many arrays, one after the other, say how much memory is held, by what was there when each was made: those of the
#: last three batches.
_N_RECENT = 9


def private_memory(size: int, *advice: str) -> mmap.mmap:
    """Take memory from the system, of large pages where it has them.

    Raises `OSError`.

    Parameters
    ----------
    size : int
        Bytes.
    advice : str
        What else the system is to know about it: names of constants of `mmap`, left out where there are none.
    """
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for name in ("MADV_HUGEPAGE", *advice):
        with suppress(AttributeError, OSError):
            memory.madvise(getattr(mmap, name))
    return memory


class _Recycler:
    """Keeps the memory of large arrays for the next ones, while anybody is inside of `recycling`.

    The system clears what it gives, which for the samples of a batch takes as long as to decode them three times. No
    more is held than arrays have had at the same time, of late.
    """

    def __init__(self) -> None:
        # Memory comes back whenever an array goes, which may be while another one is made, by the thread with the lock.
        self._kept: deque[mmap.mmap] = deque()
        self._lock = threading.Lock()
        self._made = 0  # bytes of arrays that are there, and of what is kept
        self._recent: deque[int] = deque(maxlen=_N_RECENT)  # bytes of arrays that were there, for each that was made
        self._inside = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if self._inside == 0:
                self._kept = deque()  # what comes back later is let go with the old one
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
        """Take the smallest kept memory of that size or more, or make some."""
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
#: A context in which `recycled_array` keeps the memory of arrays that go; for a run.
recycling = _recycler.__call__
#: Make an array of n elements, in the memory of one that has gone if there is any; what is in it is undefined.
recycled_array = _recycler.array
