"""Byte streams: from an iterator, by whole lines, at an offset."""

import io
import os
from collections.abc import Iterator
from typing import BinaryIO


class BytePieces(io.RawIOBase):
    """Stream over an iterator of bytes; an empty piece ends it."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = memoryview(next(self._pieces, b""))
        size = min(len(target), len(self._rest))
        target[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def whole_lines(source: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield about `size` bytes at a time as whole lines; only the last one may lack its line end."""
    left = b""
    while piece := source.read(size):
        whole, newline, left = (left + piece).rpartition(b"\n")
        if newline:
            yield whole + newline
    if left:
        yield left


def read_at(descriptor: int, size: int, place: int) -> bytes:
    """Read `size` bytes of an open file at an offset, fewer only at its end."""
    pieces = []
    while size > 0 and (piece := os.pread(descriptor, size, place)):
        pieces.append(piece)
        size -= len(piece)
        place += len(piece)
    return b"".join(pieces)
