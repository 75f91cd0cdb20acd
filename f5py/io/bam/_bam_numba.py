"""Jitted decoding of BAM records (SAM specification, section 4.2): many records at a time become columns.

A record's layout, from its first byte on: block size (4 bytes), contig (4), position (4), length of the name (1),
mapping quality (1), bin (2), number of CIGAR operations (2), flags (2), length of the sequence (4), the mate's contig
and position and the template length (12), name, CIGAR, sequence, qualities, tags.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._name_table_numba import find_name
from f5py.core.cigar import OF_REFERENCE, REFERENCE_SKIP, SOFT_CLIP
from f5py.io.bam.record_layout import FIXED_SIZE
from f5py.jit.kernel import exact_inner, exact_kernel

#: What becomes of a record.
KEPT, UNMAPPED, LOW_MAPQ, SECONDARY, SUPPLEMENTARY, NO_BASES, ULTRA, UNMAPPED_LOW_MAPQ, DUPLICATE = range(9)
#: Where its fields are.
CONTIG, POSITION, NAME_LENGTH, MAPQ, BIN, N_CIGAR, FLAGS, N_BASES = 4, 8, 12, 13, 14, 16, 18, 20
#: Its flags.
IS_UNMAPPED, IS_REVERSE, IS_SECONDARY, IS_SUPPLEMENTARY = 4, 16, 256, 2048
#: Tags with the place of a split read in its parent.
_PARENT, _CG = (np.uint16(a + 256 * b) for a, b in (b"pi", b"CG"))
_SPLIT = np.array([a + 256 * b for a, b in (b"sp", b"ns")], np.uint16)
_UNKNOWN = -1
#: Types of tags' values.
_TYPE_INT8 = np.uint8(ord("c"))
_TYPE_UINT8 = np.uint8(ord("C"))
_TYPE_INT16 = np.uint8(ord("s"))
_TYPE_UINT16 = np.uint8(ord("S"))
_TYPE_INT32 = np.uint8(ord("i"))
_TYPE_UINT32 = np.uint8(ord("I"))
_TYPE_TEXT = np.uint8(ord("Z"))
_TYPE_HEX = np.uint8(ord("H"))
_TYPE_ARRAY = np.uint8(ord("B"))


def _sizes(*sizes: tuple[bytes, int]) -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    for kinds, size in sizes:
        table[list(kinds)] = size
    return table


#: Bytes of a number by its type, in an array and elsewhere; 0 for types of none.
_NUMBER_SIZES = _sizes((b"cC", 1), (b"sS", 2), (b"iIf", 4))
_SIZES = _sizes((b"AcC", 1), (b"sS", 2), (b"iIf", 4), (b"d", 8))


@exact_inner
def unsigned16(data, at):
    """Read the two bytes at `at` as an unsigned number."""
    return np.uint16(data[at]) | np.uint16(data[at + 1]) << 8


@exact_kernel
def signed32(data, at):
    """Read the four bytes at `at` as a signed number.

    Parameters
    ----------
    data : uint8
    at : int
    """
    low = np.uint32(data[at]) | np.uint32(data[at + 1]) << 8
    high = np.uint32(data[at + 2]) | np.uint32(data[at + 3]) << 8
    return np.int64(np.int32(low | high << 16))


@exact_kernel
def end_of_contigs(data, at):
    """Find the end of the list of contigs in a header that begins at `at`, or -1 if that is not there yet.

    Parameters
    ----------
    data : uint8
        The header, decompressed, as far as it has been read.
    at : int
        Where the number of contigs is.
    """
    n_contigs = signed32(data, at) & 0xFFFFFFFF
    at += 4
    for _ in range(n_contigs):
        if data.shape[0] < at + 4:
            return np.int64(-1)
        at += 8 + (signed32(data, at) & 0xFFFFFFFF)
    return np.int64(at)


@exact_kernel
def list_records(data, n_contigs, starts):
    """List where the whole records in `data` begin, and where the last one ends; return their number and the damage.

    Parameters
    ----------
    data : uint8
        From the beginning of a record on.
    starts : int64
        With room for all.

    Returns
    -------
    n_records : int
    damaged : bool
        The record after these is not possible.
    """
    size = data.shape[0]
    count = 0
    at = np.int64(0)
    starts[0] = 0
    while at + 4 <= size:
        end = at + 4 + signed32(data, at)
        if end < at + FIXED_SIZE:
            return count, True
        if end > size:
            break
        n_bases = signed32(data, at + N_BASES)
        name_end = at + FIXED_SIZE + np.int64(data[at + NAME_LENGTH])
        contig = signed32(data, at + CONTIG)
        if n_bases < 0 or name_end == at + FIXED_SIZE or contig < -1 or contig >= n_contigs:
            return count, True
        if name_end + 4 * np.int64(unsigned16(data, at + N_CIGAR)) + (n_bases + 1) // 2 + n_bases > end:
            return count, True
        if data[name_end - 1] != 0:
            return count, True
        at = end
        count += 1
        starts[count] = at
    return count, False


class Filter(NamedTuple):
    """Choice of the records that are kept."""

    min_mapq: int
    secondary: bool  # whether these are
    supplementary: bool


@exact_kernel
def classify(data, starts, n, wanted, name_table, kinds, rows):
    """Say what becomes of each of `n` records, and which row of the reads' index those that are kept have, or -1.

    Parameters
    ----------
    data, starts
        See `decode`.
    n : int
    wanted : Filter
    name_table : tuple of arrays
        The last four arguments of `f5py.core._name_table_numba.find_name`.
    kinds : uint8, shape (n,)
        Filled with `KEPT`, or why the record is not.
    rows : int64, shape (n,)
        Filled.
    """
    min_mapq, secondary, supplementary = wanted
    names, name_begin, name_end, table = name_table
    for i in range(n):
        at = starts[i]
        flags = unsigned16(data, at + FLAGS)
        mapq = np.int64(data[at + MAPQ])
        # a position or the CIGAR can be missing without the flag that says so
        unmapped = flags & IS_UNMAPPED != 0 or signed32(data, at + CONTIG) < 0 or signed32(data, at + POSITION) < 0
        unmapped = unmapped or unsigned16(data, at + N_CIGAR) == 0
        rows[i] = -1
        if mapq < min_mapq:
            kinds[i] = UNMAPPED_LOW_MAPQ if unmapped else LOW_MAPQ
        elif unmapped:
            kinds[i] = UNMAPPED
        elif flags & IS_SECONDARY != 0 and not secondary:
            kinds[i] = SECONDARY
        elif flags & IS_SUPPLEMENTARY != 0 and not supplementary:
            kinds[i] = SUPPLEMENTARY
        else:
            kinds[i] = KEPT
            begin = at + FIXED_SIZE
            end = begin + np.int64(data[at + NAME_LENGTH]) - 1
            rows[i] = find_name(data, begin, end, names, name_begin, name_end, table)


@exact_kernel
def size_of_value(data, at, kind, end):
    """Bytes of a tag's value of that type, or -1 if it is not possible.

    Parameters
    ----------
    data : uint8
    at, end : int
        Where the value begins, and where the record ends.
    kind : uint8
        The type, as a letter.
    """
    size = np.int64(_SIZES[kind])
    if size > 0:
        return size
    if kind == _TYPE_ARRAY:
        size = np.int64(_NUMBER_SIZES[data[at]]) if at + 5 <= end else np.int64(0)
        return np.int64(-1) if size == 0 else 5 + size * (signed32(data, at + 1) & 0xFFFFFFFF)
    if kind != _TYPE_TEXT and kind != _TYPE_HEX:
        return np.int64(-1)
    while at + size < end and data[at + size] != 0:
        size += 1
    return size + 1 if at + size < end else np.int64(-1)


@exact_inner
def find_tag(data, at, end, tag):
    """Find a tag in ``data[at:end]``: the place of the type of its value, and the value's end; or -1, -1."""
    while at + 3 <= end:
        size = size_of_value(data, at + 3, data[at + 2], end)
        if size < 0 or at + 3 + size > end:
            return np.int64(-1), np.int64(-1)
        if unsigned16(data, at) == tag:
            return at + 2, at + 3 + size
        at += 3 + size
    return np.int64(-1), np.int64(-1)


