"""Checked index of a BAM file, because htslib loops, crashes or loses records with a damaged one.

Only start offsets are used: the linear index of a .bai and the bin offsets of a .csi. From there the sorted file is
read until records begin after the window. Chunks of bins are ignored, so no flipped bit in them can hide a record. The
start is the previous window's offset, or the window's own if that is smaller: one value that is too large hides
nothing.
"""

from __future__ import annotations

import gzip
import os
import zlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.errors import InputFileError
from f5py.io.bam._bam_numba import signed32
from f5py.io.bytes.bgzf_blocks import BLOCK_MAGIC
from f5py.io.bytes.byte_pieces import read_at
from f5py.io.remote import fetch_ranges, ranged_file
from f5py.jit.kernel import exact_inner, exact_kernel

_BAI_MAGIC, _CSI_MAGIC = b"BAI\x01", b"CSI\x01"
#: Number of offsets that are checked for block starts.
_PLACES, _REMOTE_PLACES = 2048, 32
#: log2 of the window size of a .bai.
_BAI_SHIFT = 14
#: Largest depth and window shift, as positions have 31 bits.
_MOST_DEPTH, _MOST_SHIFT = 10, 31
#: No record.
_NOWHERE = np.uint64(2**64 - 1)
#: The bin with counts of a .bai.
_COUNTS = 37450


class IndexScan(NamedTuple):
    """Contents of an index of n contigs."""

    n_mapped: NDArray[np.int64]  # shape (n,): mapped records; -1 if the index does not count them
    # first, last: shape (n,): virtual offsets at which the first chunk begins and the last one ends
    first: NDArray[np.uint64]
    last: NDArray[np.uint64]
    n_stretches: NDArray[np.int64]  # shape (n,): windows after which there are no records; -1 if unknown
    starts: NDArray[np.int64]  # file offsets of chunk starts and ends
    # contigs, stretches, offsets: the first record that reaches into a contig's window
    contigs: NDArray[np.int64]
    stretches: NDArray[np.int64]
    offsets: NDArray[np.uint64]
    sizes: NDArray[np.int64]  # shape (2,): filled elements of `starts`, and of the three columns above

    @classmethod
    def empty(cls, n_contigs: int, n_bytes: int) -> IndexScan:
        """Allocate arrays for an index of that size."""
        room = n_bytes // 8 + 2
        first, last = np.full(n_contigs, _NOWHERE), np.zeros(n_contigs, np.uint64)
        n_mapped, n_stretches = np.zeros(n_contigs, np.int64), np.full(n_contigs, -1)
        starts, contigs, stretches = np.empty((3, room), np.int64)
        offsets, sizes = np.empty(room, np.uint64), np.zeros(2, np.int64)
        return cls(n_mapped, first, last, n_stretches, starts, contigs, stretches, offsets, sizes)


@exact_inner
def _unsigned64(data, at):
    value = np.uint64(0)
    for i in range(8):
        value |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return value


@exact_inner
def _scan_chunks(data, at, n_chunks, file_size, contig, scan):
    """Record the chunks of a bin; return the offset after them, or -1."""
    if n_chunks < 0 or n_chunks > (data.shape[0] - at) // 16:
        return np.int64(-1)
    for _ in range(n_chunks):
        begin, end = _unsigned64(data, at), _unsigned64(data, at + 8)
        at += 16
        if begin >= end or np.int64(end >> np.uint64(16)) > file_size:
            return np.int64(-1)
        scan.first[contig] = min(scan.first[contig], begin)
        scan.last[contig] = max(scan.last[contig], end)
        n = scan.sizes[0]
        scan.starts[n] = np.int64(begin >> np.uint64(16))
        scan.starts[n + 1] = np.int64(end >> np.uint64(16))
        scan.sizes[0] = n + 2
    return at


@exact_inner
def _add_entry(contig, stretch, offset, scan):
    n = scan.sizes[1]
    scan.contigs[n], scan.stretches[n], scan.offsets[n] = contig, stretch, offset
    scan.sizes[1] = n + 1


