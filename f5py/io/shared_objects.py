"""Objects with large arrays on their way from one process to another, which finds the arrays in shared memory.

What goes through the connection is small: a process that is busy would take long for each piece of what is not, as all
its threads wait for the interpreter in turn.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import threading
import weakref
from collections import deque
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from f5py.io.files.memory_file import memory_descriptor
from f5py.io.signals.helper_process import send

#: Smaller arrays go with the rest of the object.
_LEAST_BYTES = 1 << 11
#: Arrays begin where vectors may be read from, and memory comes in pages of this size.
_ALIGNED, _PAGE = 64, 2 << 20


class _Parcel(NamedTuple):
    """An object that has been packed."""

    content: bytes  # all of it but its large arrays
    memory: int  # number of the shared memory with these; -1 if there are none
    size: int  # bytes of that memory
    spans: list[tuple[int, int]]  # begin and end of each array there
    is_new: bool  # the memory has been made for it: its descriptor follows
    free: list[int]  # numbers of the other process's memory that nothing uses any more


class ObjectChannel:
    """One end of a channel for objects between two processes.

    One thread may receive while others send. What a connection raises goes through: `EOFError` when the other end is
    gone, and `OSError`, also if there is no memory.

    Parameters
    ----------
    connection : Connection
        Of a socket, and nobody else's.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        # of this process: memory, and what has come back of it
        self._memories: list[mmap.mmap] = []
        self._new: int | None = None  # descriptor of memory that the other one does not have yet
        self._free: deque[int] = deque()
        # of the other one
        self._received: dict[int, mmap.mmap] = {}
        self._given_back: deque[int] = deque()

    def send(self, value: Any) -> None:
        """Send an object."""
        with self._sending:
            parcel = self._pack(value)
            send(self._connection, parcel)
            if self._new is not None:
                descriptor, self._new = self._new, None
                try:
                    reduction.send_handle(self._connection, descriptor, None)
                finally:
                    os.close(descriptor)

    def poll(self, seconds: float) -> bool:
        """Wait for an object; return whether there is one, or the other end is gone."""
        return self._connection.poll(seconds)

    def recv(self) -> Any:
        """Receive the next object, whose large arrays stay where they are."""
        parcel: _Parcel = self._connection.recv()
        if parcel.is_new:
            descriptor = reduction.recv_handle(self._connection)
            try:
                self._received[parcel.memory] = mmap.mmap(descriptor, parcel.size)
            finally:
                os.close(descriptor)
        self._free.extend(parcel.free)
        if parcel.memory < 0:
            return pickle.loads(parcel.content)
        memory = self._received[parcel.memory]
        loan = (ctypes.c_byte * len(memory)).from_buffer(memory)
        # by whichever thread lets the last of the arrays go
        weakref.finalize(loan, self._given_back.append, parcel.memory).atexit = False
        whole = memoryview(loan).cast("B")
        return pickle.loads(parcel.content, buffers=[whole[begin:end] for begin, end in parcel.spans])

    def _pack(self, value: Any) -> _Parcel:
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
        free = []
        while self._given_back:
            free.append(self._given_back.popleft())
        if not arrays:
            return _Parcel(content, -1, 0, spans, False, free)
        number, is_new = self._memory_of(end)
        memory = np.frombuffer(self._memories[number], np.uint8)
        for array, (begin, stop) in zip(arrays, spans, strict=True):
            memory[begin:stop] = np.frombuffer(array, np.uint8)
        return _Parcel(content, number, len(self._memories[number]), spans, is_new, free)

    def _memory_of(self, size: int) -> tuple[int, bool]:
        """Return the number of free memory of that size or more, the smallest, and whether it is new."""
        free = [self._free.popleft() for _ in range(len(self._free))]
        fitting = [number for number in free if len(self._memories[number]) >= size]
        if fitting:
            number = min(fitting, key=lambda one: len(self._memories[one]))
            free.remove(number)
        self._free.extend(free)
        if fitting:
            return number, False
        size = (size + size // 8) // _PAGE * _PAGE + _PAGE
        descriptor = memory_descriptor("f5py-batch")
        os.ftruncate(descriptor, size)
        self._new = descriptor
        self._memories.append(mmap.mmap(descriptor, size))
        return len(self._memories) - 1, True
