"""Text that may be compressed, from a file or standard input, as a stream of bytes."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from f5py.errors import InputFileError, UsageError
from f5py.io.arrow.parquet_table import MAGIC
from f5py.io.arrow.parquet_text import ParquetText

_GZIP_MAGIC = b"\x1f\x8b"
_BUFFER_SIZE = 1 << 20


def shown_name(path: str) -> str:
    """Name an input in messages; ``-`` is standard input."""
    return "standard input" if path == "-" else path


def check_read_once(paths: Sequence[str]) -> None:
    """Raise `UsageError` if standard input is named more than once."""
    if paths.count("-") > 1:
        raise UsageError("standard input (-) can be read only once")


def size_of(paths: Sequence[str]) -> int | None:
    """Bytes of some files together, None if one of them is no regular file."""
    try:
        return sum(os.path.getsize(path) for path in paths) if all(map(os.path.isfile, paths)) else None
    except OSError:
        return None


@contextmanager
def open_bytes(
    path: str, advance: Callable[[int], object] = lambda size: None, beginning: bytes = b""
) -> Iterator[BinaryIO]:
    """Open plain, gzip or BGZF text for reading, or a Parquet table as text; ``-`` is standard input.

    The content decides whether it is compressed, not the name, so a compressed pipe is read as well. Raises
    `InputFileError` if the file cannot be opened, or, while the block reads from it, the compressed data turn out to be
    damaged or truncated.

    Parameters
    ----------
    advance : function, optional
        Called with the number of bytes of the file, compressed or not, that have been read since its last call.
    beginning : bytes, optional
        What has been read of standard input already; see `beginning_of_input`.
    """
    shown = shown_name(path)
    try:
        # a file object of our own for standard input: Python's may be replaced or already hold bytes
        file = open(0 if path == "-" else path, "rb", _BUFFER_SIZE, closefd=path != "-")  # noqa: SIM115
    except OSError as problem:
        raise InputFileError(f"{shown}: cannot be opened ({problem.strerror}); check the name") from problem
    with file:
        raw = _Peekable(file, advance, beginning)
        try:
            beginning = raw.peek(len(MAGIC))
        except OSError as problem:
            raise InputFileError(f"{shown}: cannot be read ({problem.strerror})") from problem
        if beginning == MAGIC:
            if not os.path.isfile(path):
                raise InputFileError(f"{shown}: Parquet cannot be read from a pipe; give the name of the file")
            with io.BufferedReader(ParquetText(path), _BUFFER_SIZE) as table:
                yield table
            return
        source: BinaryIO = io.BufferedReader(raw, _BUFFER_SIZE)
        if beginning.startswith(_GZIP_MAGIC):
            from isal import igzip  # three times as fast as zlib

            source = igzip.IGzipFile(fileobj=source)
        yield io.BufferedReader(_Checked(source, shown), _BUFFER_SIZE)


def beginning_of_input(size: int) -> tuple[bytes, bytes]:
    """Read standard input until it can be told what it is. Raises `InputFileError` if it cannot be read.

    Parameters
    ----------
    size : int
        Bytes that are wanted at least, if there are so many.

    Returns
    -------
    beginning, content : bytes
        What has been read, which must be handed to whoever reads on; and the same uncompressed, if it is gzip.
    """
    beginning = content = b""
    try:
        while len(content) < size and (piece := os.read(0, _BUFFER_SIZE)):
            beginning += piece
            content = beginning
            if beginning.startswith(_GZIP_MAGIC):
                content = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(beginning, _BUFFER_SIZE)
    except zlib.error:  # for the reader to tell
        content = beginning
    except OSError as problem:
        raise InputFileError(f"{shown_name('-')}: cannot be read ({problem.strerror})") from problem
    return beginning, content


def read_at(descriptor: int, size: int, place: int) -> bytes:
    """Read so many bytes of an open file, fewer only at its end: a single call may give less."""
    pieces = []
    while size > 0 and (piece := os.pread(descriptor, size, place)):
        pieces.append(piece)
        size -= len(piece)
        place += len(piece)
    return b"".join(pieces)


class _Peekable(io.RawIOBase):
    """A file whose first bytes can be looked at, even if it is a pipe."""

    def __init__(self, file: BinaryIO, advance: Callable[[int], object], beginning: bytes) -> None:
        self._file = file
        self._advance = advance
        self._seen = beginning

    def peek(self, size: int) -> bytes:
        """Return the first `size` bytes, fewer only if the file is shorter."""
        self._seen += self._file.read(max(size - len(self._seen), 0))
        return self._seen[:size]

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        if self._seen:
            size = min(len(target), len(self._seen))
            target[:size] = self._seen[:size]
            self._seen = self._seen[size:]
            return size
        size = self._file.readinto(target)  # type: ignore[attr-defined]
        self._advance(size)
        return size


class _Checked(io.RawIOBase):
    """A file whose reading errors name it."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        from isal import isal_zlib

        try:
            return self._file.readinto(target)  # type: ignore[attr-defined]
        except (EOFError, isal_zlib.error, gzip.BadGzipFile) as problem:
            raise InputFileError(
                f"{self._name}: damaged or truncated gzip data ({problem}); copy or make the file again"
            ) from problem
        except OSError as problem:
            raise InputFileError(f"{self._name}: cannot be read ({problem.strerror})") from problem
