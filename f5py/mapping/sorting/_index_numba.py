"""Jitted loops that make an index: .bai (SAM specification, section 5.2) and .csi (CSI specification)."""

import numpy as np

from f5py.jit.kernel import exact_inner, exact_kernel

_NOWHERE = np.uint64(2**64 - 1)


@exact_kernel
def fill_bins(begin, end, shift, depth, bins):
    """Fill the smallest bin that each stretch of the reference lies in.

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
    """Fill where the first record is that reaches into each stretch of the reference, or into one of those after it.

    Parameters
    ----------
    placed : f5py.mapping.sorting.record_index.Placed
        Records in the order of the file.
    tells : uint64, shape (>= n,)
        Virtual offsets at which they begin.
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
    """Write what an index has of each contig; return the number of bytes.

    Parameters
    ----------
    parts : f5py.mapping.sorting.record_index.IndexParts
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
