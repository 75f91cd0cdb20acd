"""Extents of the signal tables in a POD5 file, for partial fetches.

A POD5 file ends with a FlatBuffers footer, its length (8 bytes), a marker (16 bytes) and the signature. The footer
lists the embedded Arrow files, each of which ends with its own footer, its length (4 bytes) and ``ARROW1``.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from f5py.io.bytes.byte_pieces import read_at
from f5py.io.files.signal_format import POD5_MAGIC
from f5py.io.remote.ranged_file import RangedFile

_MARKER_SIZE = 16
#: Field indices of the footers, and the content type of signals.
_CONTENTS, _OFFSET, _LENGTH, _CONTENT_TYPE = 3, 0, 1, 3
_SIGNALS = 1
_RECORD_BATCHES = 3
_ARROW_MAGIC = b"ARROW1"
#: A record batch in an Arrow footer: offset, metadata length, body length.
_BLOCK = np.dtype([("place", "<i8"), ("n_about", "<i4"), ("padding", "<i4"), ("n_columns", "<i8")])


def fetch_all_but_signals(file: RangedFile) -> NDArray[np.int64]:
    """Fetch the parts that opening and lookup need; return the extents of the signal tables.

    They are the start of each table, of its first column, and its end; int64, shape (n, 3). Raises `ValueError` or
    `IndexError` if the file is damaged or not POD5.
    """
    descriptor = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        end = file.size - len(POD5_MAGIC) - _MARKER_SIZE - 8
        file.fetch_ranges([0, end], [len(POD5_MAGIC), file.size], stay=True)
        if end < 0 or read_at(descriptor, len(POD5_MAGIC), file.size - len(POD5_MAGIC)) != POD5_MAGIC:
            raise ValueError("no signature at the end")
        n_footer = int.from_bytes(read_at(descriptor, 8, end), "little")
        footer = _FlatTable.at_root(_fetched(file, descriptor, end - n_footer, end))
        parts = [
            (part.number(_OFFSET, 8), part.number(_LENGTH, 8)) for part in footer.tables(_CONTENTS)
            if part.number(_CONTENT_TYPE, 2) == _SIGNALS
        ]  # fmt: skip
        if len(parts) != 1:
            raise ValueError("not one table of signals")
        begin, end = parts[0][0], sum(parts[0])
        file.fetch_ranges([0, end], [begin, file.size], stay=True)
        stop = end - len(_ARROW_MAGIC) - 4
        tail = _fetched(file, descriptor, stop, end)
        if tail[4:] != _ARROW_MAGIC:
            raise ValueError("the table of signals has no end")
        n_footer = int.from_bytes(tail[:4], "little")
        blocks = _FlatTable.at_root(_fetched(file, descriptor, stop - n_footer, stop)).structures(
            _RECORD_BATCHES, _BLOCK
        )
        sizes = np.stack([np.zeros(len(blocks), np.int64), blocks["n_about"], blocks["n_columns"]], 1)
        extents: NDArray[np.int64] = blocks["place"][:, None] + begin + np.cumsum(sizes, axis=1)
        # the library reads up to the first batch's metadata on opening
        file.fetch_ranges(begin, extents[0, 1] if len(blocks) else stop, stay=True)
        return extents
    finally:
        os.close(descriptor)


def _fetched(file: RangedFile, descriptor: int, begin: int, end: int) -> bytes:
    if not 0 <= begin < end <= file.size:
        raise ValueError("a footer outside of the file")
    file.fetch_ranges(begin, end, stay=True)
    return read_at(descriptor, end - begin, begin)


class _FlatTable:
    """A table of FlatBuffers."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at
        self._fields = at - self._int(at, 4, signed=True)

    @classmethod
    def at_root(cls, data: bytes) -> _FlatTable:
        return cls(data, int.from_bytes(data[:4], "little"))

    def number(self, field: int, size: int) -> int:
        """Return a numeric field, 0 if it is absent."""
        place = self._place(field)
        return 0 if place is None else self._int(place, size)

    def tables(self, field: int) -> list[_FlatTable]:
        first, n = self._list(field)
        return [_FlatTable(self._data, at + self._int(at, 4)) for at in range(first, first + 4 * n, 4)]

    def structures(self, field: int, kind: np.dtype) -> NDArray:
        first, n = self._list(field)
        return np.frombuffer(self._data, kind, n, first) if n else np.empty(0, kind)

    def _list(self, field: int) -> tuple[int, int]:
        place = self._place(field)
        if place is None:
            return 0, 0
        at = place + self._int(place, 4)
        return at + 4, self._int(at, 4)

    def _place(self, field: int) -> int | None:
        at = 4 + 2 * field
        offset = self._int(self._fields + at, 2) if at < self._int(self._fields, 2) else 0
        return self._at + offset if offset else None

    def _int(self, at: int, size: int, signed: bool = False) -> int:
        if not 0 <= at <= len(self._data) - size:
            raise ValueError("a footer is damaged")
        return int.from_bytes(self._data[at : at + size], "little", signed=signed)
