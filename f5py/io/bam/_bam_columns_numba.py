"""Jitted loops that take columns out of BAM records; their layout is in `f5py.io.bam._bam_numba`."""

import numpy as np

from f5py.io.bam._bam_numba import (
    CONTIG,
    FLAGS,
    IS_UNMAPPED,
    POSITION,
    cigar_of,
    find_tag,
    reference_span,
    signed32,
    tags_begin,
    unsigned16,
)
from f5py.jit.kernel import exact_kernel


@exact_kernel
def places_of(data, starts, contig, begin, end):
    """Fill contig, start and end of all records; one that covers no base counts as one base long, as in an index.

    Parameters
    ----------
    data, starts
        See `f5py.io.bam._bam_numba.decode`.
    contig : int32 or int64, shape (n,)
        Filled; -1 for none.
    begin, end : int64, shape (n,)
        Filled with the 0-based position of the first base and of the one after the last.
    """
    for i in range(contig.shape[0]):
        at = starts[i]
        contig[i] = signed32(data, at + CONTIG)
        begin[i] = signed32(data, at + POSITION)
        span = np.int64(0)
        if unsigned16(data, at + FLAGS) & IS_UNMAPPED == 0:
            cigar, n = cigar_of(data, at, starts[i + 1])
            span = reference_span(data, cigar, n)
        end[i] = begin[i] + max(span, 1)


@exact_kernel
def keys_of(data, starts, n, keys):
    """Fill a number for each of `n` records that is the same for records which differ in their tags only (FNV-1a).

    Parameters
    ----------
    data, starts
        See `f5py.io.bam._bam_numba.decode`.
    n : int
    keys : uint64, shape (n,)
        Filled.
    """
    for i in range(n):
        key = np.uint64(0xCBF29CE484222325)
        for at in range(starts[i] + CONTIG, tags_begin(data, starts[i])):
            key = (key ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
        keys[i] = key


@exact_kernel
def find_tags(data, starts, chosen, tag, begin, end):
    """Fill where a tag's value, beginning with its type, is in each chosen record; -1, -1 where it is missing.

    Parameters
    ----------
    data, starts, chosen
        See `f5py.io.bam._bam_numba.decode`.
    tag : uint16
        Its two letters, the first one in the low byte.
    begin, end : int64, shape (n,)
        Filled with places in `data`.
    """
    for i in range(chosen.shape[0]):
        at = starts[chosen[i]]
        begin[i], end[i] = find_tag(data, tags_begin(data, at), starts[chosen[i] + 1], tag)
