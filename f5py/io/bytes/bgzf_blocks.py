"""The blocks of blocked gzip (BGZF): SAM specification, section 4.1.

They are compressed by ISA-L, not by zlib: at its level 3 that makes files 1 to 3 % larger than zlib does at level 6, at
200 to 360 megabytes a second instead of 17 to 68 (benchmarks/results/deflating.md).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GZIP_MAGIC = b"\x1f\x8b"
#: Every block begins so: gzip magic, deflate, extra field.
BLOCK_MAGIC = b"\x1f\x8b\x08\x04"
#: Bytes of a block at most, compressed or not.
MAX_BLOCK = 1 << 16
#: Bytes of text in a block, as htslib and bgzip have it: a compressed block then never exceeds 64 KiB.
BLOCK_BYTES = 0xFF00
#: Our blocks: the magic; no time; unknown system; extra field of 6 bytes: "BC", 2 bytes.
HEADER_START = BLOCK_MAGIC + bytes.fromhex("0000000000ff060042430200")
HEADER_SIZE = 18
FOOTER_SIZE = 8
#: The empty block that marks the end of a complete file.
END_BLOCK = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
_LEVEL = 3


def is_bgzf(start: bytes) -> bool:
    """Return whether bytes are the beginning of blocked gzip, not of other gzip."""
    return start[:4] == BLOCK_MAGIC and start[12:16] == HEADER_START[12:16]


def bgzf_blocks(text: bytes, block_size: int = BLOCK_BYTES) -> list[bytes]:
    """Compress text into complete blocks.

    Parameters
    ----------
    block_size : int
        Bytes of text in a block; the last one may have less.
    """
    view = memoryview(text)
    return [bgzf_block(view[start : start + block_size]) for start in range(0, len(view), block_size)]


def bgzf_block(text: memoryview | NDArray[np.uint8]) -> bytes:
    """Compress text into one block."""
    from isal import isal_zlib

    packed = isal_zlib.compress(text, _LEVEL, -isal_zlib.MAX_WBITS)
    size = struct.pack("<H", HEADER_SIZE + len(packed) + FOOTER_SIZE - 1)
    return b"".join((HEADER_START, size, packed, struct.pack("<II", isal_zlib.crc32(text), len(text))))
