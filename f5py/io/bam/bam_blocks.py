"""Decompression of BAM files in threads."""

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.io.bytes.bgzf_blocks import MAX_BLOCK, DamagedBlocksError, block_at, first_block, inflate_blocks
from f5py.threads.ordered import prefetch_ordered

#: Bytes per read, and about the most text they may decompress to.
READ_BYTES, _TEXT_BYTES = 1 << 21, 5 << 20
#: Decompression threads.
N_THREADS = 2
#: Bytes of a stream with the whole blocks at their start, as by `block_at`, and the error after these.
_Portion = tuple[bytes, list[tuple[int, int, int]], OSError | None]


def inflate_portions(
    file: BinaryIO, first_bytes: int = READ_BYTES, n_threads: int = N_THREADS
) -> Generator[bytes, None, None]:
    """Yield the text of a BGZF stream, about two megabytes of the stream at a time.

    Reads from the current position; the first read has `first_bytes`, later ones twice as many, up to two megabytes.
    Raises `DamagedBlocksError`, or `OSError` for failed reads, after the text before the damage.
    """
    portions = block_portions(file, first_bytes)
    # one more is inflated while the caller has one
    with closing(prefetch_ordered(portions, _inflate, n_threads + 1, "f5py-bam")) as texts:
        for text, problem in texts:
            yield text
            if problem is not None:
                raise problem


def block_places(file: BinaryIO) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return offsets of blocks, and the end, in the file and in its text; raise as `inflate_portions`."""
    places, sizes = [file.tell()], []
    for _, blocks, problem in block_portions(file, READ_BYTES):
        if problem is not None:
            raise problem
        begin = places[-1]
        places += [begin + end for _, end, _ in blocks]
        sizes += [n_text for _, _, n_text in blocks]
    return np.array(places, np.int64), offsets_of(sizes)


def block_portions(file: BinaryIO, n_bytes: int) -> Iterator[_Portion]:
    """Yield bytes of the stream with their whole blocks; the first read has `n_bytes`."""
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
        data = rest + piece
        blocks: list[tuple[int, int, int]] = []
        end = 0
        try:
            while (block := block_at(data, end)) is not None:
                blocks.append(block)
                end = block[1]
        except DamagedBlocksError as damage:
            problem = damage
        n_text = sum(n for _, _, n in blocks)
        n_bytes = max(min(2 * n_bytes, READ_BYTES, n_bytes * _TEXT_BYTES // max(n_text, 1)), MAX_BLOCK)
        rest = data[end:]
        if len(rest) > MAX_BLOCK:
            problem = problem or DamagedBlocksError("a block is damaged")
        yield data, blocks, problem
    if rest and problem is None:
        yield b"", [], DamagedBlocksError("the file is truncated")


def _inflate(portion: _Portion) -> tuple[bytes, OSError | None]:
    """Inflate the undamaged blocks; return their text and the error after it."""
    data, blocks, problem = portion
    if not blocks:
        return b"", problem
    text = inflate_blocks(memoryview(data)[: blocks[-1][1]], sum(n_text for _, _, n_text in blocks))
    if text is not None:
        return text, problem
    texts: list[bytes] = []
    at = 0
    try:
        for _, end, _ in blocks:
            texts.append(first_block(data[at:end])[0])
            at = end
    except DamagedBlocksError as damage:
        problem = damage
    return b"".join(texts), problem
