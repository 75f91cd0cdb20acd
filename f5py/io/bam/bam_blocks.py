"""The uncompressed bytes of a BAM file, in portions that are inflated in threads.

By zlib: libdeflate and ISA-L are two to three times as fast, which is 1 % of a run (benchmarks/results/inflating.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.io.bytes.bgzf_blocks import FOOTER_SIZE, HEADER_SIZE, MAX_BLOCK
from f5py.io.bytes.c_functions import zlib_functions

#: No block is shorter: a header with the size, and a footer.
_LEAST_BLOCK = HEADER_SIZE + FOOTER_SIZE
_NONE = np.empty(0, np.int64)
_NO_BLOCKS = np.empty((0, 3), np.int64)
#: Bytes that are read at a time, and about how many of text these may hold: alignments of the same bases are packed to
#: a twentieth.
READ_BYTES, _TEXT_BYTES = 1 << 20, 1 << 22
#: Threads: one inflates some 300 megabytes in a second, which is what a hundred processors ask for.
N_THREADS = 2


class DamagedBlocksError(OSError):
    """The stream is not what it should be; the text is the reason."""


def inflated_portions(
    file: BinaryIO, first_bytes: int = READ_BYTES, n_threads: int = N_THREADS
) -> Generator[NDArray[np.uint8], None, None]:
    """Yield the text of a BGZF stream, about a megabyte of the stream at a time.

    Parameters
    ----------
    file : binary file
        Read from where it stands to its end.
    first_bytes : int
        So much of the stream is read first, then twice as much, until it is a megabyte.
    n_threads : int
        Threads that inflate.

    Raises
    ------
    DamagedBlocksError
        After the text before the damage has been yielded.
    OSError
        The file cannot be read; likewise.
    """
    waiting: deque[Future[tuple[NDArray[np.uint8], OSError | None]]] = deque()
    with ThreadPoolExecutor(n_threads, thread_name_prefix="f5py-bam") as pool:
        try:
            portions = block_portions(file, first_bytes)
            is_at_end = False
            while waiting or not is_at_end:
                while len(waiting) <= n_threads and not is_at_end:
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
    """Bytes of the block that `data` begin with. Raises `DamagedBlocksError` if it is damaged, or not whole."""
    return int(_first_block(data)[0, 2])


def text_sizes(data: bytes, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes of text in blocks, by their footers; int64, shape (n,)."""
    lengths = np.frombuffer(data, np.uint8)[blocks[:, 1, None] + np.arange(4, 8)]
    return lengths @ (1 << np.arange(0, 32, 8, dtype=np.int64))


def first_text(data: bytes) -> bytes:
    """Decompress the block that `data` begins with. Raises `DamagedBlocksError` if it is damaged, or not whole."""
    text, problem = _inflate(data, _first_block(data), None)
    if problem is not None:
        raise problem
    return text.tobytes()


def _first_block(data: bytes) -> NDArray[np.int64]:
    """Find the block that `data` begin with; int64, shape (1, 3)."""
    from f5py.io.bytes._bgzf_numba import DAMAGED, block_at

    block = np.empty((1, 3), np.int64)
    end = block_at(np.frombuffer(data, np.uint8), 0, block[0])
    if end < 0:
        raise DamagedBlocksError("a block is damaged" if end == DAMAGED else "the file is truncated")
    return block


def block_portions(file: BinaryIO, n_bytes: int) -> Iterator[tuple[bytes, NDArray[np.int64], OSError | None]]:
    """Yield bytes of the stream with the whole blocks that they begin with, and what is wrong after these.

    Blocks are int64 of shape (n, 3): where the packed text begins, where the footer begins, and where the block ends.
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
    """Choose how much of a stream is read after `n_bytes` that have brought these blocks."""
    text = int(text_sizes(data, blocks).sum()) if len(blocks) else 0
    return max(min(2 * n_bytes, READ_BYTES, n_bytes * _TEXT_BYTES // max(text, 1)), MAX_BLOCK)


def _blocks_of(data: bytes) -> tuple[NDArray[np.int64], bool]:
    """Find the whole blocks that `data` begin with, and say whether what follows is damaged."""
    from f5py.io.bytes._bgzf_numba import list_blocks

    blocks = np.empty((len(data) // _LEAST_BLOCK + 2, 3), np.int64)
    n, is_damaged = list_blocks(np.frombuffer(data, np.uint8), blocks)
    return blocks[:n].copy(), bool(is_damaged)


def _inflate(
    data: bytes, blocks: NDArray[np.int64], problem: OSError | None
) -> tuple[NDArray[np.uint8], OSError | None]:
    """Inflate the blocks as far as they are whole; return their text, and what is wrong after it."""
    from f5py.io.bytes._bgzf_numba import inflate_blocks, text_offsets

    packed = np.frombuffer(data, np.uint8)
    offsets = np.empty(len(blocks) + 1, np.int64)
    n = text_offsets(packed, blocks, offsets)
    text = np.empty(offsets[n], np.uint8)
    n_whole = inflate_blocks(zlib_functions(), packed, blocks[:n], offsets, text)
    if n_whole < len(blocks):
        problem = DamagedBlocksError("a block is damaged")
    return text[: offsets[n_whole]], problem
