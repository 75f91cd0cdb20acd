"""Kernels that check BAM indices: .bai (SAM specification, section 5.2) and .csi (CSI specification)."""

import numpy as np

from f5py.io.bam._bam_numba import signed32
from f5py.jit.kernel import exact_inner, exact_kernel

#: In a .bai, the bin with counts.
_COUNTS = 37450
#: In a .bai, bytes before the first contig.
_BAI_HEADER_SIZE = 8


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
def scan_bai(data, file_size, scan):
    """Check and scan a .bai; return whether it can be of a BAM file of that size.

    Parameters
    ----------
    data : uint8
    file_size : int
        Bytes of the BAM file.
    scan : f5py.io.bam.bam_index.IndexScan
        Filled.
    """
    size = data.shape[0]
    at = np.int64(_BAI_HEADER_SIZE)
    for contig in range(scan.first.shape[0]):
        at = _scan_bins(data, at, -1, file_size, contig, scan)
        if at < 0 or at + 4 > size:
            return False
        n_intervals = signed32(data, at)
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


@exact_kernel
def scan_csi(data, at, depth, file_size, scan):
    """Check and scan the contigs of a .csi; see `scan_bai`.

    Parameters
    ----------
    data : uint8
        The index, decompressed.
    at : int
        Offset of the first contig.
    depth : int
        Levels below the first.
    file_size, scan
        See `scan_bai`.
    """
    size = data.shape[0]
    for contig in range(scan.first.shape[0]):
        at = _scan_bins(data, at, depth, file_size, contig, scan)
        if at < 0:
            return False
    return at in (size, size - 8)
