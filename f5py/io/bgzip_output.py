"""Text written as blocked gzip (bgzip), which tabix, samtools and plain gzip read."""

from __future__ import annotations

import os
import struct
import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, BinaryIO

#: Bytes of text in a block, as bgzip has it: a compressed block then never exceeds 64 KiB.
_BLOCK_BYTES = 0xFF00
_BLOCKS_PER_JOB = 16
#: Compression is several times faster than with zlib's default level; tables of numbers grow by a tenth.
_LEVEL = 2
_HEADER_START = bytes.fromhex("1f8b08040000000000ff060042430200")
_HEADER_SIZE = 18
_FOOTER_SIZE = 8
_END_BLOCK = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")


class BgzipOutput:
    """Compresses in threads what is written to it, in order.

    Parameters
    ----------
    file : binary file
        Closed with this object.
    n_threads : int
        Compression threads. The bytes written do not depend on it.
    """

    def __init__(self, file: BinaryIO, n_threads: int) -> None:
        self._file = file
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="f5py-bgzip")
        self._jobs: deque[Future[bytes]] = deque()
        self._max_jobs = 2 * n_threads + 2
        self._pending = bytearray()

    def write(self, text: Any) -> None:
        """Take text; whole groups of blocks are compressed."""
        self._pending += memoryview(text)  # an array would be added to, not appended
        size = _BLOCK_BYTES * _BLOCKS_PER_JOB
        whole = len(self._pending) - len(self._pending) % size
        for start in range(0, whole, size):
            self._submit(bytes(self._pending[start : start + size]))
        del self._pending[:whole]

    def flush(self) -> None:
        """Write what has been compressed."""
        while self._jobs:
            self._file.write(self._jobs.popleft().result())
        self._file.flush()

    def close(self) -> None:
        """Compress the rest, mark the end, and close the file. May be called twice."""
        if self._file.closed:
            return
        try:
            self._submit(bytes(self._pending))
            self._pending.clear()
            self.flush()
            self._file.write(_END_BLOCK)
            self._file.flush()
        finally:
            self._pool.shutdown(cancel_futures=True)
            with suppress(OSError):
                self._file.close()

    def abandon(self) -> None:
        """Close a file that cannot be written further, without the mark of a complete one."""
        self._pool.shutdown(cancel_futures=True)
        with suppress(OSError):
            self._file.close()

    def _submit(self, text: bytes) -> None:
        if len(self._jobs) >= self._max_jobs:
            self._file.write(self._jobs.popleft().result())
        self._jobs.append(self._pool.submit(_compress, text))


def _compress(text: bytes) -> bytes:
    """Compress `text` into complete blocks."""
    blocks = []
    for start in range(0, len(text), _BLOCK_BYTES):
        piece = text[start : start + _BLOCK_BYTES]
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        packed = packer.compress(piece) + packer.flush()
        size = _HEADER_SIZE + len(packed) + _FOOTER_SIZE
        blocks += [
            _HEADER_START,
            struct.pack("<H", size - 1),
            packed,
            struct.pack("<II", zlib.crc32(piece), len(piece)),
        ]
    return b"".join(blocks)


def is_bgzip_name(path: str) -> bool:
    """Whether output of that name is to be compressed."""
    return os.fspath(path).endswith((".gz", ".bgz"))
