"""The blocks of blocked gzip (BGZF), made in several threads: SAM specification, section 4.1."""

from __future__ import annotations

import struct
import zlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

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
    text : bytes
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


class OrderedCompressor:
    """Threads that compress portions of text, whose blocks are taken in the order of the text.

    Parameters
    ----------
    n_threads : int
    compress : callable
        Makes the blocks of a portion of text, in whatever form `add` is given that; is called in the threads.
    take : callable
        Is given the blocks of each portion, by `add` and `finish` in their callers' thread.
    """

    def __init__(
        self, n_threads: int, compress: Callable[[Any], list[bytes]], take: Callable[[list[bytes]], None]
    ) -> None:
        self._compress = compress
        self._take = take
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="f5py-bgzf")
        self._jobs: deque[Future[list[bytes]]] = deque()
        self._max_jobs = 2 * n_threads + 2

    def add(self, text: Any) -> None:
        """Let a portion be compressed; if many are waiting, the blocks of the first are taken before."""
        if len(self._jobs) >= self._max_jobs:
            self._take_first()
        self._jobs.append(self._pool.submit(self._compress, text))

    def finish(self) -> None:
        """Take the blocks of all portions."""
        while self._jobs:
            self._take_first()

    def close(self) -> None:
        """End the threads; portions whose blocks have not been taken are dropped."""
        self._pool.shutdown(cancel_futures=True)

    def _take_first(self) -> None:
        blocks = self._jobs[0].result()  # an interrupt of the wait must not lose the portion
        self._jobs.popleft()
        self._take(blocks)
