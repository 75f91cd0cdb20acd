"""Text inputs, plain, compressed or Parquet, as byte streams that are checked for completeness."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO

import numpy as np

from f5py.errors import InputFileError, UsageError, unavailable
from f5py.io.arrow.parquet_table import MAGIC, ParquetText
from f5py.io.bytes.bgzf_blocks import END_BLOCK, GZIP_MAGIC, HEADER_START, is_bgzf
from f5py.io.bytes.byte_pieces import BytePieces
from f5py.io.bytes.file_state import FileState
from f5py.messages.console import NO_LAST_LINE_END, input_warning

_BZIP2_MAGIC, _XZ_MAGIC, _ZSTD_MAGIC = b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
#: Written by some editors before UTF-8.
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BUFFER_SIZE = 1 << 20


def display_name(path: str) -> str:
    """Return an input's name for messages; ``-`` is standard input."""
    return "standard input" if path == "-" else path


def check_read_once(paths: Sequence[str]) -> None:
    """Raise `UsageError` if standard input is named more than once."""
    if paths.count("-") > 1:
        raise UsageError("standard input (-) can be read only once")


def size_of(paths: Sequence[str]) -> int | None:
    """Return the total size of some files, None if one of them is no regular file."""
    try:
        return sum(os.path.getsize(path) for path in paths) if all(map(os.path.isfile, paths)) else None
    except OSError:
        return None


@contextmanager
def open_bytes(
    path: str, advance: Callable[[int], object] = lambda size: None, beginning: bytes = b"", zeros: bool = False
) -> Iterator[BinaryIO]:
    """Open text for reading: plain, compressed (gzip, BGZF, bzip2, xz, zstd), or a Parquet table as text.

    The content decides the compression; ``-`` is standard input. There is a warning if the last line has no end, unless
    the text is FASTQ, where records show truncation.

    `advance` gets the bytes of the file read since its last call. `beginning` has been read from standard input, see
    `beginning_of_input`. With `zeros` the caller refuses NUL bytes. Raises `InputFileError` if the file cannot be
    opened or, while reading, is damaged, truncated, has NUL bytes or has changed; `MissingDependencyError` if
    decompression needs a package.
    """
    shown = display_name(path)
    try:
        # not sys.stdin, which may be replaced or hold buffered bytes
        file = open(0 if path == "-" else path, "rb", _BUFFER_SIZE, closefd=path != "-")  # noqa: SIM115
    except OSError as problem:
        raise InputFileError(f"{shown}: cannot be opened ({problem.strerror}); check the name") from problem
    with file:
        raw = _RawInput(file, shown, advance, beginning)
        try:
            start = raw.peek(len(HEADER_START))
        except OSError as problem:
            raise InputFileError(f"{shown}: cannot be read ({problem.strerror})") from problem
        if start.startswith(MAGIC):
            if not os.path.isfile(path):
                raise InputFileError(f"{shown}: Parquet cannot be read from a pipe; give the name of the file")
            with io.BufferedReader(ParquetText(path), _BUFFER_SIZE) as table:
                yield table
            return
        kind, source = _open_decompressed(raw, start, shown)
        text = io.BufferedReader(_DecodedInput(source, raw, shown, kind, zeros), _BUFFER_SIZE)
        if text.peek(len(_BYTE_ORDER_MARK)).startswith(_BYTE_ORDER_MARK):
            text.read(len(_BYTE_ORDER_MARK))
        yield text


def _open_decompressed(raw: _RawInput, start: bytes, shown: str) -> tuple[str, Any]:
    """Return the compression of a file that begins with `start`, and its text stream."""
    source = io.BufferedReader(raw, _BUFFER_SIZE)
    if start.startswith(GZIP_MAGIC):
        from isal import igzip  # three times as fast as zlib

        return "gzip", igzip.IGzipFile(fileobj=source)
    if start.startswith(_BZIP2_MAGIC):
        return "bzip2", bz2.BZ2File(source)
    if start.startswith(_XZ_MAGIC):
        return "xz", lzma.LZMAFile(source)
    if start.startswith(_ZSTD_MAGIC):
        return "zstd", BytePieces(_zstd_pieces(source, shown))
    return "", source


def _zstd_pieces(source: BinaryIO, shown: str) -> Iterator[bytes]:
    """Decompress frame by frame, because the library's files do not detect truncation."""
    try:
        import zstandard
    except ImportError as problem:
        raise unavailable(problem, f"{shown}: reading zstd files needs the package", "zstandard", "zstd") from None
    frame = zstandard.ZstdDecompressor().decompressobj()
    while piece := source.read(_BUFFER_SIZE):
        while piece:
            if frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
            try:
                if text := frame.decompress(piece):
                    yield text
            except zstandard.ZstdError as problem:
                raise EOFError(str(problem)) from problem
            piece = frame.unused_data if frame.eof else b""
    if not frame.eof:
        raise EOFError("the last frame has no end")


def beginning_of_input(size: int) -> tuple[bytes, bytes]:
    """Read at least `size` bytes of standard input, or all of it; raise `InputFileError` if that fails.

    Returns the bytes, which the next reader needs, and the same decompressed if they are gzip.
    """
    beginning = content = b""
    try:
        while len(content) < size and (piece := os.read(0, _BUFFER_SIZE)):
            beginning += piece
            content = beginning
            if beginning.startswith(GZIP_MAGIC):
                content = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(beginning, _BUFFER_SIZE)
    except zlib.error:  # the reader will report it
        content = beginning
    except OSError as problem:
        raise InputFileError(f"{display_name('-')}: cannot be read ({problem.strerror})") from problem
    return beginning, content


