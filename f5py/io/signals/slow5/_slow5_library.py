"""The C library inside pyslow5: what it makes of a file's header, and its decompressors.

Records are taken apart by `f5py.io.signals.slow5._slow5_numba` and not by the library, which trusts the lengths that
are written in them; only their compressed bytes are given to it. Its functions are called through ctypes and from
compiled code: they run in several threads at once, return errors instead of ending the process, and can be silenced.

Imported from inside functions only, because it imports pyslow5.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from f5py.errors import MissingDependencyError, pip_install, unavailable

_TEXT_FORM, _BINARY_FORM = 1, 2
NEWER_VERSION = -15
#: What the library's error codes mean for a file.
_CAUSES = {
    -1: "ends too early",
    -3: "is truncated",
    -4: "has a damaged header",
    -5: "cannot be read (input/output error)",
    -8: "has a damaged header",
    -9: "is of an unknown form",
    -10: "does not fit in memory",
    -13: "is compressed in a way that the installed pyslow5 does not know",
    -14: "is not SLOW5",
    NEWER_VERSION: "is of a version of the format that the installed pyslow5 does not know",
    -16: "has a damaged header",
    -17: "has a damaged header",
}


class LibraryError(Exception):
    """The library could not do what it was asked to; the text is the cause, as a phrase."""

    def __init__(self, code: int) -> None:
        super().__init__(_CAUSES.get(code, f"cannot be read (SLOW5 error {code})"))
        self.code = code


class Functions(NamedTuple):
    """Addresses of C functions for compiled code.

    Attributes
    ----------
    pread, free, strtod : int
        Those of the C library.
    depress : int
        ``slow5_ptr_depress_solo``: from a method, an address and a number of bytes to new memory and its size.
    """

    pread: int
    free: int
    strtod: int
    depress: int


@cache
def _library() -> Any:
    try:
        import pyslow5
    except ImportError as problem:
        raise unavailable(problem, "SLOW5 files need the package", "pyslow5", "slow5") from None
    file, text = ctypes.c_void_p, ctypes.c_char_p
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "slow5_open_with": (file, [text, text, ctypes.c_int]),
        "slow5_close": (ctypes.c_int, [file]),
        "slow5_decode_record_press": (ctypes.c_int, [ctypes.c_uint8]),
        "slow5_decode_signal_press": (ctypes.c_int, [ctypes.c_uint8]),
        "slow5_ptr_depress_solo": (file, [ctypes.c_int, file, ctypes.c_size_t, file]),
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
            f"the installed pyslow5 lacks what f5py needs ({problem}); try: {pip_install('slow5', again=True)}"
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


#: A context in which the library prints nothing; needed around everything that calls its functions.
quiet = _Quiet()


def check_header(path: bytes, binary: bool) -> None:
    """Let the library read the header of a file; by the form that is given, where it would go by the file's name.

    Raises
    ------
    LibraryError
        The file cannot be opened.
    MissingDependencyError
        pyslow5 is not installed.
    """
    library = _library()
    with quiet():
        file = library.slow5_open_with(path, b"r", _BINARY_FORM if binary else _TEXT_FORM)
        if not file:
            raise LibraryError(int(library.slow5_errno_location().contents.value))
        library.slow5_close(file)


def compression(of_records: int, of_signals: int) -> tuple[int, int]:
    """The library's numbers of the methods that the header of a BLOW5 file names by its numbers."""
    library = _library()
    return library.slow5_decode_record_press(of_records), library.slow5_decode_signal_press(of_signals)


@cache
def functions() -> Functions:
    """What compiled code calls."""
    system = ctypes.CDLL(None)
    found = system.pread, system.free, system.strtod, _library().slow5_ptr_depress_solo
    return Functions(*(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in found))
