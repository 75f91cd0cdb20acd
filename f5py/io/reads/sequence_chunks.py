"""Reads of FASTA and FASTQ files, many at a time, for compiled code.

Files whose reads have one line of bases each, as nearly all have, are searched by several threads in compiled code;
those that are not compressed, where they are. Whatever is unusual, and whatever is wrong, is left to
`f5py.io.reads.sequence_files.sequence_records`, which goes on with the first read of a portion that is not as expected.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.errors import InputFileError
from f5py.io.bytes.byte_input import open_bytes
from f5py.io.bytes.mapped_file import MappedFile, changed_file
from f5py.io.reads.sequence_files import sequence_records
from f5py.threads.pool import WorkerPool

#: Bytes of text that are searched at a time, and by one thread.
_PORTION, _PIECE = 1 << 25, 1 << 19
#: Bases of reads that are put together one by one.
_BASES = 1 << 23
_MARKS = {b">": 2, b"@": 4}


@dataclass(frozen=True)
class SequenceChunk:
    """Consecutive reads of a file."""

    text: NDArray[np.uint8]
    # name_begin, name_end, header_end, base_begin, base_end: shape (n,): read i is called
    # ``text[name_begin[i]:name_end[i]]`` and has the bases ``text[base_begin[i]:base_end[i]]``. A comment begins one
    # byte after the name and goes up to `header_end`.
    name_begin: NDArray[np.int64]
    name_end: NDArray[np.int64]
    header_end: NDArray[np.int64]
    base_begin: NDArray[np.int64]
    base_end: NDArray[np.int64]
    has_path: NDArray[np.bool_]  # shape (n,): the comment ends like the path of a fast5 file

    def __len__(self) -> int:
        return len(self.name_begin)

    def names(self) -> list[str]:
        """Names of the reads."""
        places = zip(self.name_begin.tolist(), self.name_end.tolist(), strict=True)
        return [self.text[begin:end].tobytes().decode("utf-8", "surrogateescape") for begin, end in places]

    def comment(self, read: int) -> str:
        """Return what stands after a read's name."""
        raw = self.text[self.name_end[read] + 1 : self.header_end[read]].tobytes()
        return raw.decode("utf-8", "surrogateescape")

    def chosen(self, reads: NDArray[np.int64]) -> SequenceChunk:
        """Select some of the reads."""
        return SequenceChunk(
            self.text,
            self.name_begin[reads],
            self.name_end[reads],
            self.header_end[reads],
            self.base_begin[reads],
            self.base_end[reads],
            self.has_path[reads],
        )


def sequence_chunks(path: str, pool: WorkerPool) -> Iterator[SequenceChunk]:
    """Yield the reads of a file, as `f5py.io.reads.sequence_files.sequence_records` does.

    Raises `InputFileError` or `MissingDependencyError` as `sequence_records`.

    Parameters
    ----------
    path : str
        Of any kind that `sequence_records` takes.
    pool : WorkerPool
        Threads that search.
    """
    n_done = 0
    is_at_end = has_changed = False
    try:
        with _opened(path) as portions:
            mark = b""
            while portions is not None and not is_at_end:
                text, is_last = portions.take()
                mark = mark or text[:1].tobytes()
                if mark not in _MARKS:
                    break
                chunk, n_used, is_odd = _search(text, mark, is_last, pool)
                if len(chunk):
                    n_done += len(chunk)
                    yield chunk
                if is_odd:
                    break
                portions.use(n_used)
                is_at_end = is_last
            has_changed = portions is not None and portions.has_changed()
    except InputFileError:  # those who read one by one will tell where
        is_at_end = False
    if has_changed:
        raise changed_file(path)
    if not is_at_end or not n_done:
        yield from _one_by_one(path, n_done)


@contextmanager
def _opened(path: str) -> Iterator[_MappedPortions | _StreamPortions | None]:
    """Yield what gives portions of a file's text, or None for a file that is not read so."""
    if path == "-" or not os.path.isfile(path) or not os.path.getsize(path):
        yield None
        return
    with open(path, "rb") as file:
        start = file.read(2)
        if start[:1] in _MARKS:
            mapped = MappedFile(path)
            try:
                yield _MappedPortions(mapped)
            finally:
                mapped.close()
            return
    if start != b"\x1f\x8b":
        yield None
        return
    with open_bytes(path) as stream:
        yield _StreamPortions(stream)


