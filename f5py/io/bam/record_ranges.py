"""Ranges of the records of a file, which together have every record once and can be read apart.

A range of a BAM file is bounded by virtual offsets: the place of a block in the file, shifted by 16 bits, plus a place
in the block's text (SAM specification, section 4.1.1). Places where records begin are taken from the index, or, where
that names too few, from the file, which is read once for them. Ranges of other files are bounded by numbers of records.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import BinaryIO, NamedTuple, cast, overload

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.core.windows import Windows
from f5py.io.bam.bam_blocks import DamagedBlocksError, block_places, first_text
from f5py.io.bam.bam_index import BamIndex
from f5py.io.bam.bam_records import header_size, record_chunks
from f5py.io.bytes.bgzf_blocks import MAX_BLOCK, bgzf_blocks
from f5py.io.remote import ranged_file

#: Ranges made with an index may be that many times as large as the mean; else the file is read for more places.
_MOST_UNEVEN = 1.5
#: Files up to this size are read for places also if only those in windows count.
_SMALL_FILE = 1 << 26
#: Of the places where records begin, so many are kept for each range.
_PLACES_PER_RANGE = 8
#: About how many bytes of a block a byte of its text takes up.
_PACKED = 0.25
#: Bases of the reference after a window within which the records of the window are taken to end in the file.
_REACH = 1 << 16


class RecordRange(NamedTuple):
    """Consecutive records of a file."""

    # virtual offset of the first record; 0 is the beginning of the file, with its header. Its number, from 0, if the
    # file is not BAM.
    begin: int
    end: int | None  # that of the record after the last one; None at the end of a BAM file
    # number of records that a run over the whole file visits before these; 0 if they have not been counted
    first_record: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether it has no records."""
        return self.end is not None and self.end <= self.begin


class RecordRanges(Sequence[RecordRange]):
    """Many ranges in little memory: a file may be divided into a hundred thousand.

    Parameters
    ----------
    bounds : int64, shape (n, 3)
        Those of `RecordRange`, with -1 for the end of the file.
    """

    def __init__(self, bounds: NDArray[np.int64]) -> None:
        self._bounds = bounds

    @classmethod
    def of(cls, ranges: Iterable[Sequence[int | None]]) -> RecordRanges:
        """Those of some ranges, or of their bounds."""
        bounds = [(begin, -1 if end is None else end, first) for begin, end, first in ranges]
        return cls(np.array(bounds, np.int64).reshape(-1, 3))

    @classmethod
    def of_numbers(cls, n_records: int, n_parts: int) -> RecordRanges:
        """So many about equal ones of a file with so many records that is not BAM."""
        borders = n_records * np.arange(n_parts + 1) // n_parts
        return cls(np.stack([borders[:-1], borders[1:], borders[:-1]], 1))

    @property
    def n_records(self) -> int | None:
        """Number of all records, if the bounds are numbers of records."""
        return self[-1].end if len(self) else None

    def sizes(self, n_bytes: int) -> NDArray[np.int64]:
        """Of how many bytes of a file with `n_bytes` each is, about; int64."""
        begin, end, _ = self._bounds.T
        if self.n_records is not None:
            return (end - begin) * n_bytes // max(self.n_records, 1)
        sizes: NDArray[np.int64] = np.where(end < 0, n_bytes, end >> 16) - (begin >> 16)
        return np.maximum(sizes, 0)

    def __len__(self) -> int:
        return len(self._bounds)

    @overload
    def __getitem__(self, at: int) -> RecordRange: ...

    @overload
    def __getitem__(self, at: slice) -> RecordRanges: ...

    def __getitem__(self, at: int | slice) -> RecordRange | RecordRanges:
        if isinstance(at, slice):
            return RecordRanges(self._bounds[at])
        begin, end, first_record = self._bounds[at].tolist()
        return RecordRange(begin, None if end < 0 else end, first_record)

    def numbered(self, first_records: Sequence[int]) -> RecordRanges:
        """Attach numbers of first records to the ranges."""
        bounds = self._bounds.copy()
        bounds[:, 2] = first_records
        return RecordRanges(bounds)


