"""The blocks of blocked gzip (BGZF): SAM specification, section 4.1."""

from __future__ import annotations

import struct
import zlib

#: Every block begins so: gzip magic, deflate, extra field.
BLOCK_MAGIC = b"\x1f\x8b\x08\x04"
#: Bytes of a block at most, compressed or not.
MAX_BLOCK = 1 << 16
#: Our blocks: the magic; no time; unknown system; extra field of 6 bytes: "BC", 2 bytes.
HEADER_START = BLOCK_MAGIC + bytes.fromhex("0000000000ff060042430200")
HEADER_SIZE = 18
FOOTER_SIZE = 8
#: The empty block that marks the end of a complete file.
END_BLOCK = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")


def bgzf_blocks(text: bytes, block_size: int, level: int, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> list[bytes]:
    """Compress text into complete blocks.

    Parameters
    ----------
    block_size : int
        Bytes of text in a block; the last one may have less.
    level, strategy : int
        Of zlib.
    """
    blocks = []
    for start in range(0, len(text), block_size):
        piece = text[start : start + block_size]
        packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, strategy)
        packed = packer.compress(piece) + packer.flush()
        size = HEADER_SIZE + len(packed) + FOOTER_SIZE
        blocks.append(
            HEADER_START + struct.pack("<H", size - 1) + packed + struct.pack("<II", zlib.crc32(piece), len(piece))
        )
    return blocks
