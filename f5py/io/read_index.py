"""The index of the basecalled reads, as callers use it: sequences and signal files by read name.

`f5py.commands.index` makes these files. They are those of f5c and nanopolish, and theirs can be used here.
"""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Sequence
from itertools import islice, pairwise, repeat

import numpy as np
from numpy.typing import NDArray

from f5py import console
from f5py.errors import InputFileError
from f5py.io.bgzf import BlockReader

#: What is put behind the name of the reads file.
SEQUENCE_SUFFIX, FAI_SUFFIX, GZI_SUFFIX, READDB_SUFFIX = (
    ".index",
    ".index.fai",
    ".index.gzi",
    ".index.readdb",
)


class ReadIndex:
    """Random access to the basecalled reads behind ``<reads>.index``. For one thread at a time.

    Open one with `ReadIndex.open`; it is a context manager.
    """

    def __init__(self, blocks: BlockReader, rows: dict[str, int], columns: NDArray[np.int64]) -> None:
        self._blocks = blocks
        self._rows = rows
        self._length, self._offset, self._line_bases, self._line_width = columns

    @classmethod
    def open(cls, reads_path: str) -> ReadIndex:
        """Open the index of the reads file `reads_path`.

        Raises
        ------
        InputFileError
            If a file of the index is missing, damaged, or the index is that of other reads.
        """
        paths = [reads_path + suffix for suffix in (SEQUENCE_SUFFIX, FAI_SUFFIX, GZI_SUFFIX)]
        for path in paths:
            if not os.path.exists(path):
                raise InputFileError(f"{path}: not found; the reads have no index, run f5py index with {reads_path}")
        rows, columns = _load_fai(paths[1])
        blocks = BlockReader(paths[0], paths[2])
        try:
            length, offset, line_bases, line_width = columns
            end = offset + _span(length, line_bases, line_width)
            if len(end) and int(end.max()) > blocks.size:
                raise InputFileError(f"{paths[1]}: does not belong to {paths[0]}; run f5py index again")
            _check_is_index_of(reads_path, paths[0], rows)
        except BaseException:
            blocks.close()
            raise
        return cls(blocks, rows, columns)

    def close(self) -> None:
        """Close the files. May be called twice."""
        self._blocks.close()

    def __enter__(self) -> ReadIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def first_names(self, n: int) -> list[str]:
        """Names of the first n reads, or of all if there are fewer."""
        return list(islice(self._rows, n))

    def _rows_of(self, names: Sequence[str]) -> NDArray[np.int64]:
        return np.fromiter(map(self._rows.get, names, repeat(-1)), np.int64, len(names))

    def lengths(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of bases of each named read, int64, shape (n,); -1 for a read that is absent.

        Reads without any base are not in the index and so count as absent.
        """
        rows = self._rows_of(names)
        return np.where(rows >= 0, self._length[rows], -1) if len(self._rows) else rows

    def sequences(self, names: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Fetch the bases of n reads.

        Parameters
        ----------
        names : sequence of str
            Read names, in any order, with or without repeats.

        Returns
        -------
        bases : uint8, shape (offsets[-1],)
            ASCII letters as they are in the reads file (case and U are kept), read after read.
        offsets : int64, shape (n + 1,)
            Read i has ``bases[offsets[i]:offsets[i + 1]]``; an absent read has none.

        Raises
        ------
        InputFileError
            If the index file is damaged.
        """
        rows = self._rows_of(names)
        offsets = np.zeros(len(names) + 1, np.int64)
        present = rows >= 0
        rows = rows[present]
        lengths = self._length[rows]
        offsets[1:][present] = lengths
        np.cumsum(offsets, out=offsets)
        sizes = _span(lengths, self._line_bases[rows], self._line_width[rows])
        bases = self._blocks.read(self._offset[rows], sizes)
        if len(bases) != offsets[-1]:
            # indices made by f5py, f5c and nanopolish have a read on one line; others may fold it
            bases = bases[bases > ord(" ")]
            if len(bases) != offsets[-1]:
                raise InputFileError(f"{self._blocks.path}: does not fit its .fai; run f5py index again")
        return bases, offsets


def read_readdb(path: str) -> dict[str, str]:
    """Read a ``.readdb`` file: the signal file of every read.

    Parameters
    ----------
    path : str
        The ``.readdb`` file itself, that is, the reads file's name and `READDB_SUFFIX`.

    Returns
    -------
    dict of str to str
        Read name to path; the empty string where no signal file is known. The name ``*`` stands for all reads: their
        signals are in one SLOW5 file (or POD5 file or folder), as f5py and nanopolish write it for SLOW5.

    Raises
    ------
    InputFileError
        If the file is missing or a line does not have two fields.
    """
    paths: dict[str, str] = {}
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            for number, line in enumerate(file, 1):
                name, tab, signal_path = line.rstrip("\n").partition("\t")
                if not tab or not name:
                    raise InputFileError(
                        f"{path}: line {number} is not a read name, a tab and a path; run f5py index again"
                    )
                paths[name] = sys.intern(signal_path)  # thousands of reads share a multi-read file
    except (FileNotFoundError, NotADirectoryError) as problem:
        raise InputFileError(
            f"{path}: not found; run f5py index with -d and the fast5 folder, with --slow5 or with --pod5"
        ) from problem
    return paths


def _span(length: NDArray[np.int64], line_bases: NDArray[np.int64], line_width: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes from the first to behind the last base of each read, line ends between them included."""
    folds = np.maximum(length - 1, 0) // np.maximum(line_bases, 1)
    return length + folds * (line_width - line_bases)


def _load_fai(path: str) -> tuple[dict[str, int], NDArray[np.int64]]:
    """Read a ``.fai``: name to row, and length, offset, bases and bytes per line, int64, shape (4, rows)."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        text = file.read()
    fields = text.replace("\n", "\t").split("\t")
    count = len(fields) // 5
    columns = np.zeros((4, count), np.int64)
    try:
        if len(fields) != 5 * count + 1 or (text and not text.endswith("\n")):
            raise ValueError
        for column in range(4):
            columns[column] = np.array(fields[column + 1 :: 5], "S20").astype(np.int64)
        length, offset, line_bases, line_width = columns
        if np.any((length < 0) | (offset < 0) | (line_bases < (length > 0)) | (line_width < line_bases)):
            raise ValueError
    except (ValueError, OverflowError) as problem:
        raise InputFileError(
            f"{path}: line {_first_bad_line(text)} is not a line of a FASTA index; run f5py index again"
        ) from problem
    names = fields[:-1:5]
    rows = dict(zip(names, range(count), strict=True))
    if len(rows) != count:  # the first of several reads of one name counts, as in htslib
        rows = dict(zip(reversed(names), range(count - 1, -1, -1), strict=True))
    return rows, columns


def _first_bad_line(text: str) -> int:
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        fields = line.split("\t")
        if len(fields) != 5 or not all(field.isdecimal() for field in fields[1:]):
            return number
    return len(lines)


def _check_is_index_of(reads_path: str, index_path: str, rows: dict[str, int]) -> None:
    """Compare the reads file with its index as far as that costs nothing. It may well be absent."""
    try:
        with open(reads_path, "rb") as plain:
            zipped = plain.read(2) == b"\x1f\x8b"
        with gzip.open(reads_path) if zipped else open(reads_path, "rb") as file:
            lines = file.read(1 << 16).split(b"\n")
        is_newer = os.path.getmtime(reads_path) > os.path.getmtime(index_path)
    except (OSError, EOFError, ValueError):
        return
    # the first read with a base on its first line: only those are sure to be in the index
    for header, sequence in pairwise(lines):
        if header[:1] in (b">", b"@") and header[1:].split() and sequence.strip():
            name = header[1:].split()[0].decode("utf-8", "surrogateescape")
            if name not in rows:
                raise InputFileError(
                    f"{index_path}: is not the index of {reads_path}, whose first read {name} it lacks; "
                    "run f5py index again"
                )
            break
    if is_newer:
        console.warning("read_index", f"{reads_path} is newer than its index; was it indexed again?")