class _RangeFile(io.RawIOBase):
    """A BAM file that ends where a range does.

    Places are those of the file. Where the range ends within a block, this has a block with the text until there.
    Raises `OSError` if the file cannot be read, or there is no block where the range ends.

    Parameters
    ----------
    end : int or None
        See `RecordRange`.
    """

    def __init__(self, path: str, end: int | None) -> None:
        super().__init__()
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed with this object
        self._remote = ranged_file(path)
        self._at = 0
        size = os.fstat(self._file.fileno()).st_size
        self._n_whole = size if end is None else min(end >> 16, size)
        self._tail = b""
        if end is not None and end & 0xFFFF:
            text = first_text(self._bytes(self._n_whole, MAX_BLOCK))
            if len(text) < end & 0xFFFF:
                self._file.close()
                raise DamagedBlocksError("a block is damaged")
            self._tail = b"".join(bgzf_blocks(text[: end & 0xFFFF], MAX_BLOCK >> 1))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Up to so many bytes, without a bound if it is negative."""
        if size < 0:
            size = self._n_whole + len(self._tail)
        if self._at < self._n_whole:
            piece = self._bytes(self._at, min(size, self._n_whole - self._at))
        else:
            first = self._at - self._n_whole
            piece = self._tail[first : first + size]
        self._at += len(piece)
        return piece

    def _bytes(self, place: int, size: int) -> bytes:
        if self._remote is not None:
            return self._remote.read(place, size)
        self._file.seek(place)
        return self._file.read(size)

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence != os.SEEK_SET:
            raise ValueError("only places counted from the beginning are known here")
        self._at = offset
        return offset

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def range_file(path: str, end: int | None) -> BinaryIO:
    """Open a BAM file that ends where a range does; see `_RangeFile`."""
    return cast(BinaryIO, _RangeFile(path, end))


def split_records(
    path: str, n_contigs: int, n_parts: int, index: BamIndex | None = None, windows: Windows | None = None
) -> RecordRanges:
    """Split a BAM file into ranges of about equal sizes in the file.

    Raises `OSError` if the file cannot be read, or is damaged.

    Parameters
    ----------
    n_parts : int
        Ranges; if there are not that many places for borders, the last ones are empty.
    index : BamIndex, optional
        Of this file. Without it the file is read.
    windows : Windows, optional
        The sizes are those of the records that overlap one; needs an index.
    """
    size = os.path.getsize(path)
    extents = np.array([[0, size]]) if index is None or windows is None else _extents(index, windows, size)
    borders, is_even = np.empty(0, np.int64), n_parts == 1
    if index is not None and n_parts > 1:
        borders, is_even = _borders(index.places(), extents, n_parts)
    if not is_even and (windows is None or size <= _SMALL_FILE):
        spacing = int(extents[:, 1].max() - extents[:, 0].min()) // (_PLACES_PER_RANGE * n_parts)
        borders, _ = _borders(_all_places(path, n_contigs, max(spacing, 1)), extents, n_parts)
    ranges = np.zeros((n_parts, 3), np.int64)
    ranges[1 : len(borders) + 1, 0] = borders
    # more parts than places: the last border stands for the missing ones
    ranges[len(borders) + 1 :, 0] = ranges[len(borders), 0]
    ranges[:-1, 1] = ranges[1:, 0]
    ranges[-1, 1] = -1
    return RecordRanges(ranges)


def _all_places(path: str, n_contigs: int, spacing: int) -> NDArray[np.int64]:
    """Virtual offsets at which records begin, ascending, one for about `spacing` bytes of the file."""
    with range_file(path, None) as file:
        blocks, texts = block_places(file)
    with range_file(path, None) as file:
        n_before = header_size(file)
    found = [np.empty(0, np.int64)]
    with range_file(path, None) as file, closing(record_chunks(file, n_contigs, n_before)) as chunks:
        for _, starts, n in chunks:
            begins = n_before + starts[:n]
            block = np.searchsorted(texts, begins, side="right") - 1
            places = blocks[block] << 16 | (begins - texts[block])
            found.append(places[np.diff(_in_file(places) // spacing, prepend=-1) > 0])
            n_before += int(starts[n])
    return np.concatenate(found)


def _in_file(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """About where in the file places are, in bytes."""
    return (places >> 16) + (_PACKED * (places & 0xFFFF)).astype(np.int64)


def _extents(index: BamIndex, windows: Windows, size: int) -> NDArray[np.int64]:
    """About where in the file the records of the windows are: disjoint stretches, ascending; int64, shape (n, 2)."""
    contigs, starts, ends = windows.bounds()
    found = []
    for contig, start, end in zip(contigs.tolist(), starts.tolist(), ends.tolist(), strict=True):
        begin = None if contig >= index.n_contigs else index.beginning(contig, start)
        if begin is None:
            continue
        after = index.beginning(contig, end + _REACH)
        if after is None:
            after = index.beginning(contig + 1, 0) if contig + 1 < index.n_contigs else None
        stop = size if after is None else max(after >> 16, begin >> 16)
        found.append((begin >> 16, min(stop + MAX_BLOCK, size)))
    if not found:
        return np.array([[0, size]])
    begins, stops = np.array(sorted(found), np.int64).T
    stops = np.maximum.accumulate(stops)
    is_apart = np.ones(len(begins), np.bool_)
    is_apart[1:] = begins[1:] > stops[:-1]
    return np.stack([begins[is_apart], stops[np.roll(is_apart, -1)]], 1)


def _borders(places: NDArray[np.int64], extents: NDArray[np.int64], n_parts: int) -> tuple[NDArray[np.int64], bool]:
    """Choose the places nearest to an even split of the extents, ascending, and say whether it is about even."""
    if not len(places):
        return places, False
    sizes = np.diff(extents, axis=1)[:, 0]
    before = offsets_of(sizes)
    at = _in_file(places)
    extent = np.searchsorted(extents[:, 0], at, side="right") - 1
    inside = np.clip(at - extents[extent, 0], 0, sizes[extent])
    # bytes of extents before each place, about
    passed = np.maximum.accumulate(np.where(extent < 0, 0, before[extent] + inside))
    wanted = before[-1] * np.arange(1, n_parts, dtype=np.float64) / n_parts
    following = np.minimum(np.searchsorted(passed, wanted), len(places) - 1)
    previous = np.maximum(following - 1, 0)
    is_nearer = wanted - passed[previous] < passed[following] - wanted
    chosen = np.unique(np.where(is_nearer, previous, following))
    largest = np.diff(np.concatenate([[0], passed[chosen], before[-1:]])).max()
    return places[chosen], bool(largest <= _MOST_UNEVEN * before[-1] / n_parts)
