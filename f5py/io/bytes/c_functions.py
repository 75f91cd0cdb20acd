"""Addresses of C functions for compiled code."""

import ctypes
from functools import cache
from typing import Any, NamedTuple


class ZlibFunctions(NamedTuple):
    """Addresses of zlib's functions and of its version string."""

    begin: int  # of inflateInit2_
    inflate: int
    reset: int
    end: int
    crc32: int
    version: int


@cache
def zlib_functions() -> ZlibFunctions:
    library = zlib_library()
    library.zlibVersion.restype = ctypes.c_void_p
    return ZlibFunctions(
        address_of(library.inflateInit2_), address_of(library.inflate), address_of(library.inflateReset),
        address_of(library.inflateEnd), address_of(library.crc32), library.zlibVersion(),
    )  # fmt: skip


@cache
def pread_function() -> int:
    return address_of(ctypes.CDLL(None).pread)


@cache
def clock_function() -> int:
    """Return the address of ``clock_gettime``."""
    return address_of(ctypes.CDLL(None).clock_gettime)


@cache
def zlib_library() -> Any:
    """Open the system's zlib, or the one in pysam's wheel."""
    try:
        return ctypes.CDLL("libz.so.1")
    except OSError:
        import pysam.libchtslib

        return ctypes.CDLL(pysam.libchtslib.__file__)


def address_of(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
