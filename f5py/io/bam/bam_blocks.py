"""The uncompressed bytes of a BAM file, in portions that are inflated in threads."""

from __future__ import annotations

import struct
import zlib
from array import array
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.io.bytes.bgzf_blocks import BLOCK_MAGIC, MAX_BLOCK

_FIXED_HEADER = 12
_FOOTER = struct.Struct("<II")
#: Bytes that are read at a time.
READ_BYTES = 1 << 20
#: Threads: one inflates some 300 megabytes in a second, which is what a hundred processors ask for.
_N_THREADS = 2


class DamagedBlocksError(OSError):
    """The stream is not what it should be; the text is the reason."""


def inflated_portions(file: BinaryIO, first_bytes: int = READ_BYTES) -> Generator[bytearray, None, None]:
    """Yield the text of a BGZF stream, about a megabyte of the stream at a time.

    Parameters
    ----------
    file : binary file
        Read from where it stands to its end.
    first_bytes : int
        So much of the stream is read first, then twice as much, until it is a megabyte.

    Raises
    ------
    DamagedBlocksError
        After the text before the damage has been yielded.
    OSError
        The file cannot be read; likewise.
    """
    waiting: deque[Future[tuple[bytearray, OSError | None]]] = deque()
    with ThreadPoolExecutor(_N_THREADS, thread_name_prefix="f5py-bam") as pool:
        try:
            portions = block_portions(file, first_bytes)
            is_at_end = False
            while waiting or not is_at_end:
                while len(waiting) <= _N_THREADS and not is_at_end:
                    portion = next(portions, None)
                    if portion is None:
                        is_at_end = True
                    else:
                        waiting.append(pool.submit(_inflate, *portion))
                if waiting:
                    text, problem = waiting.popleft().result()
                    yield text
                    if problem is not None:
                        raise problem
        finally:
            pool.shutdown(cancel_futures=True)


def block_places(file: BinaryIO) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find where the blocks of a BGZF stream begin, and how much text is before each; int64.

    Raises
    ------
    DamagedBlocksError
        The stream is damaged or truncated.
    OSError
        The file cannot be read.
    """
    places, texts = array("q"), array("q")
    n_text, begin = 0, file.tell()
    for data, blocks, problem in block_portions(file, READ_BYTES):
        if problem is not None:
            raise problem
        at = 0
        for _, footer, end in blocks:
            places.append(begin + at)
            texts.append(n_text)
            n_text += text_size(data, footer)
            at = end
        begin += at
    return np.array(places, np.int64), np.array(texts, np.int64)


def block_size(data: bytes) -> int:
    """Bytes of the block that `data` begin with.

    Raises
    ------
    DamagedBlocksError
        It is damaged, or not whole.
    """
    block = _block_at(data, 0)
    if block is None:
        raise DamagedBlocksError("the file is truncated")
    return block[2]


def text_size(data: bytes, footer: int) -> int:
    """Bytes of text in the block whose footer is there."""
    return int(_FOOTER.unpack_from(data, footer)[1])


def first_text(data: bytes) -> bytes:
    """Decompress the block that `data` begins with.

    Raises
    ------
    DamagedBlocksError
        It is damaged, or not whole.
    """
    block = _block_at(data, 0)
    text, problem = _inflate(data, [] if block is None else [block], None)
    if block is None or problem is not None:
        raise DamagedBlocksError("a block is damaged")
    return bytes(text)


def block_portions(file: BinaryIO, n_bytes: int) -> Iterator[tuple[bytes, list[tuple[int, int, int]], OSError | None]]:
    """Yield bytes of the stream with the whole blocks that they begin with, and what is wrong after these.

    Of a block begin of the packed text, and begin and end of the footer.
    """
    rest = b""
    problem: OSError | None = None
    while problem is None:
        try:
            piece = file.read(n_bytes)
        except OSError as failure:
            yield b"", [], failure
            return
        if not piece:
            break
        n_bytes = min(2 * n_bytes, READ_BYTES)
        data = rest + piece
        blocks = []
        at = 0
        try:
            while (found := _block_at(data, at)) is not None:
                blocks.append(found)
                at = found[2]
        except DamagedBlocksError as damage:
            problem = damage
        rest = data[at:]
        if len(rest) > MAX_BLOCK:
            problem = problem or DamagedBlocksError("a block is damaged")
        yield data, blocks, problem
    if rest and problem is None:
        yield b"", [], DamagedBlocksError("the file is truncated")


def _block_at(data: bytes, at: int) -> tuple[int, int, int] | None:
    """Find the block that begins at `at`, or None if it is not whole."""
    header = data[at : at + _FIXED_HEADER]
    if len(header) < _FIXED_HEADER:
        return None
    if not header.startswith(BLOCK_MAGIC):
        raise DamagedBlocksError("a block is damaged")
    begin = at + _FIXED_HEADER + int.from_bytes(header[10:12], "little")
    if len(data) < begin:
        return None
    field = at + _FIXED_HEADER
    while field + 4 <= begin:
        name, length = data[field : field + 2], int.from_bytes(data[field + 2 : field + 4], "little")
        if name == b"BC" and length == 2:
            end = at + int.from_bytes(data[field + 4 : field + 6], "little") + 1
            if end < begin + _FOOTER.size:
                raise DamagedBlocksError("a block is damaged")
            return (begin, end - _FOOTER.size, end) if end <= len(data) else None
        field += 4 + length
    raise DamagedBlocksError("a block is damaged")


def _inflate(
    data: bytes, blocks: list[tuple[int, int, int]], problem: OSError | None
) -> tuple[bytearray, OSError | None]:
    """Decompress blocks as far as they are whole, and return what is wrong after them."""
    texts: list[bytes] = []
    view = memoryview(data)
    for begin, footer, _ in blocks:
        checksum, length = _FOOTER.unpack_from(data, footer)
        try:
            text = zlib.decompress(view[begin:footer], -zlib.MAX_WBITS, MAX_BLOCK)
        except zlib.error:
            text = b""
        if len(text) != length or zlib.crc32(text) != checksum:
            problem = DamagedBlocksError("a block is damaged")
            break
        texts.append(text)
    return bytearray().join(texts), problem
