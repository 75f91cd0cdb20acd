"""SLOW5 files through the C library inside pyslow5.

pyslow5's own functions hold the interpreter's lock while they decompress, its parallel ones end the process
(``exit``) at the first absent or damaged read, and all print to standard error. The library's documented
functions, which are kept stable, do not: called through ctypes they run in several threads at once, return
error codes and can be silenced.

Imported from inside functions only, because it imports pyslow5.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.errors import MissingDependencyError

_TEXT_FORM, _BINARY_FORM = 1, 2
_END_OF_FILE, _DAMAGED, NOT_FOUND, NEWER_VERSION = -1, -4, -7, -15
#: What the library's error codes mean for a file or a read.
CAUSES = {
    -1: "ends too early",
    -2: "cannot be read (bad argument)",
    -3: "is truncated",
    -4: "is damaged",
    -5: "cannot be read (input/output error)",
    -8: "is damaged",
    -9: "is of an unknown form",
    -10: "does not fit in memory",
    -13: "cannot be decompressed",
    -14: "is not SLOW5",
    -15: "is of a version of the format that the installed pyslow5 does not know",
    -16: "has a damaged header",
    -17: "has a damaged header",
}


class LibraryError(Exception):
    """The library could not do what it was asked to; the text is the cause, as a phrase."""

    def __init__(self, code: int) -> None:
        super().__init__(CAUSES.get(code, f"cannot be read (SLOW5 error {code})"))
        self.code = code


class _Record(ctypes.Structure):
    """``slow5_rec_t``."""

    _fields_ = (
        ("read_id_len", ctypes.c_uint16),
        ("read_id", ctypes.c_char_p),
        ("read_group", ctypes.c_uint32),
        ("digitisation", ctypes.c_double),
        ("offset", ctypes.c_double),
        ("range", ctypes.c_double),
        ("sampling_rate", ctypes.c_double),
        ("len_raw_signal", ctypes.c_uint64),
        ("raw_signal", ctypes.c_void_p),
        ("aux_map", ctypes.c_void_p),
    )


#: What `f5py.io.signals._slow5_numba` reads of a record; the other calibration follows the first one.
_NEEDED_FIELDS = ("read_id", "digitisation", "len_raw_signal", "raw_signal")


class Addresses(NamedTuple):
    """Where things of the library are in memory.

    Attributes
    ----------
    file : int64, shape (3,)
        The function ``slow5_get``, the open file, and the function ``slow5_rec_free``.
    layout : int64, shape (4,)
        Where in a record its fields are.
    """

    file: NDArray[np.int64]
    layout: NDArray[np.int64]


_RecordPointer = ctypes.POINTER(_Record)


@cache
def _library() -> Any:
    try:
        import pyslow5
    except ImportError:
        raise MissingDependencyError(
            'SLOW5 files need the package pyslow5; install it: pip install "f5py[slow5]"'
        ) from None
    file, text = ctypes.c_void_p, ctypes.c_char_p
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "slow5_open_with": (file, [text, text, ctypes.c_int]),
        "slow5_close": (ctypes.c_int, [file]),
        "slow5_idx_load": (ctypes.c_int, [file]),
        "slow5_idx_unload": (None, [file]),
        "slow5_get_rids": (ctypes.POINTER(text), [file, ctypes.POINTER(ctypes.c_uint64)]),
        "slow5_get": (ctypes.c_int, [text, ctypes.POINTER(_RecordPointer), file]),
        "slow5_get_next": (ctypes.c_int, [ctypes.POINTER(_RecordPointer), file]),
        "slow5_rec_free": (None, [_RecordPointer]),
        "slow5_errno_location": (ctypes.POINTER(ctypes.c_int), []),
    }
    try:
        library = ctypes.CDLL(pyslow5.__file__)
        for name, (result, arguments) in signatures.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        ctypes.c_int.in_dll(library, "slow5_log_level")
    except (OSError, AttributeError, ValueError) as problem:
        raise MissingDependencyError(
            f"the installed pyslow5 lacks what f5py needs ({problem}); try: "
            'pip install --force-reinstall "f5py[slow5]"'
        ) from None
    return library


class _Quiet:
    """Keeps the library from printing while anybody is inside."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        level = ctypes.c_int.in_dll(_library(), "slow5_log_level")
        with self._lock:
            if self._inside == 0:
                self._before, level.value = level.value, 0
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    level.value = self._before


