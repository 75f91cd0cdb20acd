"""Jitted check of a BAM index (.bai; SAM specification, section 5.2)."""

from __future__ import annotations

import numpy as np

from f5py.accelerate import exact_kernel
from f5py.io._bam_numba import signed32

_MAGIC = np.frombuffer(b"BAI\x01", np.uint8)
#: A bin that holds no chunks but counts.
_COUNTS = 37450


@exact_kernel
def _unsigned64(data, at):
    value = np.uint64(0)
    for i in range(8):
        value |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return value


@exact_kernel
def scan_bai(data, file_size, starts):
    """Go through an index; return whether it can be one of a file of that size, and what it says.

    Parameters
    ----------
    data : uint8
    file_size : int
        Bytes of the BAM file.
    starts : int64
        With room for two entries for each 16 bytes of `data`; filled with the places in the file where the chunks begin
        and end.

    Returns
    -------
    is_sound : bool
    n_contigs, n_mapped : int
        `n_mapped` is -1 if a contig has no counts.
    last : int
        Virtual offset at which the last chunk ends; 0 without any.
    n_starts : int
    """
    size = data.shape[0]
    n_mapped = np.int64(0)
    last = np.uint64(0)
    n_starts = 0
    if size < 8:
        return False, 0, n_mapped, last, n_starts
    for i in range(4):
        if data[i] != _MAGIC[i]:
            return False, 0, n_mapped, last, n_starts
    n_contigs = signed32(data, 4)
    at = np.int64(8)
    for _ in range(n_contigs):
        if at + 4 > size:
            return False, n_contigs, n_mapped, last, n_starts
        n_bins = signed32(data, at)
        at += 4
        has_counts = n_bins == 0
        for _ in range(n_bins):
            if at + 8 > size:
                return False, n_contigs, n_mapped, last, n_starts
            bin_number = signed32(data, at) & 0xFFFFFFFF
            n_chunks = signed32(data, at + 4)
            at += 8
            if bin_number > _COUNTS or n_chunks < 0 or n_chunks > (size - at) // 16:
                return False, n_contigs, n_mapped, last, n_starts
            if bin_number == _COUNTS:
                if n_chunks != 2:
                    return False, n_contigs, n_mapped, last, n_starts
                has_counts = True
                if n_mapped >= 0:
                    n_mapped += np.int64(_unsigned64(data, at + 16))
                at += 32
                continue
            for _ in range(n_chunks):
                begin, end = _unsigned64(data, at), _unsigned64(data, at + 8)
                at += 16
                if begin >= end or np.int64(end >> np.uint64(16)) > file_size:
                    return False, n_contigs, n_mapped, last, n_starts
                last = max(last, end)
                starts[n_starts] = np.int64(begin >> np.uint64(16))
                starts[n_starts + 1] = np.int64(end >> np.uint64(16))
                n_starts += 2
        if not has_counts:
            n_mapped = np.int64(-1)
        if at + 4 > size:
            return False, n_contigs, n_mapped, last, n_starts
        n_intervals = signed32(data, at)
        at += 4
        if n_intervals < 0 or n_intervals > (size - at) // 8:
            return False, n_contigs, n_mapped, last, n_starts
        before = np.uint64(0)
        for _ in range(n_intervals):
            offset = _unsigned64(data, at)
            at += 8
            if offset != 0 and (offset < before or np.int64(offset >> np.uint64(16)) >= file_size):
                return False, n_contigs, n_mapped, last, n_starts
            before = max(before, offset)
    return n_contigs >= 0 and at in (size, size - 8), n_contigs, n_mapped, last, n_starts
