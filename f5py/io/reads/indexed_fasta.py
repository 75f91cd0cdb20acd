"""Random access to sequences of a FASTA file through its ``.fai``, many at a time.

Plain files are memory-mapped; blocks of BGZF are inflated in threads.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names, NameTable
from f5py.core.offsets import offsets_of
from f5py.errors import InputFileError, blamed_on
from f5py.io.bytes.bgzf import BlockReader
from f5py.io.files.mapped_file import MappedFile
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.text._format_numba import NEWLINE, TAB, ZERO
from f5py.threads.pool import CallingThread, WorkerPool

#: Valid characters of sequences.
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz*-."

_HEADER, _SPACE, _RETURN, _NINE = (np.uint8(ord(letter)) for letter in "> \r9")
_COLUMNS, _MOST_DIGITS = 4, 18
#: Smaller files are indexed by htslib, and parsed record by record: more threads do not pay.
LARGE_FILE = 64 << 20
#: Bytes that a thread takes at a time.
_SCANNED_BYTES = 1 << 22


@exact_kernel
def parse_fai(text, name_begin, name_end, columns):
    """Parse whole lines of a ``.fai``; return the 1-based number of the first bad line, or 0.

    Parameters
    ----------
    columns : int64, shape (4, n)
        Filled; see `FastaIndex`.
    """
    at = 0
    size = text.shape[0]
    for row in range(name_begin.shape[0]):
        name_begin[row] = at
        while at < size and text[at] != TAB and text[at] != NEWLINE:
            at += 1
        name_end[row] = at
        for column in range(_COLUMNS):
            if at >= size or text[at] != TAB:
                return row + 1
            at += 1
            begin = at
            value = np.int64(0)
            while at < size and ZERO <= text[at] <= _NINE:
                value = 10 * value + np.int64(text[at] - ZERO)
                at += 1
            if at == begin or at - begin > _MOST_DIGITS:
                return row + 1
            columns[column, row] = value
        if at >= size or text[at] != NEWLINE:
            return row + 1
        at += 1
        if columns[2, row] < (1 if columns[0, row] > 0 else 0) or columns[3, row] < columns[2, row]:
            return row + 1
    return 0


@exact_kernel
def first_wrong_row(text, names, name_begin, name_end, columns):
    """Return the first row of an index that contradicts the whole text of a file, or -1.

    The line before a sequence's first base must be its header; a line end or the text's end must follow its last base.

    Parameters
    ----------
    columns : tuple of int64, shape (n,)
        See `FastaIndex`.
    """
    length, offset, line_bases, line_width = columns
    size = text.shape[0]
    for row in range(length.shape[0]):
        line_end = offset[row] - 1
        if line_end < 0 or line_end >= size or text[line_end] != NEWLINE:
            return row
        at = line_end
        while at > 0 and text[at - 1] != NEWLINE:
            at -= 1
        n = name_end[row] - name_begin[row]
        if text[at] != _HEADER or at + 1 + n > line_end or text[at + 1 + n] > _SPACE:
            return row
        for i in range(n):
            if text[at + 1 + i] != names[name_begin[row] + i]:
                return row
        if length[row] > 0:
            last = length[row] - 1
            end = offset[row] + last // line_bases[row] * line_width[row] + last % line_bases[row] + 1
            if end > size or (end < size and text[end] > _SPACE):
                return row
    return -1


@exact_kernel
def list_sequences(queue, sequences, text, headers, index, is_other):
    """Fill the rows of an index.

    Parameters
    ----------
    headers : int64, shape (n + 1,)
        Offset of each header, and the text's end.
    is_other : bool, shape (1,)
        Set if the lines of a sequence are not of one length but for a shorter last one.
    """
    for t in claimed_indices(work_counter(queue), sequences.shape[0]):
        row = sequences[t]
        if not _list_sequence(text[: headers[row + 1]], headers[row], row, index):
            is_other[0] = True


@exact_inner
def _list_sequence(text, header, row, index):
    """Fill a row of an index; return whether the lines of a sequence, the last one in `text`, are regular."""
    name_begin, name_end, columns = index
    end = text.shape[0]
    at = header + 1
    name_begin[row] = at
    while at < end and text[at] > _SPACE:
        at += 1
    name_end[row] = at
    while at < end and text[at] != NEWLINE:
        if text[at] == 0:
            return False
        at += 1
    begin = at + 1
    at = begin
    while at < end and text[at] > _SPACE:
        at += 1
    bases = at - begin
    if bases <= 0 or name_end[row] == name_begin[row]:
        return False
    at += at < end and text[at] == _RETURN
    width = at - begin + 1
    length = np.int64(0)
    at = begin
    while at < end:
        n = min(bases, end - at)
        if end - at < width and text[end - 1] == NEWLINE:
            n = min(n, end - at - (width - bases))
        n_others = np.uint8(n <= 0)
        for i in range(n):
            n_others |= np.uint8(text[at + i] <= _SPACE)
        for i in range(at + n, min(at + n + width - bases, end)):
            n_others |= np.uint8(text[i] != (NEWLINE if i == at + n + width - bases - 1 else _RETURN))
        if n_others:
            return False
        length += n
        at += n + width - bases
    columns[0, row], columns[1, row], columns[2, row], columns[3, row] = length, begin, bases, width
    return True


@exact_kernel
def gather_bases(queue, pieces, text, lines, offsets, table, out, wrong):
    """Copy the bases of `pieces`, translated by `table`, without line ends.

    Parameters
    ----------
    lines : tuple of int64, shape (n,)
        Text offset of each piece's first base, its index in its line, bases and bytes of the lines.
    table : uint8, shape (256,)
        0 for invalid characters.
    wrong : bool, shape (n,)
        Set for pieces with an invalid character: the index is of another file.
    """
    begin, phase, line_bases, line_width = lines
    for i in claimed_indices(work_counter(queue), pieces.shape[0]):
        piece = pieces[i]
        at = begin[piece]
        column = phase[piece]
        to = offsets[piece]
        end = offsets[piece + 1]
        gap = line_width[piece] - line_bases[piece]
        lowest = np.uint8(255)
        while to < end:
            n = min(line_bases[piece] - column, end - to)
            for j in range(n):
                letter = text[at + j]
                base = table[letter]
                lowest = min(lowest, base)
                out[to + j] = base
            to += n
            at += n + gap
            column = np.int64(0)
        wrong[piece] = lowest == 0


def letter_table() -> NDArray[np.uint8]:
    """Return a table of the letters of sequences, 0 for other characters; uint8, shape (256,)."""
    return np.array([letter if letter in _LETTERS else 0 for letter in range(256)], np.uint8)


class FastaIndex(NameTable):
    """Index of a FASTA text by sequence name.

    The columns, shape (4, n), are the bases of a sequence, the text offset of the first one, bases and bytes of its
    lines.
    """

    def __init__(
        self,
        text: NDArray[np.uint8],
        name_begin: NDArray[np.int64],
        name_end: NDArray[np.int64],
        columns: NDArray[np.int64],
    ) -> None:
        super().__init__(text, name_begin, name_end)
        self.length, self.offset, self.line_bases, self.line_width = columns

    @classmethod
    def read(cls, path: str, advice: str) -> FastaIndex:
        """Read a ``.fai``; raise `InputFileError`, with `advice` at its end, for a malformed line."""
        with blamed_on(path), open(path, "rb") as file:
            content = bytearray(file.read())
        n = content.count(b"\n")
        text = np.frombuffer(content, np.uint8)
        name_begin, name_end, columns = np.empty(n, np.int64), np.empty(n, np.int64), np.empty((4, n), np.int64)
        bad_line = parse_fai(text, name_begin, name_end, columns)
        if not bad_line and len(text) and text[-1] != ord("\n"):
            bad_line = n + 1
        if bad_line:
            raise InputFileError(f"{path}: line {bad_line} is not a line of a FASTA index; {advice}")
        return cls(text, name_begin, name_end, columns)

    @classmethod
    def of_sequences(cls, names: Names, offsets: NDArray[np.int64]) -> FastaIndex:
        """Make the index of adjacent sequences."""
        length = np.diff(offsets)
        lines = np.maximum(length, 1)
        columns = np.stack([length, offsets[:-1], lines, lines])
        return cls(names.text, names.offsets[:-1].copy(), names.offsets[1:].copy(), columns)

    def fits(self, text: NDArray[np.uint8]) -> bool:
        """Return whether the index agrees with the whole text of a file."""
        columns = self.length, self.offset, self.line_bases, self.line_width
        return bool(first_wrong_row(text, *self.name_table[:3], columns) < 0)

    def as_text(self) -> bytes | None:
        """Return the text of the ``.fai``; None if sequences have the same name, which htslib warns of."""
        if self.n_distinct < len(self):
            return None
        numbers = np.stack([self.length, self.offset, self.line_bases, self.line_width], axis=1).tolist()
        return b"".join(b"%b\t%d\t%d\t%d\t%d\n" % (self.encoded(i), *row) for i, row in enumerate(numbers))

    def end(self) -> NDArray[np.int64]:
        """Return the text offset of each sequence's end."""
        return (
            self.offset + self._bytes_before(np.arange(len(self)), np.maximum(self.length - 1, 0)) + (self.length > 0)
        )

    def _bytes_before(self, rows: NDArray[np.int64], position: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bytes from a sequence's first base to the one at `position`."""
        line_bases = np.maximum(self.line_bases[rows], 1)
        return position // line_bases * self.line_width[rows] + position % line_bases


def is_large(path: str) -> bool:
    """Return whether the size of a file pays for `scan_fasta`."""
    return os.path.isfile(path) and os.path.getsize(path) >= LARGE_FILE


def scan_fasta(file: MappedFile, pool: WorkerPool | CallingThread) -> FastaIndex | None:
    """Index a FASTA file with lines of one length in each sequence, else return None."""
    text = file.text
    if text[:1].tobytes() != b">":
        return None

    def headers_from(at: int) -> NDArray[np.int64]:
        found = at + np.flatnonzero(text[at : at + _SCANNED_BYTES] == ord(">"))
        return found[(found == 0) | (text[found - 1] == NEWLINE)]

    with ThreadPoolExecutor(pool.n_threads) as threads:
        parts = list(threads.map(headers_from, range(0, len(text), _SCANNED_BYTES)))
    headers = np.concatenate([*parts, [len(text)]])
    n = len(headers) - 1
    index = np.empty(n, np.int64), np.empty(n, np.int64), np.empty((4, n), np.int64)
    is_other = np.zeros(1, np.bool_)
    largest_first = np.argsort(-np.diff(headers), kind="stable")
    pool.run(list_sequences, largest_first, text, headers, index, is_other)
    file.check()
    return None if is_other[0] else FastaIndex(text, *index)


class SequenceSource(Protocol):
    """Protocol of random access to sequences; see `IndexedFasta`."""

    index: FastaIndex

    def fetch(
        self, rows: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], pool: WorkerPool | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]: ...

    def close(self) -> None: ...


