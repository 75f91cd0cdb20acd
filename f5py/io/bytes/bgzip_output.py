"""Output compressed as BGZF, which tabix, samtools and gzip read."""

import os
import threading
from contextlib import suppress
from typing import Any, BinaryIO

from f5py.io.bytes.bgzf_blocks import BLOCK_BYTES, END_BLOCK, bgzf_blocks
from f5py.options.output_names import PACKED
from f5py.threads.ordered import OrderedWork

_BYTES_PER_JOB = 16 * BLOCK_BYTES


class BgzipOutput:
    """Ordered BGZF compression in threads, which do not change the bytes. For one thread at a time.

    The file is flushed after whole blocks, which have `n_written` bytes, and closed with this object.
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
        """Append text; raise `ValueError` after the end."""
        with self._lock:
            self._check_open()
            self._pending += memoryview(text)
            while len(self._pending) >= _BYTES_PER_JOB:
                self._compressor.add(self._first_pending())

    def flush(self) -> None:
        """Write all compressed blocks; raise `ValueError` after the end."""
        with self._lock:
            self._check_open()
            self._compressor.finish()

    def close(self) -> None:
        """Compress the rest, write the end block and close the file. May be called twice."""
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
        """Compress the rest and close the file without an end block. May be called after an error."""
        with self._lock:
            if self._closed:
                return
            with suppress(OSError):
                self._compressor.add(self._first_pending())
                self._compressor.finish()
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
            return  # the file may end within a block
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
    """Return whether the name of an output asks for compression."""
    return os.fspath(path).endswith(PACKED)
