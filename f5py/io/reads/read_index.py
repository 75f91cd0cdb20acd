"""Index of basecalled reads, compatible with f5c and nanopolish: sequences by read name."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.errors import InputFileError
from f5py.io.bytes.bgzf import BlockReader
from f5py.io.reads.indexed_fasta import FastaIndex, IndexedFasta, MemoryText
from f5py.io.remote import is_url
from f5py.messages.console import input_warning
from f5py.options.input_names import FAI_SUFFIX, GZI_SUFFIX, SEQUENCE_SUFFIX
from f5py.threads.pool import WorkerPool

#: Bytes after the index's last sequence that are checked.
_BYTES_BEHIND = 1 << 16


class ReadIndex(AbstractContextManager["ReadIndex"]):
    """Random access to the reads in ``<reads>.index``; a context manager, for one thread at a time."""

    def __init__(self, fasta: IndexedFasta, path: str) -> None:
        self._fasta = fasta
        self._path = path

    @classmethod
    def open(cls, reads_path: str) -> ReadIndex:
        """Open the index of a reads file; raise `InputFileError` if it is damaged or of other reads."""
        paths = [reads_path + suffix for suffix in (SEQUENCE_SUFFIX, FAI_SUFFIX, GZI_SUFFIX)]
        for path in paths:
            if not os.path.exists(path):
                if not is_url(reads_path) and not os.path.lexists(reads_path):
                    raise InputFileError(f"{reads_path}: no such file, nor an index of it")
                raise InputFileError(f"{path}: not found; the reads have no index, run f5py index with {reads_path}")
        index = FastaIndex.read(paths[1], "run f5py index again")
        text = BlockReader(paths[0], paths[2])
        try:
            if not _covers(index, text):
                raise InputFileError(f"{paths[1]}: does not belong to {paths[0]}; run f5py index again")
            _check_is_index_of(reads_path, paths[0], index)
        except BaseException:
            text.close()
            raise
        return cls(IndexedFasta(index, text), paths[0])

    @property
    def index(self) -> FastaIndex:
        return self._fasta.index

    def close(self) -> None:
        self._fasta.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.index)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self.index.rows_of(Names.of([name]))[0] >= 0)

    def first_names(self, n: int) -> list[str]:
        """Return the names of the first n reads."""
        return [self.index.name(row) for row in range(min(n, len(self)))]

    def lengths_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bases of reads by row, int64, shape (n,); 0 for row -1."""
        return np.where(rows >= 0, self.index.length[rows], 0) if len(self) else np.zeros(len(rows), np.int64)

    def sequences(
        self, names: Iterable[str], pool: WorkerPool | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Fetch the bases of reads, repeats allowed, and their offsets; missing ones are empty.

        They are ASCII letters as in the reads file, case and U included. Raises `InputFileError` if the index is
        damaged.
        """
        return self.sequences_of(self.index.rows_of(Names.of(names)), pool)

    def sequences_of(
        self, rows: NDArray[np.int64], pool: WorkerPool | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Fetch the bases of reads by row, -1 for a missing one; see `sequences`."""
        length = self.lengths_of(rows)
        if not length.any():
            return np.empty(0, np.uint8), np.zeros(len(rows) + 1, np.int64)
        bases, offsets, wrong = self._fasta.fetch(np.maximum(rows, 0), np.zeros(len(rows), np.int64), length, pool)
        if wrong.any():
            raise InputFileError(f"{self._path}: does not fit its .fai; run f5py index again")
        return bases, offsets


def _covers(index: FastaIndex, text: BlockReader) -> bool:
    """Return whether the index's last sequence is the text's last one, empty ones aside."""
    end = int(index.end().max()) if len(index) else 0
    if end >= text.size:
        return end == text.size
    stop = min(end + _BYTES_BEHIND, text.size)
    block, (begin,) = text.read(np.array([end]), np.array([stop]))
    lines = block[begin : begin + stop - end].tobytes().split(b"\n")
    return not any(line.strip() and not line.startswith(b">") for line in lines)


def _check_is_index_of(reads_path: str, index_path: str, index: FastaIndex) -> None:
    """Compare the beginning and time of the reads file, if it exists, with the index."""
    try:
        with open(reads_path, "rb") as plain:
            zipped = plain.read(2) == b"\x1f\x8b"
        with gzip.open(reads_path) if zipped else open(reads_path, "rb") as file:
            lines = file.read(1 << 16).split(b"\n")
        is_newer = os.path.getmtime(reads_path) > os.path.getmtime(index_path)
    except (OSError, EOFError, ValueError):
        return
    # the first read with a base on its first line is surely in the index
    is_text = lines[0][:1] in (b">", b"@")  # not BAM, bzip2 and the like
    for header, sequence in pairwise(lines if is_text else []):
        if header[:1] in (b">", b"@") and header[1:].split() and sequence.strip():
            name = header[1:].split()[0].decode("utf-8", "surrogateescape")
            if index.rows_of(Names.of([name]))[0] < 0:
                raise InputFileError(
                    f"{index_path}: is not the index of {reads_path}: it lacks the first read, {name}; "
                    "run f5py index again"
                )
            break
    if is_newer:
        input_warning("read_index", f"{reads_path} is newer than its index; was it indexed again?")


def reads_in_memory(names: Names, bases: NDArray[np.uint8], offsets: NDArray[np.int64], path: str) -> ReadIndex:
    """Make a `ReadIndex` of reads in memory; of equal names the first one counts."""
    return ReadIndex(IndexedFasta(FastaIndex.of_sequences(names, offsets), MemoryText(bases)), path)
