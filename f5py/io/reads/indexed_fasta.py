"""Random access to sequences of a FASTA file through its ``.fai``, many at a time.

Plain files are memory-mapped; blocks of BGZF are inflated in threads.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names, NameTable
from f5py.core.offsets import offsets_of
from f5py.errors import InputFileError, blamed_on
from f5py.io.bytes.bgzf import BlockReader
from f5py.io.files.mapped_file import MappedFile
from f5py.threads.pool import WorkerPool

#: Valid characters of sequences.
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz*-."


def letter_table() -> NDArray[np.uint8]:
    """Return a table of the letters of sequences, 0 for other characters; uint8, shape (256,)."""
    table = np.zeros(256, np.uint8)
    table[list(_LETTERS)] = list(_LETTERS)
    return table


class FastaIndex(NameTable):
    """Index of a FASTA text by sequence name.

    Parameters
    ----------
    columns : int64, shape (4, n)
        The attributes.

    Attributes
    ----------
    length, offset, line_bases, line_width : int64, shape (n,)
        Bases of a sequence, text offset of the first one, bases and bytes of its lines.
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
        from f5py.io.reads._fai_numba import parse_fai

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
        from f5py.io.reads._fai_numba import first_wrong_row

        columns = self.length, self.offset, self.line_bases, self.line_width
        return bool(first_wrong_row(text, *self.name_table[:3], columns) < 0)

    def end(self) -> NDArray[np.int64]:
        """Return the text offset of each sequence's end."""
        return (
            self.offset + self._bytes_before(np.arange(len(self)), np.maximum(self.length - 1, 0)) + (self.length > 0)
        )

    def _bytes_before(self, rows: NDArray[np.int64], position: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bytes from a sequence's first base to the one at `position`."""
        line_bases = np.maximum(self.line_bases[rows], 1)
        return position // line_bases * self.line_width[rows] + position % line_bases


class TextSource(Protocol):
    """Protocol of sources of FASTA text."""

    size: int

    def read(
        self, begin: NDArray[np.int64], end: NDArray[np.int64], pool: WorkerPool | None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return text that contains the ranges, and the offset of each range in it."""
        ...

    def check(self) -> None:
        """Raise `InputFileError` if the file has changed."""
        ...

    def close(self) -> None: ...


class SequenceSource(Protocol):
    """Protocol of random access to sequences; see `IndexedFasta`."""

    index: FastaIndex

    def fetch(
        self, rows: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], pool: WorkerPool | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]: ...

    def close(self) -> None: ...


class MappedText(MappedFile, TextSource):
    """An uncompressed file, memory-mapped."""

    def read(
        self, begin: NDArray[np.int64], end: NDArray[np.int64], pool: WorkerPool | None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        return self.text, begin


class MemoryText(TextSource):
    """A text in memory."""

    def __init__(self, text: NDArray[np.uint8]) -> None:
        self.size = len(text)
        self._text = text

    def read(
        self, begin: NDArray[np.int64], end: NDArray[np.int64], pool: WorkerPool | None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        return self._text, begin

    def check(self) -> None:
        """Do nothing: the text cannot change."""

    def close(self) -> None:
        self._text = np.empty(0, np.uint8)


class BlockText(TextSource):
    """A BGZF file with its ``.gzi``."""

    def __init__(self, path: str, index_path: str) -> None:
        self._blocks = BlockReader(path, index_path)
        self.size = self._blocks.size

    def read(
        self, begin: NDArray[np.int64], end: NDArray[np.int64], pool: WorkerPool | None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        return self._blocks.read(begin, end, pool)

    def check(self) -> None:
        self._blocks.state.check()

    def close(self) -> None:
        self._blocks.close()


class IndexedFasta(SequenceSource):
    """Random access to sequences. For one thread at a time.

    Parameters
    ----------
    text : TextSource
        Closed with this object.
    letters : uint8, shape (256,), optional
        Translation of letters, 0 for invalid ones; `letter_table` by default.
    """

    def __init__(self, index: FastaIndex, text: TextSource, letters: NDArray[np.uint8] | None = None) -> None:
        self.index = index
        self._text = text
        self._letters = letter_table() if letters is None else letters

    def fetch(
        self, rows: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], pool: WorkerPool | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
        """Fetch n stretches. Raises `InputFileError` if the file has changed.

        Parameters
        ----------
        rows : int64, shape (n,)
            Of the index.
        start, end : int64, shape (n,)
            0-based, half-open, within the sequences.

        Returns
        -------
        bases : uint8, shape (offsets[-1],)
        offsets : int64, shape (n + 1,)
        wrong : bool, shape (n,)
            Stretches beyond the file, which are empty, or with invalid characters: the index is of another file.
        """
        from f5py.io.reads._fai_numba import LinePositions, gather_bases

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
        text, places = self._text.read(begin[wanted], stop[wanted], pool)
        begin[wanted] = places
        line_bases = np.maximum(index.line_bases[rows], 1)
        arguments = (
            text, LinePositions(begin, start % line_bases, line_bases, index.line_width[rows]), offsets, self._letters,
            bases, wrong,
        )  # fmt: skip
        if pool is None:
            gather_bases(np.zeros(1, np.int64), wanted, *arguments)
        else:
            pool.run(gather_bases, wanted, *arguments)
        self._text.check()
        return bases, offsets, wrong | outside

    def close(self) -> None:
        self._text.close()
