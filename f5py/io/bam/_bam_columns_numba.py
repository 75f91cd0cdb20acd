"""Kernels for columns of BAM records; see `f5py.io.bam._bam_numba` for their layout."""

import numpy as np

from f5py.io.bam._bam_numba import (
    CONTIG,
    FLAGS,
    IS_UNMAPPED,
    POSITION,
    cigar_of,
    find_tag,
    put_integer,
    reference_span,
    signed32,
    tag_end,
    tags_begin,
    unsigned16,
)
from f5py.jit.kernel import exact_kernel


@exact_kernel
def places_of(data, starts, contig, begin, end):
    """Fill contig, start and end of all records; records without a reference base count as one base.

    Parameters
    ----------
    data, starts
        See `f5py.io.bam._bam_numba.decode`.
    contig : int32 or int64, shape (n,)
        Filled; -1 for none.
    begin, end : int64, shape (n,)
        Filled; 0-based, half-open.
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
    """Hash each of `n` records without its tags (FNV-1a).

    Parameters
    ----------
    data, starts
        See `f5py.io.bam._bam_numba.decode`.
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
    """Fill the range of a tag's value, type first, in each chosen record; -1, -1 if missing.

    Parameters
    ----------
    data, starts, chosen
        See `f5py.io.bam._bam_numba.decode`.
    tag : uint16
        Its two letters, the first one in the low byte.
    begin, end : int64, shape (n,)
        Filled with offsets in `data`.
    """
    for i in range(chosen.shape[0]):
        at = starts[chosen[i]]
        begin[i], end[i] = find_tag(data, tags_begin(data, at), starts[chosen[i] + 1], tag)


@exact_kernel
def _text_at(data, at, end, texts, first, last):
    """Return whether the NUL-terminated text at `at` is ``texts[first:last]``."""
    n = last - first
    if at + n >= end or data[at + n] != 0:
        return False
    is_equal = True
    for j in range(n):
        is_equal = is_equal and data[at + j] == texts[first + j]
    return is_equal


@exact_kernel
def change_tags(data, starts, n, tags, texts, text_offsets, out, out_starts):
    """Copy `n` records with changed values of text tags; with an empty `out`, only measure them.

    Parameters
    ----------
    data, starts
        See `f5py.io.bam._bam_numba.decode`.
    tags : uint16, shape (n_changes,)
    texts, text_offsets : uint8, int64
        Old and new value of each change.
    out : uint8, shape (out_starts[n],) or (0,)
    out_starts : int64, shape (n + 1,)
        Filled.
    """
    writes = out.shape[0] > 0
    to = np.int64(0)
    for i in range(n):
        end = starts[i + 1]
        begin = to
        out_starts[i] = begin
        done = starts[i]
        at = tags_begin(data, starts[i])
        stop = tag_end(data, at, end)
        while stop > 0:
            if data[at + 2] == 90:  # Z
                for change in range(tags.shape[0]):
                    first, middle, last = (
                        text_offsets[2 * change],
                        text_offsets[2 * change + 1],
                        text_offsets[2 * change + 2],
                    )
                    if tags[change] == unsigned16(data, at) and _text_at(data, at + 3, end, texts, first, middle):
                        if writes:
                            for j in range(done, at + 3):
                                out[to + j - done] = data[j]
                            for j in range(middle, last):
                                out[to + at + 3 - done + j - middle] = texts[j]
                        to += at + 3 - done + last - middle
                        done = at + 3 + middle - first  # the NUL is copied with the rest
                        break
            at, stop = stop, tag_end(data, stop, end)
        if writes:
            for j in range(done, end):
                out[to + j - done] = data[j]
        to += end - done
        if writes:
            put_integer(out, begin, to - begin - 4, 4)
    out_starts[n] = to
