"""Addresses of C functions for compiled code."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


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
