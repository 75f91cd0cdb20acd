"""Bases of a reference in two bits each, with the unknown ones beside them.

Blocks of 64 bases that have unknown ones are marked; of these there is a mask.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.threads.pool import CallingThread, WorkerPool

#: Letters that are packed at a time, and by a thread.
_BUFFER, _PIECE = 1 << 22, 1 << 16


class PackedBases(NamedTuple):
    """Packed bases."""

    words: NDArray[np.uint64]  # 32 bases each, the first one in the lowest bits; 0 for unknown ones
    unknown: NDArray[np.uint64]  # a bit for each block with unknown bases
    ranks: NDArray[np.int64]  # marked blocks before each element of `unknown`
    masks: NDArray[np.uint64]  # of the marked blocks: a bit for each unknown base

    def codes(self, begin: int, end: int) -> NDArray[np.uint8]:
        """Unpack ``[begin:end]``: 0 to 3, 4 for unknown bases."""
        from f5py.mapping.index._packed_bases_numba import codes_between

        out = np.empty(end - begin, np.uint8)
        codes_between(self, begin, end, out)
        return out


class BasePacker:
    """Packs letters piece by piece."""

    def __init__(self, pool: WorkerPool | CallingThread) -> None:
        self._pool = pool
        self._buffer = np.empty(_BUFFER, np.uint8)
        self._n = self._n_before = 0  # letters in the buffer, and those that have been packed
        self._words: list[NDArray[np.uint64]] = []
        self._unknown: list[NDArray[np.uint64]] = []
        self._masks: list[NDArray[np.uint64]] = []
        self._ambiguous: list[NDArray[np.int64]] = []

    def add(self, letters: NDArray[np.uint8]) -> None:
        """Pack the next letters: A, C, G, T or U in either case; others are unknown bases."""
        at = 0
        while at < len(letters):
            n = min(len(letters) - at, _BUFFER - self._n)
            self._buffer[self._n : self._n + n] = letters[at : at + n]
            self._n += n
            at += n
            if self._n == _BUFFER:
                self._pack()

    def packed(self) -> tuple[PackedBases, NDArray[np.int64]]:
        """Return all bases, and the unknown ones that may be C or G but not A: base << 2 | code of the first of these.

        Nothing can be added then.
        """
        if self._n:
            self._pack()
        unknown, masks = (np.concatenate([np.empty(0, np.uint64), *parts]) for parts in (self._unknown, self._masks))
        words = self._words[0] if len(self._words) == 1 else np.concatenate([np.empty(0, np.uint64), *self._words])
        self._words = []
        counts = np.unpackbits(unknown.view(np.uint8)).reshape(-1, 64).sum(axis=1, dtype=np.int64)
        ambiguous = np.concatenate([np.empty(0, np.int64), *self._ambiguous])
        return PackedBases(words, unknown, np.cumsum(counts) - counts, masks), np.sort(ambiguous)

    def _pack(self) -> None:
        from f5py.mapping.index._packed_bases_numba import pack_letters

        n = -(-self._n // 64) * 64
        self._buffer[self._n : n] = ord("A")
        words, masks = np.empty(n // 32, np.uint64), np.empty(n // 64, np.uint64)
        self._pool.run(
            lambda *given: self._ambiguous.append(pack_letters(*given) + (self._n_before << 2)),
            np.arange(-(-n // _PIECE)), _PIECE, self._buffer[:n], words, masks,
        )  # fmt: skip
        marks = np.zeros(-(-len(masks) // 64) * 64, np.bool_)
        marks[: len(masks)] = masks != 0
        self._words.append(words)
        self._unknown.append(np.packbits(marks, bitorder="little").view(np.uint64))
        self._masks.append(masks[masks != 0])
        self._n_before += self._n
        self._n = 0


def pack(codes: NDArray[np.uint8]) -> PackedBases:
    """Pack codes in the calling thread: 0 to 3, 4 for unknown bases."""
    packer = BasePacker(CallingThread())
    packer.add(np.frombuffer(b"ACGTN", np.uint8)[codes])
    return packer.packed()[0]
