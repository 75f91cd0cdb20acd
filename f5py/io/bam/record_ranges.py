"""Division of a file's records into separate ranges, and records that overlap windows.

BAM ranges have virtual offsets as bounds: a block's file offset, shifted by 16 bits, plus an offset in its text (SAM
specification, section 4.1.1). They come from the index or, if that has too few, from a scan of the file. Ranges of
other formats have record numbers as bounds.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from typing import BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import merge_intervals, offsets_of
from f5py.core.windows import Windows
from f5py.io.bam._bam_numba import CONTIG, signed32
from f5py.io.bam.bam_blocks import block_places
from f5py.io.bam.bam_index import BamIndex, are_block_starts, wrong_index_error
from f5py.io.bam.bam_records import chosen_records, header_size, record_chunks, record_places
from f5py.io.bytes.bgzf_blocks import MAX_BLOCK, DamagedBlocksError, bgzf_blocks, first_block
from f5py.io.remote import ranged_file

#: Largest ratio of a range to the mean before the file is scanned for more bounds.
_MOST_UNEVEN = 1.5
#: Files up to this size are scanned even with windows.
_SMALL_FILE = 1 << 26
#: Possible bounds per range.
_PLACES_PER_RANGE = 8
#: About the compression ratio of a block.
_PACKED = 0.25
#: First read at an offset of the index: a block.
_FIRST_BYTES = 1 << 16
#: Reference bases after a window by which the file range of its records is extended.
_REACH = 1 << 16


class RecordRange(NamedTuple):
    """Consecutive records of a file."""

    begin: int  # virtual offset of the first record, 0 for the start of the file; record number if not BAM
    end: int | None  # exclusive; None at the end of a BAM file
    first_record: int = 0  # records before these in the whole file, if counted

    @property
    def is_empty(self) -> bool:
        return self.end is not None and self.end <= self.begin


def number_ranges(n_records: int, n_parts: int) -> list[RecordRange]:
    """Split `n_records` of a file other than BAM into about equal ranges."""
    borders = [n_records * i // n_parts for i in range(n_parts + 1)]
    return [RecordRange(begin, end, begin) for begin, end in pairwise(borders)]


def range_sizes(ranges: Sequence[RecordRange], n_bytes: int) -> NDArray[np.int64]:
    """Return about the bytes of each range of a whole file of `n_bytes`."""
    n_records = ranges[-1].end if ranges else None
    if n_records is None:
        sizes = [max((n_bytes if end is None else end >> 16) - (begin >> 16), 0) for begin, end, _ in ranges]
    else:
        sizes = [((end or 0) - begin) * n_bytes // max(n_records, 1) for begin, end, _ in ranges]
    return np.array(sizes, np.int64)


class _RangeFile(io.FileIO):
    """A BAM file truncated at the end of a range, with the original file offsets.

    A range that ends within a block gets a block with the text up to there. Raises `OSError` if the file cannot be read
    or has no block at the end.
    """

    def __init__(self, path: str, end: int | None) -> None:
        super().__init__(path)
        self._remote = ranged_file(path)
        size = os.fstat(self.fileno()).st_size
        self._n_whole = size if end is None else min(end >> 16, size)
        self._tail = b""
        if end is not None and end & 0xFFFF:
            try:
                text, _ = first_block(self._bytes(self._n_whole, MAX_BLOCK))
                if len(text) < end & 0xFFFF:
                    raise DamagedBlocksError("a block is damaged")
            except BaseException:
                self.close()
                raise
            self._tail = b"".join(bgzf_blocks(text[: end & 0xFFFF], MAX_BLOCK >> 1))

    def read(self, size: int | None = -1, /) -> bytes:
        """Read at most `size` bytes; all if negative."""
        at = self.tell()
        if size is None or size < 0:
            size = self._n_whole + len(self._tail)
        if at < self._n_whole:
            piece = self._bytes(at, min(size, self._n_whole - at))
        else:
            piece = self._tail[at - self._n_whole :][:size]
        self.seek(at + len(piece))
        return piece

    def _bytes(self, place: int, size: int) -> bytes:
        return self._remote.read(place, size) if self._remote is not None else os.pread(self.fileno(), size, place)


def range_file(path: str, end: int | None) -> BinaryIO:
    """Open a BAM file truncated at the end of a range; see `_RangeFile`."""
    return cast(BinaryIO, _RangeFile(path, end))


def split_records(
    path: str, n_contigs: int, n_parts: int, index: BamIndex | None = None, windows: Windows | None = None
) -> list[RecordRange]:
    """Split a BAM file into ranges of about equal file sizes.

    The last ones are empty if there are too few bounds. Without an index the file is scanned. With windows, which need
    one, only records that overlap one are balanced. Raises `OSError` if the file cannot be read or is damaged.
    """
    size = os.path.getsize(path)
    extents = np.array([[0, size]]) if index is None or windows is None else _extents(index, windows, size)
    borders, is_even = np.empty(0, np.int64), n_parts == 1
    if index is not None and n_parts > 1:
        borders, is_even = _borders(index.places(), extents, n_parts)
    if not is_even and (windows is None or size <= _SMALL_FILE):
        spacing = int(extents[:, 1].max() - extents[:, 0].min()) // (_PLACES_PER_RANGE * n_parts)
        borders, _ = _borders(_all_places(path, n_contigs, max(spacing, 1)), extents, n_parts)
    begins = [0, *borders.tolist()]
    begins += begins[-1:] * (n_parts - len(begins))  # too few places
    return [RecordRange(begin, end) for begin, end in zip(begins, [*begins[1:], None], strict=True)]


def _all_places(path: str, n_contigs: int, spacing: int) -> NDArray[np.int64]:
    """Return virtual offsets of records, ascending, about one per `spacing` bytes of the file."""
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
    """Return about the file offsets of virtual offsets, in bytes."""
    return (places >> 16) + (_PACKED * (places & 0xFFFF)).astype(np.int64)


def _extents(index: BamIndex, windows: Windows, size: int) -> NDArray[np.int64]:
    """Return about the file ranges of the windows' records, disjoint and ascending; int64, shape (n, 2)."""
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
    return np.stack(merge_intervals(*np.array(sorted(found), np.int64).T), 1)


