"""Main program of a reader process. Imports no more than reading needs, because every process pays for it."""

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

#: More memory than that is given back when a quarter of it would do.
_MOST_KEPT = 64 << 20
_SAMPLE_BYTES = 2


class SharedSamples:
    """Samples in memory that a reader process and its parent share, as long as what it has read last.

    Memory without a name: nothing can be left behind, however the processes end, and the size limit that containers
    set for ``/dev/shm`` does not matter.

    Parameters
    ----------
    descriptor : int
        Of the memory, the same for both; closed by `close`.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._memory: mmap.mmap | None = None
        self._size = 0

    def room(self, n: int, dtype: DTypeLike) -> NDArray:
        """Return an array of n elements, for the reader process to fill; what is in it is undefined.

        Raises `OSError` if there is no more memory.
        """
        size = n * np.dtype(dtype).itemsize
        if size > self._size or self._size > max(4 * size, _MOST_KEPT):
            self._memory, self._size = None, 0
            more = size + size // 8 + mmap.PAGESIZE
            os.ftruncate(self._descriptor, more)
            os.posix_fallocate(self._descriptor, 0, more)  # an error here, and not the end of who writes there
            self._map(more)
        return np.frombuffer(self._memory or bytearray(), dtype, n)

    def samples(self, n: int) -> NDArray[np.int16]:
        """Return the n samples that the other process has filled in.

        Raises `OSError` or `ValueError` if they cannot be had, as after `close` in another thread.
        """
        if n * _SAMPLE_BYTES > self._size:
            self._map(os.fstat(self._descriptor).st_size)
        return np.frombuffer(self._memory or bytearray(), np.int16, n)

    def close(self) -> None:
        """Let the memory go, once no array of it is there any more. May be called twice."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
        self._memory, self._size = None, 0

    def __del__(self) -> None:
        self.close()

    def _map(self, size: int) -> None:
        self._memory, self._size = mmap.mmap(self._descriptor, size), size


def serve(connection: Connection, memory: str, module: str, reader_class: str) -> None:
    """Read what the parent asks for until it hangs up, with a `FileReader` of that module and name.

    The parent first sends a path, of a file like those that will be read, or "". A request is ``(names, paths)``, or
    ``(name, path)``, which is answered with what is known of a read's run. To the first kind the answer is either an
    exception to be raised by the parent or ``(offsets, calibration, problems)``; the samples are in the shared memory
    then, until the next request.

    Parameters
    ----------
    memory : str
        Number of the descriptor of `SharedSamples`.
    """
    keep_freed_memory()
    shared = SharedSamples(int(memory))
    reader = getattr(import_module(module), reader_class)()
    try:
        path = connection.recv()
        with suppress(Exception):  # what is wrong is met again, and told, when a file is to be read
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
        pass  # the parent has hung up or is gone
    finally:
        reader.close()
