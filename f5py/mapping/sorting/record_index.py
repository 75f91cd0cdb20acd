"""Index of sorted records equal to htslib's: .bai (SAM specification, section 5.2) or .csi."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.io.bytes.bgzf_blocks import END_BLOCK, bgzf_blocks
from f5py.jit.kernel import exact_inner, exact_kernel

_BAI_MAGIC, _CSI_MAGIC = b"BAI\x01", b"CSI\x01"
#: A bin of the deepest level has two to the power of this bases; and in a .bai, so many levels are below the first.
_SHIFT, _BAI_DEPTH = 14, 5
#: htslib makes room for so many bases more than the longest contig has.
_MORE_BASES = 256
#: A bin whose records lie within less of the file than this is joined with the one around it.
_LEAST_BYTES = np.uint64(1 << 16)
_OF_BLOCK = np.uint64(16)
_NOWHERE = np.uint64(2**64 - 1)


class PlacedRecords(NamedTuple):
    """Positions of records on the reference, in file order."""

    contig: NDArray[np.int64]
    # begin, end: 0-based, half-open
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    is_mapped: NDArray[np.bool_]


class IndexParts(NamedTuple):
    """Contents of an index of n contigs."""

    contig_bins: NDArray[np.int64]  # shape (n + 1,): offsets of each contig's bins
    # bins, bin_offsets: their numbers, and virtual offsets before which no record reaches into them
    bins: NDArray[np.int64]
    bin_offsets: NDArray[np.uint64]
    bin_chunks: NDArray[np.int64]  # shape (n_bins + 1,): offsets of their chunks
    # chunk_begins, chunk_ends: virtual offsets
    chunk_begins: NDArray[np.uint64]
    chunk_ends: NDArray[np.uint64]
    counts: NDArray[np.uint64]  # shape (n, 4): where its records begin and end; mapped ones, and others
    contig_stretches: NDArray[np.int64]  # shape (n + 1,): offsets of each contig's stretches
    linear: NDArray[np.uint64]  # virtual offsets before which no record reaches into a stretch


def make_index(
    placed: PlacedRecords, n_unplaced: int, tells: NDArray[np.uint64], lengths: NDArray[np.int64], csi: bool
) -> bytes:
    """Make an index.

    Parameters
    ----------
    n_unplaced : int
        Records after these.
    tells : uint64, shape (n + 1,)
        Virtual offsets of the records, and of the end.
    lengths : int64
        Lengths of the contigs.
    csi : bool
        Make a .csi, which longer contigs need, instead of a .bai.
    """
    depth = _csi_depth(int(lengths.max(initial=0))) if csi else _BAI_DEPTH
    parts = _parts_of(placed, tells, len(lengths), depth)
    room = 32 * len(parts.bins) + 16 * len(parts.chunk_begins) + 8 * len(parts.linear) + 64 * len(lengths)
    out = np.empty(room, np.uint8)
    n_bytes = write_contigs(parts, _n_bins(depth) + 1, csi, out)
    magic = struct.pack("<4siii", _CSI_MAGIC, _SHIFT, depth, 0) if csi else _BAI_MAGIC
    content = magic + struct.pack("<i", len(lengths)) + out[:n_bytes].tobytes() + struct.pack("<Q", n_unplaced)
    return b"".join([*bgzf_blocks(content), END_BLOCK]) if csi else content


def _csi_depth(longest: int) -> int:
    """Return the number of levels below the first for contigs of up to so many bases."""
    depth = 0
    while longest + _MORE_BASES > 1 << _SHIFT + 3 * depth:
        depth += 1
    return depth


def _n_bins(depth: int) -> int:
    """Count the bins of the first level and `depth` below it."""
    return ((1 << 3 * (depth + 1)) - 1) // 7


def _parts_of(placed: PlacedRecords, tells: NDArray[np.uint64], n_contigs: int, depth: int) -> IndexParts:
    n = len(placed.contig)
    numbers = np.empty(n, np.int64)
    fill_bins(placed.begin, placed.end, _SHIFT, depth, numbers)
    firsts = np.searchsorted(placed.contig, np.arange(n_contigs + 1))
    stretches = np.zeros(n_contigs, np.int64)
    used = np.flatnonzero(np.diff(firsts))
    if n:
        stretches[used] = np.maximum.reduceat((np.maximum(placed.end, 1) - 1 >> _SHIFT) + 1, firsts[used])
    contig_stretches = offsets_of(stretches)
    linear = np.empty(contig_stretches[-1], np.uint64)
    fill_linear(placed, tells, _SHIFT, contig_stretches, linear)
    mapped = offsets_of(placed.is_mapped)[firsts]
    counts = np.zeros((n_contigs, 4), np.uint64)
    counts[:, 0], counts[:, 1] = tells[firsts[:-1]], tells[firsts[1:]]
    counts[:, 2] = np.diff(mapped)
    counts[:, 3] = np.diff(firsts) - np.diff(mapped)
    key = placed.contig * _n_bins(depth) + numbers
    is_first = np.ones(n, np.bool_)
    is_first[1:] = key[1:] != key[:-1]
    begins = np.flatnonzero(is_first)  # of records one after the other in the same bin
    chunk_bins, first, end = key[begins], tells[begins], tells[np.append(begins, n)[1:]]
    bins, number = np.unique(chunk_bins, return_inverse=True)
    joined = _joined(bins, number, first, end, depth)[number]
    order = np.lexsort((first, joined))
    joined, first, end = joined[order], first[order], end[order]
    # What begins in the block that the one before ends in is read with it.
    is_first = np.ones(len(joined), np.bool_)
    is_first[1:] = (joined[1:] != joined[:-1]) | (end[:-1] >> _OF_BLOCK < first[1:] >> _OF_BLOCK)
    begins = np.flatnonzero(is_first)
    ends = np.append(begins, len(joined))[1:] - 1
    left, bin_chunks = np.unique(joined[begins], return_index=True)
    bin_keys = bins[left]
    contig, bin_numbers = np.divmod(bin_keys, _n_bins(depth))
    stretch = _first_stretch(bin_numbers, depth)
    has_stretch = stretch < stretches[contig]
    places = np.where(has_stretch, contig_stretches[contig] + stretch, 0)  # there is a stretch if there is a bin
    return IndexParts(
        np.searchsorted(contig, np.arange(n_contigs + 1)),
        bin_numbers,
        np.where(has_stretch, linear[places], np.uint64(0)),
        np.append(bin_chunks, len(begins)),
        first[begins],
        end[ends],
        counts,
        contig_stretches,
        linear,
    )


def _joined(
    bins: NDArray[np.int64], number: NDArray[np.int64], first: NDArray[np.uint64], end: NDArray[np.uint64], depth: int
) -> NDArray[np.int64]:
    """Merge small bins into the bins around them, if these have records; return the bin of each.

    Parameters
    ----------
    bins : int64
        Ascending; contig times the number of bins of one, plus the bin.
    number : int64
        The bin of each chunk.
    first, end : uint64
        Of each chunk.
    """
    part_of = np.arange(len(bins))
    begins = np.full(len(bins), _NOWHERE)
    ends = np.zeros(len(bins), np.uint64)
    np.minimum.at(begins, number, first)
    np.maximum.at(ends, number, end)
    contig, numbers = np.divmod(bins, _n_bins(depth))
    for level in range(depth, 0, -1):
        these = np.flatnonzero((numbers >= _n_bins(level - 1)) & (numbers < _n_bins(level)))
        around = contig[these] * _n_bins(depth) + (numbers[these] - 1 >> 3)
        at = np.minimum(np.searchsorted(bins, around), max(len(bins) - 1, 0))
        is_small = (ends[these] >> _OF_BLOCK) - (begins[these] >> _OF_BLOCK) < _LEAST_BYTES
        joins = is_small & (bins[at] == around)
        these, at = these[joins], at[joins]
        part_of[these] = at
        np.minimum.at(begins, at, begins[these])
        np.maximum.at(ends, at, ends[these])
    for _ in range(depth):
        part_of = part_of[part_of]
    return part_of


def _first_stretch(bins: NDArray[np.int64], depth: int) -> NDArray[np.int64]:
    """Return the first stretch of the reference in each bin."""
    first_of_level = np.array([_n_bins(level - 1) for level in range(depth + 1)])
    level = np.searchsorted(first_of_level, bins, "right") - 1
    return (bins - first_of_level[level]) << 3 * (depth - level)


@exact_kernel
def fill_bins(begin, end, shift, depth, bins):
    """Fill the smallest bin of each stretch of the reference.

    Parameters
    ----------
    begin, end : int64, shape (n,)
        0-based, half-open.
    shift, depth : int
        A bin of the deepest of `depth` levels below the first has two to the power of `shift` bases.
    bins : int64, shape (n,)
        Filled.
    """
    for i in range(begin.shape[0]):
        level = depth
        first = ((np.int64(1) << 3 * depth) - 1) // 7
        at = shift
        last = max(end[i], 1) - 1
        start = max(begin[i], 0)
        while level > 0 and start >> at != last >> at:
            level -= 1
            first -= np.int64(1) << 3 * level
            at += 3
        bins[i] = first + (start >> at)


@exact_kernel
def fill_linear(placed, tells, shift, offsets, linear):
    """Fill the offset of the first record that overlaps each stretch of the reference, or a later one.

    Parameters
    ----------
    placed : PlacedRecords
    tells : uint64, shape (>= n,)
        Virtual offsets of the records.
    shift : int
        A stretch has two to the power of this bases.
    offsets : int64, shape (n_contigs + 1,)
        Of each contig's stretches.
    linear : uint64, shape (offsets[-1],)
        Filled.
    """
    linear[:] = _NOWHERE
    for i in range(placed.contig.shape[0]):
        at = offsets[placed.contig[i]]
        for stretch in range(max(placed.begin[i], 0) >> shift, ((max(placed.end[i], 1) - 1) >> shift) + 1):
            if linear[at + stretch] == _NOWHERE:
                linear[at + stretch] = tells[i]
    for contig in range(offsets.shape[0] - 1):
        for k in range(offsets[contig + 1] - 2, offsets[contig] - 1, -1):
            if linear[k] == _NOWHERE:
                linear[k] = linear[k + 1]


@exact_inner
def _put(out, at, value, size):
    """Write the lowest bytes of a number; return the index after them."""
    for _ in range(size):
        out[at] = value & np.uint64(255)
        value >>= np.uint64(8)
        at += 1
    return at


@exact_kernel
def write_contigs(parts, counts_bin, has_offsets, out):
    """Write the contigs of an index; return the number of bytes.

    Parameters
    ----------
    parts : IndexParts
    counts_bin : int
        Number of the bin that holds counts.
    has_offsets : bool
        Bins have offsets, and there are no stretches: it is a .csi.
    out : uint8
        With room for all.
    """
    at = np.int64(0)
    for contig in range(parts.contig_bins.shape[0] - 1):
        first, end = parts.contig_bins[contig], parts.contig_bins[contig + 1]
        at = _put(out, at, np.uint64(end - first + (end > first)), 4)
        for k in range(first, end):
            at = _put(out, at, np.uint64(parts.bins[k]), 4)
            if has_offsets:
                at = _put(out, at, parts.bin_offsets[k], 8)
            chunk, chunk_end = parts.bin_chunks[k], parts.bin_chunks[k + 1]
            at = _put(out, at, np.uint64(chunk_end - chunk), 4)
            for c in range(chunk, chunk_end):
                at = _put(out, at, parts.chunk_begins[c], 8)
                at = _put(out, at, parts.chunk_ends[c], 8)
        if end > first:
            at = _put(out, at, np.uint64(counts_bin), 4)
            if has_offsets:
                at = _put(out, at, np.uint64(0), 8)
            at = _put(out, at, np.uint64(2), 4)
            for which in range(4):
                at = _put(out, at, parts.counts[contig, which], 8)
        if not has_offsets:
            first, end = parts.contig_stretches[contig], parts.contig_stretches[contig + 1]
            at = _put(out, at, np.uint64(end - first), 4)
            for k in range(first, end):
                at = _put(out, at, parts.linear[k], 8)
    return at
