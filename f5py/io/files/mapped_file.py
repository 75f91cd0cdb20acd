"""Memory-mapped files, checked for changes while they are in use.

A file rewritten in place shows its new bytes at once, and access beyond the end of a truncated file raises SIGBUS.
Readers call `check` before they use a result, and a handler turns the signal into an error of one line.
"""

import ctypes
import mmap
import os
import signal
import weakref
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from f5py.io.bytes.file_state import FileState
from f5py.io.files.atomic_write import finish_pending
from f5py.messages import console

_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int)


class MappedFile:
    """A memory-mapped file, or its content where mapping fails. Raises `OSError` if it cannot be opened."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._close = weakref.finalize(self, os.close, self._descriptor)
        self._state = FileState(self._descriptor, path)
        self.size = os.fstat(self._descriptor).st_size
        self._map = _content(self._descriptor, self.size) if self.size else None
        self.text: NDArray[np.uint8] = np.frombuffer(self._map or bytearray(), np.uint8)
        _explain_bus_errors()
        _mapped.add(self)

    def check(self) -> None:
        """Raise `InputFileError` if the file has changed."""
        self._state.check()

    def has_changed(self) -> bool:
        return self._state.has_changed()

    def close(self) -> None:
        """Close the file; the last user of `text` frees the memory."""
        self.text = np.empty(0, np.uint8)
        self._map = None
        _mapped.discard(self)
        self._close()


def _content(descriptor: int, size: int) -> mmap.mmap | bytearray:
    """Map a file, or read it."""
    with suppress(OSError):
        return mmap.mmap(descriptor, size, mmap.MAP_PRIVATE)
    with open(descriptor, "rb", closefd=False) as file:
        return bytearray(file.read(size))


_mapped: weakref.WeakSet[MappedFile] = weakref.WeakSet()


@_HANDLER
def _on_bus_error(_: int) -> None:
    """End the process with one line that names the truncated file.

    The signal comes at a memory access, where this thread holds no lock, so Python code may run.
    """
    with suppress(Exception):
        paths = sorted(file.path for file in _mapped if file.has_changed()) or ["a file that is mapped into memory"]
        console.error("input", f"{', '.join(paths)}: has become shorter while it was read; run again when it is whole")
    with suppress(Exception):
        finish_pending()
    os._exit(1)


_has_handler = False


def _explain_bus_errors() -> None:
    global _has_handler
    if not _has_handler:
        _has_handler = True
        library = ctypes.CDLL(None)
        library.signal.argtypes, library.signal.restype = (ctypes.c_int, _HANDLER), ctypes.c_void_p
        library.signal(signal.SIGBUS, _on_bus_error)