@exact_inner
def _scan_bins(data, at, depth, file_size, contig, scan):
    """Check the bins of a contig; return the offset after them, or -1. A `depth` of -1 means .bai."""
    size = data.shape[0]
    is_csi = depth >= 0
    counts = ((np.int64(1) << (3 * (depth + 1))) - 1) // 7 + 1 if is_csi else np.int64(_COUNTS)  # the bin with counts
    head = 16 if is_csi else 8
    if at + 4 > size:
        return np.int64(-1)
    n_bins = signed32(data, at)
    at += 4
    has_counts = n_bins == 0
    for _ in range(n_bins):
        if at + head > size:
            return np.int64(-1)
        bin_number = signed32(data, at) & 0xFFFFFFFF
        offset = _unsigned64(data, at + 4) if is_csi else np.uint64(0)
        n_chunks = signed32(data, at + head - 4)
        at += head
        if bin_number > counts:
            return np.int64(-1)
        if bin_number == counts:
            if n_chunks != 2 or at + 32 > size:
                return np.int64(-1)
            has_counts = True
            scan.n_mapped[contig] = np.int64(_unsigned64(data, at + 16))
            at += 32
            continue
        at = _scan_chunks(data, at, n_chunks, file_size, contig, scan)
        if at < 0:
            return at
        if offset != 0:
            level = 0
            first_of_level = np.int64(0)
            while bin_number >= first_of_level + (np.int64(1) << (3 * level)):
                first_of_level += np.int64(1) << (3 * level)
                level += 1
            _add_entry(contig, (bin_number - first_of_level) << (3 * (depth - level)), offset, scan)
    if not has_counts:
        scan.n_mapped[contig] = -1
    return at


@exact_kernel
def scan_contigs(data, at, depth, file_size, scan):
    """Check and scan the contigs of an index; return whether it can be of a BAM file of that size.

    Parameters
    ----------
    at : int
        Offset of the first contig.
    depth : int
        Levels of a decompressed .csi below the first; -1 for a .bai.
    scan : IndexScan
        Filled.
    """
    size = data.shape[0]
    for contig in range(scan.first.shape[0]):
        at = _scan_bins(data, at, depth, file_size, contig, scan)
        if at < 0:
            return False
        if depth >= 0:
            continue
        n_intervals = signed32(data, at) if at + 4 <= size else np.int64(-1)
        at += 4
        if n_intervals < 0 or n_intervals > (size - at) // 8:
            return False
        scan.n_stretches[contig] = n_intervals
        for stretch in range(n_intervals):
            offset = _unsigned64(data, at)
            at += 8
            if offset != 0:  # else a window without records
                _add_entry(contig, stretch, offset, scan)
    return at in (size, size - 8)


@dataclass(frozen=True)
class BamIndex:
    """A sound index."""

    path: str
    scan: IndexScan  # sorted by contig and window
    shift: int  # log2 of the window size

    @property
    def n_contigs(self) -> int:
        return len(self.scan.first)

    @property
    def n_mapped(self) -> int | None:
        """Mapped records, if the index counts them."""
        counts = self.scan.n_mapped
        return None if (counts < 0).any() else int(counts.sum())

    @property
    def last(self) -> int:
        """Virtual offset of the last mapped record's end; 0 without any."""
        return int(self.scan.last.max(initial=np.uint64(0)))

    def places(self) -> NDArray[np.int64]:
        """Return the virtual offsets of records in the index, ascending; int64."""
        first = self.scan.first[self.scan.first != _NOWHERE]
        return np.unique(np.concatenate([first, self.scan.offsets])).astype(np.int64)

    def beginning(self, contig: int, start: int) -> int | None:
        """Return a virtual offset before which no record reaches `start` or beyond; None if no record does."""
        stretch = start >> self.shift
        if 0 <= self.scan.n_stretches[contig] <= stretch or self.scan.first[contig] == _NOWHERE:
            return None
        begin, end = np.searchsorted(self.scan.contigs, (contig, contig + 1))
        known = [int(self.scan.first[contig])]
        at = begin + int(np.searchsorted(self.scan.stretches[begin:end], stretch, "left"))
        if at > begin:
            known = [int(self.scan.offsets[at - 1])]
        if at < end and self.scan.stretches[at] == stretch:
            known.append(int(self.scan.offsets[at]))
        return min(known)


