"""Jitted check of a BAM index (.bai; SAM specification, section 5.2)."""

from __future__ import annotations

import numpy as np

from f5py.accelerate import exact_kernel
from f5py.io._bam_numba import signed32

#: A bin that holds no chunks but counts.
_COUNTS = 37450
#: Before the first contig: the magic and the number of contigs.
_HEADER_SIZE = 8


@exact_kernel
def _unsigned64(data, at):
    value = np.uint64(0)
    for i in range(8):
        value |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return value


@exact_kernel
def scan_bai(data, file_size, found):
    """Go through an index; return whether it can be one of a file of that size.

    Parameters
    ----------
    data : uint8
    file_size : int
        Bytes of the BAM file.
    found : f5py.io.bai.Scan
        Filled with what the index says.
    """
    size = data.shape[0]
    at = np.int64(_HEADER_SIZE)
    for contig in range(found.first.shape[0]):
        if at + 4 > size:
            return False
        n_bins = signed32(data, at)
        at += 4
        has_counts = n_bins == 0
        for _ in range(n_bins):
            if at + 8 > size:
                return False
            bin_number = signed32(data, at) & 0xFFFFFFFF
            n_chunks = signed32(data, at + 4)
            at += 8
            if bin_number > _COUNTS or n_chunks < 0 or n_chunks > (size - at) // 16:
                return False
            if bin_number == _COUNTS:
                if n_chunks != 2:
                    return False
                has_counts = True
                found.n_mapped[contig] = np.int64(_unsigned64(data, at + 16))
                at += 32
                continue
            for _ in range(n_chunks):
                begin, end = _unsigned64(data, at), _unsigned64(data, at + 8)
                at += 16
                if begin >= end or np.int64(end >> np.uint64(16)) > file_size:
                    return False
                found.first[contig] = min(found.first[contig], begin)
                found.last[contig] = max(found.last[contig], end)
                n = found.n_starts[0]
                found.starts[n] = np.int64(begin >> np.uint64(16))
                found.starts[n + 1] = np.int64(end >> np.uint64(16))
                found.n_starts[0] = n + 2
        if not has_counts:
            found.n_mapped[contig] = -1
        if at + 4 > size:
            return False
        n_intervals = signed32(data, at)
        at += 4
        if n_intervals < 0 or n_intervals > (size - at) // 8:
            return False
        found.linear_begin[contig], found.linear_size[contig] = at, n_intervals
        before = np.uint64(0)
        for _ in range(n_intervals):
            offset = _unsigned64(data, at)
            at += 8
            if offset != 0 and (offset < before or np.int64(offset >> np.uint64(16)) >= file_size):
                return False
            before = max(before, offset)
    return at in (size, size - 8)
