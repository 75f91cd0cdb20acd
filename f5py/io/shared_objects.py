"""Objects with large arrays on their way from one process to another, which finds the arrays in shared memory."""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from f5py.io.files.memory_file import memory_descriptor

#: Smaller arrays go with the rest of the object.
_LEAST_BYTES = 1 << 14
#: Arrays begin where vectors may be read from, and memory comes in pages of this size.
_ALIGNED, _PAGE = 64, 2 << 20


class Parcel(NamedTuple):
    """An object that has been packed."""

    content: bytes  # all of it but its large arrays
    memory: int  # number of the shared memory with these; -1 if there are none
    size: int  # bytes of that memory
    spans: list[tuple[int, int]]  # begin and end of each array there
    is_new: bool  # the memory has been made for it: its descriptor goes with the parcel


class Packer:
    """Packs objects, in memory that has come back or in some more."""

    def __init__(self) -> None:
        self._memories: list[mmap.mmap] = []
        self._descriptors: list[int] = []
        self._free: list[int] = []

    def pack(self, value: Any) -> Parcel:
        """Pack an object. Raises `OSError` if there is no memory."""
        arrays: list[memoryview] = []

        def stays_inside(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes < _LEAST_BYTES:
                return True
            arrays.append(raw)
            return False

        content = pickle.dumps(value, 5, buffer_callback=stays_inside)
        spans, end = [], 0
        for array in arrays:
            spans.append((end, end + array.nbytes))
            end += -(-array.nbytes // _ALIGNED) * _ALIGNED
        if not arrays:
            return Parcel(content, -1, 0, spans, False)
        number, is_new = self._memory_of(end)
        memory = np.frombuffer(self._memories[number], np.uint8)
        for array, (begin, stop) in zip(arrays, spans, strict=True):
            memory[begin:stop] = np.frombuffer(array, np.uint8)
        return Parcel(content, number, len(self._memories[number]), spans, is_new)

    def descriptor(self, number: int) -> int:
        """Return the file descriptor of shared memory."""
        return self._descriptors[number]

    def take_back(self, numbers: list[int]) -> None:
        """Use memory again: who has unpacked what was in it does not need that any more."""
        self._free += numbers

    def _memory_of(self, size: int) -> tuple[int, bool]:
        """Return the number of free memory of that size or more, the smallest, and whether it is new."""
        fitting = [number for number in self._free if len(self._memories[number]) >= size]
        if fitting:
            number = min(fitting, key=lambda one: len(self._memories[one]))
            self._free.remove(number)
            return number, False
        size = (size + size // 8) // _PAGE * _PAGE + _PAGE
        descriptor = memory_descriptor("f5py-batch")
        os.ftruncate(descriptor, size)
        self._descriptors.append(descriptor)
        self._memories.append(mmap.mmap(descriptor, size))
        return len(self._memories) - 1, True


class Unpacker:
    """Unpacks what a `Packer` of another process has packed.

    Parameters
    ----------
    give_back : callable
        Called with the number of shared memory when nothing uses the arrays in it any more, by whichever thread that
        happens in.
    """

    def __init__(self, give_back: Callable[[int], object]) -> None:
        self._memories: dict[int, mmap.mmap] = {}
        self._give_back = give_back

    def unpack(self, parcel: Parcel, descriptor: int | None) -> Any:
        """Make the object, whose large arrays stay where they are.

        Parameters
        ----------
        parcel : Parcel
        descriptor : int or None
            That of the memory, if it is new; it is closed.
        """
        if descriptor is not None:
            try:
                self._memories[parcel.memory] = mmap.mmap(descriptor, parcel.size)
            finally:
                os.close(descriptor)
        if parcel.memory < 0:
            return pickle.loads(parcel.content)
        memory = self._memories[parcel.memory]
        loan = (ctypes.c_byte * len(memory)).from_buffer(memory)
        weakref.finalize(loan, self._give_back, parcel.memory).atexit = False
        whole = memoryview(loan).cast("B")
        return pickle.loads(parcel.content, buffers=[whole[begin:end] for begin, end in parcel.spans])
