"""Text written as blocked gzip (bgzip), which tabix, samtools and plain gzip read."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any, BinaryIO

from f5py.io.bytes.bgzf_blocks import BLOCK_BYTES, END_BLOCK, bgzf_blocks
from f5py.options.output_names import PACKED
from f5py.threads.ordered import OrderedWork

_BYTES_PER_JOB = 16 * BLOCK_BYTES


class BgzipOutput:
    """Compresses in threads what is written to it, in order. One thread at a time gets into its methods.

    Raises `ValueError` from `write` and `flush` after the end.

    Parameters
    ----------
    file : binary file
        Closed with this object. What has been given to it is flushed, so that it holds whole blocks at any time.
    n_threads : int
        Compression threads. The bytes written do not depend on it.

    Attributes
    ----------
    n_written : int
        Bytes of whole blocks that the file has for certain.
    """

    def __init__(self, file: BinaryIO, n_threads: int) -> None:
        self._file = file
        self._compressor = OrderedWork(n_threads, bgzf_blocks, self._put, "f5py-bgzf")
        self._pending = bytearray()
        self._closed = False
        self._is_broken = False
        self.n_written = 0
        self._lock = threading.Lock()

    def write(self, text: Any) -> None:
        """Take text; whole groups of blocks are compressed."""
        with self._lock:
            self._check_open()
            self._pending += memoryview(text)  # an array would be added to, not appended
            while len(self._pending) >= _BYTES_PER_JOB:
                self._compressor.add(self._first_pending())

    def flush(self) -> None:
        """Write what has been compressed."""
        with self._lock:
            self._check_open()
            self._compressor.finish()

    def close(self) -> None:
        """Compress the rest, mark the end, and close the file. May be called twice."""
        with self._lock:
            if self._closed:
                return
            try:
                self._compressor.add(self._first_pending())
                self._compressor.finish()
                self._put([END_BLOCK])
                self._file.close()
            finally:
                self._end()

    def end_early(self) -> None:
        """Compress the rest and close the file, without the mark of a complete one. May be called after an error."""
        with self._lock:
            if self._closed:
                return
            with suppress(OSError):
                self._compressor.add(self._first_pending())
                self._compressor.finish()
            self._end()

    def abandon(self) -> None:
        """Close a file that cannot be written further, without the mark of a complete one. May be called twice."""
        with self._lock:
            self._end()

    def _first_pending(self) -> bytes:
        portion = bytes(self._pending[:_BYTES_PER_JOB])
        del self._pending[:_BYTES_PER_JOB]
        return portion

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("write to a closed bgzip file")

    def _put(self, blocks: list[bytes]) -> None:
        if self._is_broken:
            return  # there may be a part of a block, after which nothing can follow
        text = b"".join(blocks)
        self._is_broken = True
        self._file.write(text)
        self._file.flush()
        self._is_broken = False
        self.n_written += len(text)

    def _end(self) -> None:
        self._closed = True
        self._compressor.close()
        with suppress(OSError):
            self._file.close()


def is_bgzip_name(path: str) -> bool:
    """Return whether output of that name is to be compressed."""
    return os.fspath(path).endswith(PACKED)
