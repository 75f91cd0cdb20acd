"""Decompression of BAM files in threads, by zlib (benchmarks/results/inflating.md)."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.io.bytes._bgzf_numba import DAMAGED, block_at, inflate_blocks, list_blocks, text_offsets
from f5py.io.bytes.bgzf_blocks import FOOTER_SIZE, HEADER_SIZE, MAX_BLOCK
from f5py.io.bytes.c_functions import zlib_functions
from f5py.threads.ordered import prefetch_ordered

#: Smallest block.
_LEAST_BLOCK = HEADER_SIZE + FOOTER_SIZE
_NONE = np.empty(0, np.int64)
_NO_BLOCKS = np.empty((0, 3), np.int64)
#: Bytes per read, and about the most text they may decompress to.
READ_BYTES, _TEXT_BYTES = 1 << 20, 1 << 22
#: Decompression threads.
N_THREADS = 2


class DamagedBlocksError(OSError):
    """Damage of a BGZF stream, with the reason as text."""


def inflate_portions(
    file: BinaryIO, first_bytes: int = READ_BYTES, n_threads: int = N_THREADS
) -> Generator[NDArray[np.uint8], None, None]:
    """Yield the text of a BGZF stream, about a megabyte of the stream at a time.

    Reads from the current position; the first read has `first_bytes`, later ones twice as many, up to a megabyte.
    Raises `DamagedBlocksError`, or `OSError` for failed reads, after the text before the damage.
    """
    portions = block_portions(file, first_bytes)
    # one more is inflated while the caller has one
    with closing(prefetch_ordered(portions, lambda one: _inflate(*one), n_threads + 1, "f5py-bam")) as texts:
        for text, problem in texts:
            yield text
            if problem is not None:
                raise problem


def block_places(file: BinaryIO) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the file offset and text offset of each block; int64.

    Raises `DamagedBlocksError` for a damaged or truncated stream, `OSError` for failed reads.
    """
    places, sizes = [_NONE], [_NONE]
    begin = file.tell()
    for data, blocks, problem in block_portions(file, READ_BYTES):
        if problem is not None:
            raise problem
        ends = blocks[:, 2]
        places.append(begin + np.concatenate([_NONE, [0], ends])[: len(ends)])
        sizes.append(text_sizes(data, blocks))
        begin += int(ends[-1]) if len(ends) else 0
    return np.concatenate(places), offsets_of(np.concatenate(sizes))[:-1]


def block_size(data: bytes) -> int:
    """Return the size of the first block; raise `DamagedBlocksError` if it is damaged or incomplete."""
    return int(_first_block(data)[0, 2])


def text_sizes(data: bytes, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bytes of text in blocks from their footers; int64, shape (n,)."""
    lengths = np.frombuffer(data, np.uint8)[blocks[:, 1, None] + np.arange(4, 8)]
    return lengths @ (1 << np.arange(0, 32, 8, dtype=np.int64))


def first_text(data: bytes) -> bytes:
    """Decompress the first block; raise `DamagedBlocksError` if it is damaged or incomplete."""
    text, problem = _inflate(data, _first_block(data), None)
    if problem is not None:
        raise problem
    return text.tobytes()


def _first_block(data: bytes) -> NDArray[np.int64]:
    """Locate the first block; int64, shape (1, 3)."""
    block = np.empty((1, 3), np.int64)
    end = block_at(np.frombuffer(data, np.uint8), 0, block[0])
    if end < 0:
        raise DamagedBlocksError("a block is damaged" if end == DAMAGED else "the file is truncated")
    return block


def block_portions(file: BinaryIO, n_bytes: int) -> Iterator[tuple[bytes, NDArray[np.int64], OSError | None]]:
    """Yield bytes of the stream with the whole blocks at their start and the error after these.

    Blocks are int64 of shape (n, 3): offsets of the compressed text, of the footer and of the block's end.
    """
    rest = b""
    problem: OSError | None = None
    while problem is None:
        try:
            piece = file.read(n_bytes)
        except OSError as failure:
            yield b"", _NO_BLOCKS, failure
            return
        if not piece:
            break
        data = rest + piece
        blocks, is_damaged = _blocks_of(data)
        n_bytes = _next_size(n_bytes, data, blocks)
        if is_damaged:
            problem = DamagedBlocksError("a block is damaged")
        rest = data[int(blocks[-1, 2]) if len(blocks) else 0 :]
        if len(rest) > MAX_BLOCK:
            problem = problem or DamagedBlocksError("a block is damaged")
        yield data, blocks, problem
    if rest and problem is None:
        yield b"", _NO_BLOCKS, DamagedBlocksError("the file is truncated")


def _next_size(n_bytes: int, data: bytes, blocks: NDArray[np.int64]) -> int:
    """Return the size of the next read, after `n_bytes` with these blocks."""
    text = int(text_sizes(data, blocks).sum()) if len(blocks) else 0
    return max(min(2 * n_bytes, READ_BYTES, n_bytes * _TEXT_BYTES // max(text, 1)), MAX_BLOCK)


def _blocks_of(data: bytes) -> tuple[NDArray[np.int64], bool]:
    """Locate the whole blocks at the start of `data`; also return whether the next one is damaged."""
    blocks = np.empty((len(data) // _LEAST_BLOCK + 2, 3), np.int64)
    n, is_damaged = list_blocks(np.frombuffer(data, np.uint8), blocks)
    return blocks[:n].copy(), bool(is_damaged)


def _inflate(
    data: bytes, blocks: NDArray[np.int64], problem: OSError | None
) -> tuple[NDArray[np.uint8], OSError | None]:
    """Inflate the undamaged blocks; return their text and the error after it."""
    packed = np.frombuffer(data, np.uint8)
    offsets = np.empty(len(blocks) + 1, np.int64)
    n = text_offsets(packed, blocks, offsets)
    text = np.empty(offsets[n], np.uint8)
    n_whole = inflate_blocks(zlib_functions(), packed, blocks[:n], offsets, text)
    if n_whole < len(blocks):
        problem = DamagedBlocksError("a block is damaged")
    return text[: offsets[n_whole]], problem