class MemoryText:
    """A text in memory, which cannot change."""

    def __init__(self, text: NDArray[np.uint8]) -> None:
        self.size = len(text)
        self.text = text

    def read(self, begin: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        return self.text, begin

    def check(self) -> None:
        return

    def close(self) -> None:
        self.text = self.text[:0]


class MappedText(MappedFile, MemoryText):
    """An uncompressed file, memory-mapped."""


class IndexedFasta(SequenceSource):
    """Random access to sequences of a text, which is closed with this object. For one thread at a time.

    `letters`, uint8 of shape (256,), translates letters, invalid ones to 0; by default it is `letter_table`.
    """

    def __init__(
        self, index: FastaIndex, text: MemoryText | BlockReader, letters: NDArray[np.uint8] | None = None
    ) -> None:
        self.index = index
        self._text = text
        self._letters = letter_table() if letters is None else letters

    def fetch(
        self, rows: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], pool: WorkerPool | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
        """Fetch 0-based, half-open stretches of sequences; return bases, offsets and the wrong stretches.

        Wrong ones are beyond the file, and empty, or have invalid characters: the index is of another file. Raises
        `InputFileError` if the file has changed.
        """
        index = self.index
        begin = index.offset[rows] + index._bytes_before(rows, start)
        stop = np.where(end > start, index.offset[rows] + index._bytes_before(rows, end - 1) + 1, begin)
        outside = stop > self._text.size
        n_bases = np.where(outside, 0, end - start)
        stop = np.where(outside, begin, stop)
        offsets = offsets_of(n_bases)
        bases = np.empty(offsets[-1], np.uint8)
        wrong = np.zeros(len(rows), np.bool_)
        wanted = np.flatnonzero(n_bases)
        text, places = self._text.read(begin[wanted], stop[wanted])
        begin[wanted] = places
        line_bases = np.maximum(index.line_bases[rows], 1)
        lines = begin, start % line_bases, line_bases, index.line_width[rows]
        (pool or CallingThread()).run(gather_bases, wanted, text, lines, offsets, self._letters, bases, wrong)
        self._text.check()
        return bases, offsets, wrong | outside

    def close(self) -> None:
        self._text.close()
