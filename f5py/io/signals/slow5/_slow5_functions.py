"""C functions for compiled code that reads SLOW5 files: of the system, zlib and zstd.

pysam's zlib is always present; zstd, part of the common distributions, is loaded only for files that need it.
"""

import ctypes
import errno
import os
import sys
from typing import Any, NamedTuple

from f5py.errors import MissingDependencyError
from f5py.jit.c_memory import address_of, zlib_library

#: Record compressions, numbered as in headers.
NO_PRESS, ZLIB, ZSTD = 0, 1, 2

_OF_ZSTD = ("ZSTD_getFrameContentSize", "ZSTD_createDCtx", "ZSTD_freeDCtx", "ZSTD_decompressDCtx")


class CodecFunctions(NamedTuple):
    """Addresses of C functions; those of zstd are 0 without it."""

    pread: int
    free: int
    strtod: int
    realloc: int
    uncompress: int  # of zlib
    zstd_size: int
    zstd_create: int
    zstd_free: int
    zstd_decompress: int


def functions(path: str, record_press: int) -> CodecFunctions:
    """Return the functions for a record compression; raise `MissingDependencyError` without its library."""
    system = ctypes.CDLL(None)
    uncompress = 0
    of_zstd = [0] * len(_OF_ZSTD)
    if record_press == ZLIB:
        uncompress = address_of(zlib_library().uncompress)
    elif record_press == ZSTD:
        library = _zstd(path)
        of_zstd = [address_of(getattr(library, name)) for name in _OF_ZSTD]
    pread, free, strtod, realloc = map(address_of, (system.pread, system.free, system.strtod, system.realloc))
    return CodecFunctions(pread, free, strtod, realloc, uncompress, *of_zstd)


def _zstd(path: str) -> Any:
    why = "is not on this machine"
    for name in ("libzstd.so.1", os.path.join(sys.prefix, "lib", "libzstd.so.1")):
        try:
            return ctypes.CDLL(name)
        except OSError as problem:
            if os.strerror(errno.ENOENT) not in str(problem):
                why = f"cannot be loaded ({' '.join(str(problem).split())})"
    raise MissingDependencyError(
        f"{path}: is compressed with zstd, but its library {why}; install it (apt-get install libzstd1), or convert "
        "the file (slow5tools view -c zlib)"
    )