#: A context in which the library prints nothing; needed around every use of a `Slow5File`.
quiet = _Quiet()


class Slow5File:
    """An open SLOW5 file.

    Parameters
    ----------
    path : bytes
        The file.
    binary : bool
        Whether it is BLOW5; the library would go by the file's name.

    Raises
    ------
    LibraryError
        The file cannot be opened.
    MissingDependencyError
        pyslow5 is not installed.
    """

    def __init__(self, path: bytes, binary: bool) -> None:
        self._library = _library()
        self._path = path  # the library keeps a pointer to it
        self._file = self._library.slow5_open_with(path, b"r", _BINARY_FORM if binary else _TEXT_FORM)
        self._has_index = False
        if not self._file:
            raise LibraryError(self._error())

    def close(self) -> None:
        """Close the file. May be called twice."""
        if self._file:
            if self._has_index:
                self._library.slow5_idx_unload(self._file)
            self._library.slow5_close(self._file)
            self._file = None

    def load_index(self) -> None:
        """Load the index beside the file, or make it if there is none."""
        if self._library.slow5_idx_load(self._file) != 0:
            raise LibraryError(self._error())
        self._has_index = True

    def names(self) -> Iterator[bytes]:
        """Yield the names of all reads in the index, in its order."""
        count = ctypes.c_uint64()
        names = self._library.slow5_get_rids(self._file, ctypes.byref(count))
        for i in range(count.value):
            yield names[i]

    def scan(self) -> Iterator[bytes]:
        """Yield the names of all reads in the file, which are decompressed on the way; needs no index.

        Raises
        ------
        LibraryError
            At a damaged record.
        """
        record = _RecordPointer()
        try:
            while (code := self._library.slow5_get_next(ctypes.byref(record), self._file)) >= 0:
                yield record.contents.read_id
        finally:
            self._library.slow5_rec_free(record)
        if code != _END_OF_FILE:
            raise LibraryError(code)

    def addresses(self) -> Addresses:
        """What compiled code needs to read records in several threads."""

        def address(name: str) -> int:
            return ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0

        return Addresses(
            np.array([address("slow5_get"), self._file, address("slow5_rec_free")], np.int64),
            np.array([getattr(_Record, name).offset for name in _NEEDED_FIELDS], np.int64),
        )

    def reader(self) -> RecordReader:
        """Return what reads records; one for each thread."""
        return RecordReader(self._library, self._file)

    def _error(self) -> int:
        return int(self._library.slow5_errno_location().contents.value)


class RecordReader:
    """Reads single records of a file whose index is loaded. For one thread at a time; to be closed."""

    def __init__(self, library: Any, file: Any) -> None:
        self._library = library
        self._file = file
        self._record = _RecordPointer()

    def read(self, name: bytes) -> tuple[NDArray[np.int16], tuple[float, float, float, float], int]:
        """Read the samples, the calibration (`f5py.io.signals.source.CALIBRATION`) and the read group of a read.

        Raises
        ------
        LibraryError
            With the code `NOT_FOUND` if the read is absent.
        """
        if b"\0" in name:
            raise LibraryError(NOT_FOUND)
        code = self._library.slow5_get(name, ctypes.byref(self._record), self._file)
        if code < 0:
            raise LibraryError(code)
        record = self._record.contents
        if record.read_id != name:
            raise LibraryError(_DAMAGED)
        samples = np.empty(record.len_raw_signal, np.int16)
        if samples.size:
            ctypes.memmove(samples.ctypes.data, record.raw_signal, samples.nbytes)
        calibration = (record.digitisation, record.offset, record.range, record.sampling_rate)
        return samples, calibration, record.read_group

    def close(self) -> None:
        """Free the record. May be called twice."""
        record, self._record = self._record, _RecordPointer()
        self._library.slow5_rec_free(record)
