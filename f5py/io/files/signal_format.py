"""Formats of signal files, recognized by their first bytes."""

import errno
import os
import stat
from typing import Literal

#: Formats; SLOW5 includes BLOW5.
Kind = Literal["slow5", "pod5", "fast5"]
#: Names for messages.
KIND_NAMES: dict[Kind, str] = {"slow5": "SLOW5", "pod5": "POD5", "fast5": "fast5"}
KIND_OF_ENDING: dict[str, Kind] = {".fast5": "fast5", ".pod5": "pod5", ".slow5": "slow5", ".blow5": "slow5"}

BLOW5_MAGIC = b"BLOW5\x01"
#: Offset of the length (4 bytes) and text of a BLOW5 header.
BINARY_HEADER_AT = 64
_SLOW5_START = b"#slow5_version"
POD5_MAGIC = b"\x8bPOD\r\n\x1a\n"
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
#: HDF5 may begin after a user block of 512 bytes times a power of two.
_USER_BLOCK, _MOST_USER_BLOCK = 512, 1 << 20


def file_kind(path: str) -> Kind | None:
    """Return the format of a signal file, None for another file; raise `OSError` if it cannot be read."""
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
