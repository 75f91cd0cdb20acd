"""Bases of a reference in two bits each, with the unknown ones beside them.

Blocks of 64 bases that have unknown ones are marked; of these there is a mask.
"""

# mypy: disable-error-code="assignment,arg-type"
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.instructions import count_bits, lowest_bit
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import appended
from f5py.threads.pool import CallingThread, WorkerPool

#: Letters that are packed at a time, and by a thread.
_BUFFER, _PIECE = 1 << 22, 1 << 16
_1, _2, _3 = np.uint64(1), np.uint64(2), np.uint64(3)
_5, _6, _12 = np.uint64(5), np.uint64(6), np.uint64(12)
_LETTERS = np.frombuffer(b"ACGTA", np.uint8).copy()
_IN_WORD, _IN_BLOCK = np.uint64(31), np.uint64(63)
#: Codes of letters: 0 to 3 for bases; 4 for unknown ones, 5 for those that may be C but not A, 6 for K.
_CODES = np.full(256, 4, np.uint8)
for _letters, _code in ((b"Aa", 0), (b"Cc", 1), (b"Gg", 2), (b"TtUu", 3), (b"SsYyBb", 5), (b"Kk", 6)):
    _CODES[list(_letters)] = _code


@exact_kernel
def pack_letters(queue, pieces, size, letters, words, masks):
    """Pack pieces of `size` letters, a multiple of 64.

    Return the letters that stand for several bases, but not for A: letter << 2 | first base.

    Parameters
    ----------
    letters : uint8, shape (n,)
        `n` is a multiple of 64.
    words : uint64, shape (n // 32,)
        Filled; 0 for unknown bases.
    masks : uint64, shape (n // 64,)
        Filled with a bit for each unknown base.
    """
    ambiguous = np.empty(16, np.int64)
    n_ambiguous = 0
    for t in claimed_indices(work_counter(queue), pieces.shape[0]):
        first = pieces[t] * size // 64
        for block in range(first, min(first + size // 64, masks.shape[0])):
            mask = np.uint64(0)
            any_ambiguous = np.uint64(0)
            for half in range(2):
                word = np.uint64(0)
                at = np.uint64(64 * block + 32 * half)
                for j in range(32):
                    code = np.uint64(_CODES[letters[at + np.uint64(j)]])
                    is_unknown = code >> _2
                    any_ambiguous |= is_unknown * (code & _3)
                    word |= (code & _3) * (_1 - is_unknown) << np.uint64(2 * j)
                    mask |= is_unknown << np.uint64(32 * half + j)
                words[2 * block + half] = word
            masks[block] = mask
            if any_ambiguous:
                for i in range(64 * block, 64 * block + 64):
                    code = np.int64(_CODES[letters[i]])
                    if code > 4:
                        ambiguous, n_ambiguous = appended(ambiguous, n_ambiguous, (i << 2) | (code - 4))
    return ambiguous[:n_ambiguous]


@exact_inner
def both_strands(codes, room):
    """Copy a read's codes, then those of its reverse complement, to `room` or a longer array; return that."""
    n = codes.shape[0]
    if room.shape[0] < 2 * n:
        room = np.empty(2 * n, np.uint8)
    forward = room[:n]
    for i in range(n):
        forward[i] = codes[i]
    backward = room[n : 2 * n]
    # unsigned: such an index cannot count from the end, so that the loop becomes one of vectors
    last = np.uint64(n - 1)
    for i in range(np.uint64(n)):
        base = codes[last - i]
        backward[i] = np.uint8(3) - base if base < 4 else np.uint8(4)
    return room


@exact_inner
def base_at(bases, i):
    """Return the code of base `i`: 0 to 3, 4 for an unknown one."""
    at = np.uint64(i)
    marks = bases.unknown[at >> _12]
    if marks:
        mark = _1 << ((at >> _6) & _IN_BLOCK)
        if marks & mark:
            rank = np.uint64(bases.ranks[at >> _12] + count_bits(marks & (mark - _1)))
            if (bases.masks[rank] >> (at & _IN_BLOCK)) & _1:
                return np.uint8(4)
    return np.uint8((bases.words[at >> _5] >> ((at & _IN_WORD) << _1)) & _3)


@exact_inner
def unpack(bases, begin, end, out, to):
    """Write the codes of ``bases[begin:end]`` from ``out[to]`` on."""
    if end <= begin:
        return
    i, stop, at = np.uint64(begin), np.uint64(end), np.uint64(to)
    while i < stop:
        word = bases.words[i >> _5]
        if i & _IN_WORD or stop - i < np.uint64(32):
            word >>= (i & _IN_WORD) << _1
            n = min(np.uint64(32) - (i & _IN_WORD), stop - i)
            for j in range(n):
                out[at + np.uint64(j)] = np.uint8((word >> (np.uint64(j) << _1)) & _3)
        else:
            n = np.uint64(32)
            for j in range(32):
                out[at + np.uint64(j)] = np.uint8((word >> (np.uint64(j) << _1)) & _3)
        i += n
        at += n
    for group in range(begin >> 12, ((end - 1) >> 12) + 1):
        marks = bases.unknown[group]
        rank = bases.ranks[group]
        while marks:
            block = (group << 6) + lowest_bit(marks)
            marks &= marks - _1
            mask = bases.masks[rank]
            rank += 1
            while mask:
                place = (block << 6) + lowest_bit(mask)
                mask &= mask - _1
                if place >= begin and place < end:
                    out[to + place - begin] = 4


@exact_kernel
def codes_between(bases, begin, end, out):
    """Write the codes of ``bases[begin:end]`` to `out`.

    Parameters
    ----------
    bases : f5py.mapping.index.packed_bases.PackedBases
    out : uint8, shape (end - begin,)
    """
    unpack(bases, begin, end, out, 0)


@exact_kernel
def gather_letters(queue, pieces, bases, ambiguous, begins, offsets, letters):
    """Write the letters of pieces of all bases, with the first possible base for an ambiguous one.

    Parameters
    ----------
    ambiguous : int64
        See `f5py.mapping.index.packed_bases.BasePacker.packed`.
    begins : int64, shape (n,)
    offsets : int64, shape (n + 1,)
        Of the pieces in `letters`, uint8.
    """
    for t in claimed_indices(work_counter(queue), pieces.shape[0]):
        i = pieces[t]
        begin = begins[i]
        to, stop = offsets[i], offsets[i + 1]
        unpack(bases, begin, begin + stop - to, letters, to)
        for at in range(to, stop):
            letters[at] = _LETTERS[letters[at]]
        for a in range(np.searchsorted(ambiguous, begin << 2), ambiguous.shape[0]):
            at = to + (ambiguous[a] >> 2) - begin
            if at >= stop:
                break
            letters[at] = _LETTERS[ambiguous[a] & 3]


def count_marks(marks: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Count the bits of each number."""
    return np.unpackbits(marks.view(np.uint8)).reshape(-1, 64).sum(axis=1, dtype=np.int64)


class PackedBases(NamedTuple):
    """Packed bases."""

    words: NDArray[np.uint64]  # 32 bases each, the first one in the lowest bits; 0 for unknown ones
    unknown: NDArray[np.uint64]  # a bit for each block with unknown bases
    ranks: NDArray[np.int64]  # marked blocks before each element of `unknown`
    masks: NDArray[np.uint64]  # of the marked blocks: a bit for each unknown base

    def codes(self, begin: int, end: int) -> NDArray[np.uint8]:
        """Unpack ``[begin:end]``: 0 to 3, 4 for unknown bases."""
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
        """Pack all bases, and list ambiguous ones without A but with C or G: base << 2 | code of the first.

        Nothing can be added then.
        """
        if self._n:
            self._pack()
        unknown, masks = (np.concatenate([np.empty(0, np.uint64), *parts]) for parts in (self._unknown, self._masks))
        words = self._words[0] if len(self._words) == 1 else np.concatenate([np.empty(0, np.uint64), *self._words])
        self._words = []
        counts = count_marks(unknown)
        ambiguous = np.concatenate([np.empty(0, np.int64), *self._ambiguous])
        return PackedBases(words, unknown, np.cumsum(counts) - counts, masks), np.sort(ambiguous)

    def _pack(self) -> None:
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