@exact_inner
def sequence_begins(data, at):
    """Find the start of a record's sequence."""
    return at + FIXED_SIZE + np.int64(data[at + NAME_LENGTH]) + 4 * np.int64(unsigned16(data, at + N_CIGAR))


@exact_inner
def tags_begin(data, at):
    """Find the start of a record's tags."""
    n_bases = signed32(data, at + N_BASES)
    return sequence_begins(data, at) + (n_bases + 1) // 2 + n_bases


@exact_inner
def cigar_of(data, at, end):
    """Find a record's CIGAR and its number of operations; more than 65,535 are in the tag CG."""
    n = np.int64(unsigned16(data, at + N_CIGAR))
    begin = at + FIXED_SIZE + np.int64(data[at + NAME_LENGTH])
    if n == 2:
        n_bases = signed32(data, at + N_BASES)
        if signed32(data, begin) == (n_bases << 4 | SOFT_CLIP) and data[begin + 4] & 15 == REFERENCE_SKIP:
            value, _ = find_tag(data, tags_begin(data, at), end, _CG)
            if value >= 0 and data[value] == _TYPE_ARRAY and data[value + 1] == _TYPE_UINT32:
                return value + 6, signed32(data, value + 2)
    return begin, n


@exact_inner
def reference_span(data, begin, n):
    """Count the bases of the reference that a CIGAR of `n` operations covers."""
    span = np.int64(0)
    for j in range(n):
        operation = np.uint32(signed32(data, begin + 4 * j))
        if OF_REFERENCE >> (operation & 15) & 1:
            span += np.int64(operation >> 4)
    return span


