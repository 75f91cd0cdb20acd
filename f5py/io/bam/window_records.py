"""Records of a BAM file that overlap windows, through its index."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from f5py.core.windows import Windows
from f5py.io.bam.bam_index import BamIndex, is_block_start, wrong_index_error
from f5py.io.bam.bam_records import chosen_records, record_chunks
from f5py.io.bam.record_ranges import RecordRange, range_file

#: First read at an offset of the index: a block.
_FIRST_BYTES = 1 << 16


def window_chunks(
    path: str,
    index: BamIndex,
    windows: Windows,
    within: RecordRange = RecordRange(0, None),  # noqa: B008 - immutable
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
            if not is_block_start(path, place):
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
    from f5py.io.bam._bam_numba import CONTIG, signed32

    with range_file(path, None) as file:
        file.seek(offset >> 16)
        for data, bounds, _ in record_chunks(file, n_contigs, offset & 0xFFFF, _FIRST_BYTES):
            return bool(signed32(data, bounds[0] + CONTIG) >= 0)
    return False


def _overlapping(
    data: NDArray[np.uint8], bounds: NDArray[np.int64], n: int, windows: Windows
) -> tuple[int, int, NDArray[np.int64]]:
    """Return contig and start of the last record, and the records that overlap a window."""
    from f5py.io.bam._bam_columns_numba import places_of

    contig, start, end = np.empty((3, n), np.int64)
    places_of(data, bounds, contig, start, end)
    _, _, first, after = windows.overlapping(contig, start, end)
    return int(contig[-1]), int(start[-1]), np.flatnonzero((after > first) & (contig >= 0) & (start >= 0))
