"""Compressed text for libraries that know gzip only."""

from __future__ import annotations

import bz2
import lzma
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from f5py.errors import InputFileError, unavailable
from f5py.io.files.memory_file import memory_file

_PIECE = 1 << 22


def _unpack_bz2(path: str, out: BinaryIO) -> None:
    with bz2.open(path, "rb") as file:
        shutil.copyfileobj(file, out, _PIECE)


def _unpack_xz(path: str, out: BinaryIO) -> None:
    with lzma.open(path, "rb") as file:
        shutil.copyfileobj(file, out, _PIECE)


def _unpack_zstd(path: str, out: BinaryIO) -> None:
    try:
        import zstandard
    except ImportError as problem:
        raise unavailable(problem, f"{path}: reading zstd files needs the package", "zstandard", "zstd") from None
    # frame by frame, as the library's files do not tell a truncated one
    frame = zstandard.ZstdDecompressor().decompressobj()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            while piece:
                if frame.eof:
                    frame = zstandard.ZstdDecompressor().decompressobj()
                try:
                    out.write(frame.decompress(piece))
                except zstandard.ZstdError as problem:
                    raise ValueError(str(problem)) from problem
                piece = frame.unused_data if frame.eof else b""
    if not frame.eof:
        raise EOFError("the last frame has no end")


#: How files begin, what they are called and what unpacks them.
_FORMATS: tuple[tuple[bytes, str, Callable[[str, BinaryIO], None]], ...] = (
    (b"BZh", "bzip2", _unpack_bz2),
    (b"\xfd7zXZ\x00", "xz", _unpack_xz),
    (b"\x28\xb5\x2f\xfd", "zstd", _unpack_zstd),
)


def name_for_htslib(path: str) -> str:
    """Return an absolute path: htslib takes some relative names, of folders called ``http:`` for instance, for URLs."""
    return path if path == "-" else os.path.abspath(path)


@contextmanager
def readable_by_htslib(path: str) -> Iterator[str]:
    """Yield the name of a file with the content of `path`, which is plain or compressed with gzip.

    That is `path` itself, or, for bzip2, xz and zstd, a file in memory.

    Raises
    ------
    InputFileError
        The file is damaged or truncated.
    MissingDependencyError
        A package is needed.
    """
    found = None
    if os.path.isfile(path):
        with open(path, "rb") as file:
            start = file.read(8)
        found = next(((name, unpack) for magic, name, unpack in _FORMATS if start.startswith(magic)), None)
    if found is None:
        yield path
        return
    name, unpack = found
    with memory_file("f5py reads") as memory:
        try:
            unpack(path, memory)
        except (EOFError, OSError, lzma.LZMAError, ValueError) as problem:
            raise InputFileError(f"{path}: truncated or damaged {name} file") from problem
        memory.flush()
        yield f"/proc/self/fd/{memory.fileno()}"