class _RawInput(io.RawIOBase):
    """Bytes of a file or pipe, with a peek at its beginning and a check of its end."""

    def __init__(self, file: BinaryIO, shown: str, advance: Callable[[int], object], beginning: bytes) -> None:
        self._file = file
        self._shown = shown
        self._advance = advance
        self._seen = beginning
        self._state = FileState(file.fileno(), shown) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
        self._is_bgzf = False
        self._end = b""

    def peek(self, size: int) -> bytes:
        """Return the first `size` bytes, fewer only if the file is shorter."""
        self._seen += self._file.read(max(size - len(self._seen), 0))
        self._is_bgzf = is_bgzf(self._seen)
        return self._seen[:size]

    def check_end(self) -> None:
        """Raise `InputFileError` unless the file, read to its end, is complete and unchanged."""
        if self._state is not None:
            self._state.check()
        if self._is_bgzf and self._end != END_BLOCK:
            raise InputFileError(
                f"{self._shown}: truncated: the empty block that ends a file of bgzip is missing; copy or make the "
                "file again"
            )

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        if self._seen:
            size = min(len(target), len(self._seen))
            target[:size] = self._seen[:size]
            self._seen = self._seen[size:]
        else:
            size = self._file.readinto(target)  # type: ignore[attr-defined]
            self._advance(size)
        if self._is_bgzf:
            self._end = (self._end + bytes(target[max(size - len(END_BLOCK), 0) : size]))[-len(END_BLOCK) :]
        return size


class _DecodedInput(io.RawIOBase):
    """Decompressed text, checked for damage and completeness."""

    def __init__(self, file: BinaryIO, source: _RawInput, name: str, kind: str, zeros: bool) -> None:
        self._file = file
        self._source = source
        self._name = name
        self._kind = kind
        self._zeros = zeros
        self._n_read = 0
        self._ends_line = True
        self._is_fastq = self._is_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        from isal import isal_zlib

        try:
            size: int = self._file.readinto(target)  # type: ignore[attr-defined]
        except (EOFError, isal_zlib.error, gzip.BadGzipFile, lzma.LZMAError) as problem:
            raise self._damaged(problem) from problem
        except OSError as problem:
            if problem.errno is None:  # of the bz2 module
                raise self._damaged(problem) from problem
            raise InputFileError(f"{self._name}: cannot be read ({problem.strerror})") from problem
        if size:
            self._look_at(target[:size])
        elif not self._is_ended:
            self._is_ended = True
            self._source.check_end()
            if not (self._ends_line or self._is_fastq):
                input_warning("input", f"{self._name}: {NO_LAST_LINE_END}")
        return size

    def _look_at(self, text: memoryview) -> None:
        piece = np.frombuffer(text, np.uint8)
        if not self._zeros and not piece.min():
            raise InputFileError(
                f"{self._name}: has a byte of zero at place {self._n_read + int(piece.argmin())} of its text; the file "
                "is damaged, copy or make it again"
            )
        if not self._n_read:
            self._is_fastq = text[:1] == b"@"
        self._n_read += len(text)
        self._ends_line = piece[-1] == ord("\n")

    def _damaged(self, problem: Exception) -> InputFileError:
        return InputFileError(
            f"{self._name}: damaged or truncated {self._kind} data ({problem}); copy or make the file again"
        )


class JoinedTables(BytePieces):
    """Stream over tables, opened one after the other as by `open_bytes`."""

    def __init__(
        self, paths: Sequence[str], advance: Callable[[int], object] = lambda size: None, beginning: bytes = b""
    ) -> None:
        check_read_once(paths)
        self._beginning = beginning
        self._advance = advance
        self._paths = list(paths)
        self._first_line = [1]
        self._files = ExitStack()
        super().__init__(self._read())

    def place(self, line: int) -> str:
        """Return the table and its 1-based line of a 1-based line of the stream."""
        at = bisect_right(self._first_line, line) - 1
        return f"{display_name(self._paths[at])}, line {line - self._first_line[at] + 1}"

    def close(self) -> None:
        self._files.close()
        super().close()

    def _read(self) -> Iterator[bytes]:
        n_lines = 0
        for at, path in enumerate(self._paths):
            if at:
                self._first_line.append(n_lines + 1)
            with ExitStack() as self._files:
                file: BinaryIO = self._files.enter_context(
                    open_bytes(path, self._advance, self._beginning if path == "-" else b"")
                )
                piece = last = b""
                while piece := file.read1(1 << 20):  # type: ignore[attr-defined]
                    if at + 1 < len(self._paths):
                        n_lines += piece.count(b"\n")
                    last = piece
                    yield piece
                if last and not last.endswith(b"\n") and at + 1 < len(self._paths):
                    n_lines += 1
                    yield b"\n"


@contextmanager
def open_tables(
    paths: Sequence[str], advance: Callable[[int], object] = lambda size: None, beginning: bytes = b""
) -> Iterator[tuple[BinaryIO, Callable[[int], str]]]:
    """Open tables as one stream; also yield a function that maps its line numbers to tables and lines."""
    if len(paths) == 1:
        with open_bytes(paths[0], advance, beginning) as source:
            yield source, lambda line: f"{display_name(paths[0])}, line {line}"
        return
    with JoinedTables(paths, advance, beginning) as joined, io.BufferedReader(joined, 1 << 20) as source:
        yield source, joined.place