def find_index(bam_path: str) -> str | None:
    """Return the index of a BAM file that htslib would use: it prefers ``.csi``."""
    return next(filter(os.path.exists, index_names(bam_path)), None)


def index_names(bam_path: str) -> list[str]:
    """Return the possible names of a BAM file's index, by priority."""
    stem = os.path.splitext(bam_path)[0]
    return [f"{bam_path}.csi", f"{stem}.csi", f"{bam_path}.bai", f"{stem}.bai"]


def read_index(path: str, bam_path: str) -> BamIndex:
    """Read and check an index; raise `InputFileError` if it is damaged or of another file."""
    damaged = wrong_index_error(path, bam_path)
    try:
        with open(path, "rb") as file:
            content = file.read()
        size = os.path.getsize(bam_path)
        found = _scan_index(content, size)
        if found is None:
            raise damaged
        index = BamIndex(path, *found)
        places = np.unique(index.scan.starts)
        n_places = min(_PLACES if ranged_file(bam_path) is None else _REMOTE_PLACES, len(places))
        chosen = places[np.unique(np.linspace(0, len(places) - 1, n_places).astype(np.int64))]
        if not are_block_starts(bam_path, chosen[chosen < size]):
            raise damaged
    except OSError as problem:
        raise InputFileError(f"{path}: cannot be read ({problem.strerror}); run: samtools index {bam_path}") from None
    return index


def _scan_index(content: bytes, bam_size: int) -> tuple[IndexScan, int] | None:
    """Scan an index; return its contents and the shift of its windows, None if it is damaged."""
    if not content.startswith(_BAI_MAGIC):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return None
    data = np.frombuffer(bytearray(content), np.uint8)
    shift, depth, begin = _BAI_SHIFT, -1, 4
    if not content.startswith(_BAI_MAGIC):
        shift, depth, n_extra = (int.from_bytes(content[at : at + 4], "little") for at in (4, 8, 12))
        begin = 16 + n_extra
        if not content.startswith(_CSI_MAGIC) or shift > _MOST_SHIFT or depth > _MOST_DEPTH or begin + 4 > len(content):
            return None
    n_contigs = int.from_bytes(content[begin : begin + 4], "little")
    if n_contigs > len(content) // 4:
        return None
    scan = IndexScan.empty(n_contigs, len(content))
    if not scan_contigs(data, begin + 4, depth, bam_size, scan):
        return None
    n_starts, n_entries = scan.sizes.tolist()
    order = np.lexsort((scan.offsets[:n_entries], scan.stretches[:n_entries], scan.contigs[:n_entries]))
    contigs, stretches, offsets = scan.contigs[order], scan.stretches[order], scan.offsets[order]
    goes_back = (offsets[1:] < offsets[:-1]) & (contigs[1:] == contigs[:-1])
    if goes_back.any() or (offsets >> np.uint64(16) >= bam_size).any():
        return None
    entries = scan._replace(starts=scan.starts[:n_starts], contigs=contigs, stretches=stretches, offsets=offsets)
    return entries, shift


def are_block_starts(path: str, places: NDArray[np.int64]) -> bool:
    """Return whether blocks of a BAM file begin at all of the places."""
    fetch_ranges(path, places, places + len(BLOCK_MAGIC))
    with open(path, "rb", buffering=0) as bam:
        return all(read_at(bam.fileno(), len(BLOCK_MAGIC), place) == BLOCK_MAGIC for place in places.tolist())


def wrong_index_error(path: str, bam_path: str) -> InputFileError:
    return InputFileError(f"{path}: is damaged or not the index of {bam_path}; run: samtools index {bam_path}")