def _borders(places: NDArray[np.int64], extents: NDArray[np.int64], n_parts: int) -> tuple[NDArray[np.int64], bool]:
    """Choose the places nearest to an even split of the extents; also return whether it is about even."""
    if not len(places):
        return places, False
    sizes = np.diff(extents, axis=1)[:, 0]
    before = offsets_of(sizes)
    at = _in_file(places)
    extent = np.searchsorted(extents[:, 0], at, side="right") - 1
    inside = np.clip(at - extents[extent, 0], 0, sizes[extent])
    passed = np.maximum.accumulate(np.where(extent < 0, 0, before[extent] + inside))
    wanted = before[-1] * np.arange(1, n_parts, dtype=np.float64) / n_parts
    following = np.minimum(np.searchsorted(passed, wanted), len(places) - 1)
    previous = np.maximum(following - 1, 0)
    is_nearer = wanted - passed[previous] < passed[following] - wanted
    chosen = np.unique(np.where(is_nearer, previous, following))
    largest = np.diff(np.concatenate([[0], passed[chosen], before[-1:]])).max()
    return places[chosen], bool(largest <= _MOST_UNEVEN * before[-1] / n_parts)


def window_chunks(
    path: str, index: BamIndex, windows: Windows, within: RecordRange
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], int]]:
    """Yield the records of `within` that overlap a window, once and in file order, as `record_chunks`.

    Reading starts at the index's offset for a window and stops after it, unless the next window is already read ahead.
    Raises `InputFileError` if an offset of the index is not a block start, `OSError` as `record_chunks`.
    """
    contigs, starts, ends = windows.bounds()
    begins = [
        None if contig >= index.n_contigs else index.beginning(contig, start)
        for contig, start in zip(contigs.tolist(), starts.tolist(), strict=True)
    ]
    if within.end is not None:
        begins = [begin if begin is not None and begin < within.end else None for begin in begins]
    begins = [None if begin is None else max(begin, within.begin) for begin in begins]
    following = 0
    with range_file(path, within.end) as file:
        while following < len(begins):
            begin = begins[following]
            if begin is None:
                following += 1
                continue
            place = begin >> 16
            if not are_block_starts(path, np.array([place])):
                raise wrong_index_error(index.path, path)
            file.seek(place)
            for data, bounds, n in record_chunks(file, index.n_contigs, begin & 0xFFFF, _FIRST_BYTES):
                contig, start, chosen = _overlapping(data, bounds, n, windows)
                if chosen.size:
                    yield *chosen_records(data, bounds, chosen), len(chosen)
                # unmapped records are at the end
                done = (contigs < contig) | ((contigs == contig) & (ends <= start)) | (contig < 0)
                following = max(following, int(done.sum()))
                while following < len(begins) and begins[following] is None:
                    following += 1
                if following == len(begins) or (begins[following] or 0) >> 16 >= file.tell():
                    break
            else:
                return


def is_mapped_at(path: str, offset: int, n_contigs: int) -> bool:
    """Return whether the record at a virtual offset is mapped; raise `OSError` for an invalid offset."""
    with range_file(path, None) as file:
        file.seek(offset >> 16)
        for data, bounds, _ in record_chunks(file, n_contigs, offset & 0xFFFF, _FIRST_BYTES):
            return bool(signed32(data, bounds[0] + CONTIG) >= 0)
    return False


def _overlapping(
    data: NDArray[np.uint8], bounds: NDArray[np.int64], n: int, windows: Windows
) -> tuple[int, int, NDArray[np.int64]]:
    """Return contig and start of the last record, and the records that overlap a window."""
    contig, start, end = record_places(data, bounds, n)
    _, _, first, after = windows.overlapping(contig, start, end)
    return int(contig[-1]), int(start[-1]), np.flatnonzero((after > first) & (contig >= 0) & (start >= 0))
