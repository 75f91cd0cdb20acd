"""Main program of a reader process, with few imports because every process pays for them."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import DTypeLike, NDArray

from f5py.errors import F5pyError, SignalError
from f5py.io.signals.helper_process import send
from f5py.threads.pool import keep_freed_memory

#: Larger memory shrinks when a quarter of it suffices.
_MOST_KEPT = 64 << 20
_SAMPLE_BYTES = 2


class SharedSamples:
    """Unnamed memory with samples, shared by a reader process and its parent.

    Nothing can be left behind, and the size limit of containers for ``/dev/shm`` does not matter. `close` closes the
    descriptor.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._memory: mmap.mmap | None = None
        self._size = 0

    def room(self, n: int, dtype: DTypeLike) -> NDArray:
        """Return an uninitialized array for the reader process to fill; raise `OSError` without memory."""
        size = n * np.dtype(dtype).itemsize
        if size > self._size or self._size > max(4 * size, _MOST_KEPT):
            self._memory, self._size = None, 0
            more = size + size // 8 + mmap.PAGESIZE
            os.ftruncate(self._descriptor, more)
            os.posix_fallocate(self._descriptor, 0, more)  # raises here instead of SIGBUS later
            self._map(more)
        return np.frombuffer(self._memory or bytearray(), dtype, n)

    def samples(self, n: int) -> NDArray[np.int16]:
        """Return the n samples written by the other process.

        Raises `OSError` or `ValueError` if they are unavailable, as after `close` in another thread.
        """
        if n * _SAMPLE_BYTES > self._size:
            self._map(os.fstat(self._descriptor).st_size)
        return np.frombuffer(self._memory or bytearray(), np.int16, n)

    def close(self) -> None:
        """Release the memory with the last array of it. May be called twice."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
        self._memory, self._size = None, 0

    def __del__(self) -> None:
        self.close()

    def _map(self, size: int) -> None:
        self._memory, self._size = mmap.mmap(self._descriptor, size), size


def serve(connection: Connection, memory: str, module: str, reader_class: str) -> None:
    """Serve read requests of the parent with a `FileReader` of that module and name until it hangs up.

    The parent first sends the path of a similar file, or "". A request is ``(names, paths)``, or ``(name, path)`` for
    the run's metadata. Answers to the first kind are an exception for the parent to raise, or ``(offsets, calibration,
    problems)`` with the samples in shared memory until the next request. `memory` is the descriptor's number.
    """
    keep_freed_memory()
    shared = SharedSamples(int(memory))
    reader = getattr(import_module(module), reader_class)()
    try:
        path = connection.recv()
        with suppress(Exception):  # reading reports it
            reader.prepare(path)
        while True:
            names, paths = connection.recv()
            try:
                if isinstance(names, str):
                    answer = reader.run_info(names, paths)
                else:
                    block = reader.read(names, paths, shared.room)
                    answer = block.offsets, block.calibration(), block.problems
                    del block
            except F5pyError as error:
                send(connection, error)
                continue
            except OSError as error:  # of the machine
                where = f"{error.filename}: " if error.filename else ""
                send(connection, SignalError(f"{where}cannot be read ({error.strerror or error})"))
                continue
            except Exception as error:
                cause = " ".join(f"{type(error).__name__}: {error}".split())
                send(connection, SignalError(f"a signal reader process failed: {cause}"))
                continue
            send(connection, answer)
    except (EOFError, OSError):
        pass
    finally:
        reader.close()