class _MappedPortions:
    """Portions of a text in memory."""

    def __init__(self, file: MappedFile) -> None:
        self._file = file
        self._text = file.text.view()
        self._text.flags.writeable = False
        self._at, self._size = 0, _PORTION

    def take(self) -> tuple[NDArray[np.uint8], bool]:
        """Take text after what has been used, more than before if that was nothing; return whether it is the last."""
        end = self._at + self._size
        return self._text[self._at : end], end >= len(self._text)

    def has_changed(self) -> bool:
        """Return whether somebody has changed the file since it was opened."""
        return self._file.has_changed()

    def use(self, n: int) -> None:
        """Say how much has been used."""
        self._at += n
        self._size = _PORTION if n else 2 * self._size


class _StreamPortions:
    """Portions of the text of a stream."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._rest = np.empty(0, np.uint8)

    def take(self) -> tuple[NDArray[np.uint8], bool]:
        """See `_MappedPortions.take`."""
        piece = self._stream.read(_PORTION)
        self._rest = np.concatenate([self._rest, np.frombuffer(piece, np.uint8)])
        self._rest.setflags(write=False)  # as mapped files are: kernels are compiled once for both
        return self._rest, len(piece) < _PORTION

    def has_changed(self) -> bool:
        """See `_MappedPortions.has_changed`."""
        return False

    def use(self, n: int) -> None:
        """See `_MappedPortions.use`."""
        self._rest = self._rest[n:]


def _search(text: NDArray[np.uint8], mark: bytes, is_last: bool, pool: WorkerPool) -> tuple[SequenceChunk, int, bool]:
    """Find the reads that a text begins with, how many bytes they take, and whether what follows is not as expected."""
    from f5py.io.reads._sequence_chunks_numba import count_newlines, find_reads, list_newlines

    bounds = np.append(np.arange(0, len(text), _PIECE), len(text))
    pieces = np.arange(len(bounds) - 1)
    counts = np.empty(len(pieces), np.int64)
    pool.run(count_newlines, pieces, text, bounds, counts)
    offsets = offsets_of(counts)
    ends = np.empty(offsets[-1], np.int64)
    pool.run(list_newlines, pieces, text, bounds, offsets, ends)
    if is_last and len(text) and text[-1] != ord("\n"):
        ends = np.append(ends, len(text))
    n = len(ends) // _MARKS[mark]
    found = *np.empty((5, n), np.int64), np.zeros(n, np.bool_)
    is_odd = np.empty(n, np.bool_)
    pool.run(find_reads, np.arange(n), text, ends, ord(mark), found, is_odd)
    n_good = int(np.argmax(is_odd)) if is_odd.any() else n
    n_used = min(int(ends[n_good * _MARKS[mark] - 1]) + 1, len(text)) if n_good else 0
    chunk = SequenceChunk(text, *found).chosen(np.arange(n_good))
    return chunk, n_used, n_good < n or (is_last and bool(text[n_used:].tobytes().strip()))


def _one_by_one(path: str, n_done: int) -> Iterator[SequenceChunk]:
    """Read a file after its first `n_done` reads, one by one."""
    pieces: list[bytes] = []
    sizes: list[tuple[int, int, int]] = []
    n_bases = 0
    for name, comment, bases in islice(sequence_records(path), n_done, None):
        named = name.encode("utf-8", "surrogateescape")
        header = named + b" " + comment.encode("utf-8", "surrogateescape")
        pieces += [header, bases]
        sizes.append((len(named), len(header), len(bases)))
        n_bases += len(bases)
        if n_bases >= _BASES:
            yield _chunk_of(pieces, sizes)
            pieces, sizes, n_bases = [], [], 0
    if sizes:
        yield _chunk_of(pieces, sizes)


def _chunk_of(pieces: list[bytes], sizes: list[tuple[int, int, int]]) -> SequenceChunk:
    names, headers, bases = np.array(sizes, np.int64).T
    text = np.frombuffer(b"".join(pieces), np.uint8)
    begin = offsets_of(headers + bases)[:-1]
    ends_like_path = [header.rstrip(b" ").endswith(b".fast5") for header in pieces[::2]]
    has_path = np.array(ends_like_path) & (headers > names + 1)
    return SequenceChunk(
        text, begin, begin + names, begin + headers, begin + headers, begin + headers + bases, has_path
    )
