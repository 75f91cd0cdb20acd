"""Writer of reads as FASTA in BGZF blocks that end between reads, for random access."""

from __future__ import annotations

import struct
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.io.bytes.bgzf_blocks import END_BLOCK
from f5py.io.sequences.read_records import Sequences
from f5py.threads.pool import WorkerPool

#: Bytes of text from which a block gets no further read.
_ENOUGH = 1 << 12


class ReadBlockWriter:
    """Writer of reads with the positions of blocks and reads.

    Parameters
    ----------
    file : binary file
        Gets the blocks.
    fai : binary file
        Gets the lines of an index, which as htslib's lists no empty sequences.
    pool : WorkerPool
        Compression threads; they do not change the bytes.
    """

    def __init__(self, file: BinaryIO, fai: BinaryIO, pool: WorkerPool) -> None:
        self._file = file
        self._fai = fai
        self._pool = pool
        self._packed_at = self._text_at = 0
        self._starts: list[NDArray[np.int64]] = []

    def write(self, batch: Sequences) -> None:
        from f5py.io.sequences._read_blocks_numba import (
            MOST_MORE,
            MOST_TEXT,
            compress_blocks,
            gather_blocks,
            list_reads,
            plan_blocks,
        )

        names, n_reads = batch.names, len(batch.names)
        at = offsets_of(np.diff(names.offsets) + np.diff(batch.offsets) + 3)
        first, begin = np.empty((2, n_reads + int(at[-1]) // MOST_TEXT + 1), np.int64)
        n = plan_blocks(at, _ENOUGH, MOST_TEXT, first, begin)
        begin[n] = at[-1]
        begin = begin[: n + 1]
        blocks, sizes = np.arange(n), np.empty(n, np.int64)
        reads = names.text, names.offsets, batch.bases, batch.offsets, at
        out = np.empty(int(at[-1]) + n * MOST_MORE, np.uint8)
        self._pool.run(compress_blocks, blocks, reads, first, begin, out, sizes)
        offsets = offsets_of(sizes)
        packed = np.empty(offsets[-1], np.uint8)
        self._pool.run(gather_blocks, blocks, out, begin, offsets, packed)
        self._file.write(packed.data)
        self._starts.append(np.stack([self._packed_at + offsets[:-1], self._text_at + begin[:-1]], axis=1))
        lines = np.empty(len(names.text) + 84 * n_reads, np.uint8)
        self._fai.write(lines[: list_reads(reads, self._text_at, lines)].data)
        self._packed_at += int(offsets[-1])
        self._text_at += int(at[-1])

    def finish(self) -> bytes:
        """Write the end block; return the content of the ``.gzi``, without the first block and the end."""
        self._file.write(END_BLOCK)
        starts = np.concatenate([np.empty((0, 2), np.int64), *self._starts])[1:]
        return struct.pack("<Q", len(starts)) + starts.astype("<u8").tobytes()
