"""Jitted loops over records that are sorted; their layout is in `f5py.io.bam._bam_numba`."""

import numpy as np

from f5py.io.bam._bam_numba import (
    CONTIG,
    FLAGS,
    IS_REVERSE,
    IS_UNMAPPED,
    POSITION,
    cigar_of,
    reference_span,
    signed32,
    unsigned16,
)
from f5py.jit.c_memory import copy_from
from f5py.jit.kernel import exact_kernel

_LOW = 0xFFFFFFFF


@exact_kernel
def count_records(data):
    """Count whole records that lie one after the other.

    Parameters
    ----------
    data : uint8
    """
    at = np.int64(0)
    n = 0
    while at < data.shape[0]:
        at += 4 + signed32(data, at)
        n += 1
    return n


@exact_kernel
def note_records(data, address, noted):
    """Note what sorting and an index need to know of records.

    Parameters
    ----------
    data : uint8
        As many whole records as `noted` has room for.
    address : int
        Of the first one.
    noted : f5py.mapping.sorting.record_runs.Noted
        Filled.
    """
    at = np.int64(0)
    for i in range(noted.key.shape[0]):
        end = at + 4 + signed32(data, at)
        flags = unsigned16(data, at + FLAGS)
        position = signed32(data, at + POSITION)
        contig = signed32(data, at + CONTIG) & _LOW  # without one: behind all others
        place = ((position + 1) << 1 & _LOW) | np.int64(flags & IS_REVERSE != 0)
        noted.key[i] = np.uint64(contig) << np.uint64(32) | np.uint64(place)
        noted.address[i] = address + at
        noted.size[i] = end - at
        is_mapped = flags & IS_UNMAPPED == 0
        span = np.int64(0)
        if is_mapped:
            cigar, n = cigar_of(data, at, end)
            span = reference_span(data, cigar, n)
        noted.reach[i] = (position + max(span, 1)) << 1 | np.int64(is_mapped)
        at = end


@exact_kernel
def gather(addresses, offsets, begin, out):
    """Copy a stretch of records that are to lie one after the other.

    Parameters
    ----------
    addresses : int64, shape (n,)
        Of all records that the stretch has a part of.
    offsets : int64, shape (n + 1,)
        Where these records begin, and the last one ends.
    begin : int
        Where the stretch begins, counted as the offsets are.
    out : uint8
        Filled.
    """
    for i in range(addresses.shape[0]):
        first = max(offsets[i], begin)
        n_bytes = min(offsets[i + 1], begin + out.shape[0]) - first
        copy_from(out[first - begin :], addresses[i] + first - offsets[i], n_bytes)