@exact_inner
def integer_of(data, value, missing):
    """Read a tag's value, whose type is at `value`, as a whole number; `missing` if it is none."""
    if value < 0:
        return np.int64(missing)
    kind = data[value]
    at = value + 1
    if kind == _TYPE_INT8:
        return np.int64(np.int8(data[at]))
    if kind == _TYPE_UINT8:
        return np.int64(data[at])
    if kind == _TYPE_INT16:
        return np.int64(np.int16(unsigned16(data, at)))
    if kind == _TYPE_UINT16:
        return np.int64(unsigned16(data, at))
    if kind == _TYPE_INT32:
        return signed32(data, at)
    if kind == _TYPE_UINT32:
        return signed32(data, at) & 0xFFFFFFFF
    return np.int64(missing)


@exact_kernel
def measure(data, starts, chosen, sizes, places, split):
    """Find what `decode` copies of each chosen record.

    Parameters
    ----------
    data, starts, chosen
        See `decode`.
    sizes : int64, shape (3, n)
        Filled with the sizes of name, CIGAR and parent's name.
    places : int64, shape (2, n)
        Filled with where in `data` the CIGAR and the parent's name begin.
    split : int64, shape (2, n)
        Filled with the tags sp and ns.
    """
    for i in range(chosen.shape[0]):
        at = starts[chosen[i]]
        end = starts[chosen[i] + 1]
        sizes[0, i] = np.int64(data[at + NAME_LENGTH]) - 1
        places[0, i], sizes[1, i] = cigar_of(data, at, end)
        tags = tags_begin(data, at)
        value, value_end = find_tag(data, tags, end, _PARENT)
        places[1, i] = value + 1
        sizes[2, i] = value_end - value - 2 if value >= 0 and data[value] == _TYPE_TEXT else 0
        for which in range(_SPLIT.shape[0]):
            value, _ = find_tag(data, tags, end, _SPLIT[which])
            split[which, i] = integer_of(data, value, _UNKNOWN)


@exact_kernel
def decode(data, starts, chosen, places, columns):
    """Fill the columns of the chosen records.

    Parameters
    ----------
    data : uint8
    starts : int64
        Of all records, and the end of the last one.
    chosen : int64, shape (n,)
        The records.
    places : int64, shape (2, n)
        As `measure` has filled it.
    columns : f5py.io.bam.bam_records.RecordColumns
        With the offsets of names, CIGARs and parents filled.
    """
    for i in range(chosen.shape[0]):
        at = starts[chosen[i]]
        columns.contig[i] = signed32(data, at + CONTIG)
        position = signed32(data, at + POSITION)
        columns.start[i] = position
        columns.reverse[i] = unsigned16(data, at + FLAGS) & IS_REVERSE != 0
        to = columns.name_offsets[i]
        for j in range(columns.name_offsets[i + 1] - to):
            columns.names[to + j] = data[at + FIXED_SIZE + j]
        begin = places[0, i]
        to = columns.cigar_offsets[i]
        n = columns.cigar_offsets[i + 1] - to
        for j in range(n):
            columns.cigar[to + j] = np.uint32(signed32(data, begin + 4 * j))
        span = reference_span(data, begin, n)
        columns.end[i] = position + (1 if n > 0 and span == 0 else span)  # 1 as htslib takes it
        to = columns.parent_offsets[i]
        for j in range(columns.parent_offsets[i + 1] - to):
            columns.parents[to + j] = data[places[1, i] + j]
