"""BGZF blocks (SAM specification, section 4.1), by ISA-L; compressed at level 3.

Files are 1 to 3 % larger than zlib's at level 6, at several times the speed (benchmarks/results/deflating.md).
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GZIP_MAGIC = b"\x1f\x8b"
#: Gzip magic, deflate, extra field.
BLOCK_MAGIC = b"\x1f\x8b\x08\x04"
#: Largest block, compressed or not.
MAX_BLOCK = 1 << 16
#: Bytes of text in a block, as in htslib: a compressed block never exceeds 64 KiB.
BLOCK_BYTES = 0xFF00
#: The magic; no time; unknown system; extra field of 6 bytes: "BC", 2 bytes.
HEADER_START = BLOCK_MAGIC + bytes.fromhex("0000000000ff060042430200")
HEADER_SIZE = 18
FOOTER_SIZE = 8
#: The empty block that marks the end of a complete file.
END_BLOCK = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
_LEVEL = 3
#: Bytes of a header before its extra field.
_FIXED_HEADER = 12


class DamagedBlocksError(OSError):
    """Damage of a BGZF stream, with the reason as text."""


def block_at(data: bytes, at: int = 0) -> tuple[int, int, int] | None:
    """Locate a block; None if it is incomplete. Raises `DamagedBlocksError`.

    Returns the begin of its compressed text, the end of the block, and the bytes of its text.
    """
    damaged = DamagedBlocksError("a block is damaged")
    if len(data) < at + _FIXED_HEADER:
        return None
    field = at + _FIXED_HEADER
    begin = field + int.from_bytes(data[field - 2 : field], "little")
    if not data.startswith(BLOCK_MAGIC, at):
        raise damaged
    if len(data) < begin:
        return None
    while field + 4 <= begin:
        name, length, size = struct.unpack_from("<2sHH", data, field) if field + 6 <= begin else (b"", 0, 0)
        if name == b"BC" and length == 2:
            end = at + size + 1
            if end < begin + FOOTER_SIZE:
                raise damaged
            if len(data) < end:
                return None
            n_text = int.from_bytes(data[end - 4 : end], "little")
            if n_text > MAX_BLOCK:
                raise damaged
            return begin, end, n_text
        field += 4 + length
    raise damaged


def first_block(data: bytes) -> tuple[bytes, int]:
    """Return the text and size of the first block; raise `DamagedBlocksError` unless it is sound."""
    from isal import isal_zlib

    block = block_at(data)
    if block is None:
        raise DamagedBlocksError("the file is truncated")
    begin, end, n_text = block
    try:
        text: bytes = isal_zlib.decompress(data[begin : end - FOOTER_SIZE], -isal_zlib.MAX_WBITS, max(n_text, 1))
    except isal_zlib.error:
        raise DamagedBlocksError("a block is damaged") from None
    if len(text) != n_text or isal_zlib.crc32(text) != int.from_bytes(data[end - FOOTER_SIZE : end - 4], "little"):
        raise DamagedBlocksError("a block is damaged")
    return text, end


def inflate_blocks(data: bytes | memoryview | NDArray[np.uint8], n_text: int) -> bytes | None:
    """Inflate adjacent blocks with `n_text` bytes of text; return None if they are not sound.

    One call of ISA-L inflates them all, as every call waits for the interpreter's lock, on many cores for long.
    """
    from isal import igzip, isal_zlib

    with suppress(OSError, EOFError, isal_zlib.error):
        text: bytes = igzip.decompress(data)
        if len(text) == n_text:
            return text
    return None


def is_bgzf(start: bytes) -> bool:
    """Return whether bytes are the beginning of BGZF, not of other gzip."""
    return start[:4] == BLOCK_MAGIC and start[12:16] == HEADER_START[12:16]


def bgzf_blocks(text: bytes, block_size: int = BLOCK_BYTES) -> list[bytes]:
    """Compress text into complete blocks of `block_size` bytes of text."""
    view = memoryview(text)
    return [bgzf_block(view[start : start + block_size]) for start in range(0, len(view), block_size)]


def bgzf_block(text: memoryview | NDArray[np.uint8]) -> bytes:
    """Compress text into one block."""
    from isal import isal_zlib

    packed = isal_zlib.compress(text, _LEVEL, -isal_zlib.MAX_WBITS)
    size = struct.pack("<H", HEADER_SIZE + len(packed) + FOOTER_SIZE - 1)
    return b"".join((HEADER_START, size, packed, struct.pack("<II", isal_zlib.crc32(text), len(text))))
