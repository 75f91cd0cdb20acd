"""Formats of signal files, told by their first bytes and not by their names."""

from __future__ import annotations

import errno
import os
import stat
from typing import Literal

#: The kinds of signal files; SLOW5 is both the text form and the binary one (BLOW5).
Kind = Literal["slow5", "pod5", "fast5"]

#: How a kind is called in messages.
KIND_NAMES: dict[Kind, str] = {"slow5": "SLOW5", "pod5": "POD5", "fast5": "fast5"}

#: The usual endings of the names of signal files.
KIND_OF_ENDING: dict[str, Kind] = {".fast5": "fast5", ".pod5": "pod5", ".slow5": "slow5", ".blow5": "slow5"}

BLOW5_MAGIC = b"BLOW5\x01"
#: Where the text header of a BLOW5 file stands, after its length in 4 bytes.
BINARY_HEADER_AT = 64
_SLOW5_START = b"#slow5_version"
POD5_MAGIC = b"\x8bPOD\r\n\x1a\n"
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
#: A HDF5 file may have a block of another program's before it, of 512 bytes or a power of two times that.
_USER_BLOCK, _MOST_USER_BLOCK = 512, 1 << 20


def file_kind(path: str) -> Kind | None:
    """Return the kind of a signal file, None for another file. Raises `OSError` if it cannot be read."""
    if stat.S_ISFIFO(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "is a pipe; signals are read from files", path)
    with open(path, "rb") as file:
        start = file.read(len(_SLOW5_START))
        if start.startswith((BLOW5_MAGIC, _SLOW5_START)):
            return "slow5"
        if start.startswith(POD5_MAGIC):
            return "pod5"
        if start.startswith(_HDF5_MAGIC):
            return "fast5"
        at, size = _USER_BLOCK, os.fstat(file.fileno()).st_size
        while at <= min(_MOST_USER_BLOCK, size):
            file.seek(at)
            if file.read(len(_HDF5_MAGIC)) == _HDF5_MAGIC:
                return "fast5"
            at *= 2
    return None
