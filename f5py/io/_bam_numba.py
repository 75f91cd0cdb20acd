"""Jitted decoding of BAM records (SAM specification, section 4.2): many records at a time become columns.

A record's layout, from its first byte on: block size (4 bytes), contig (4), position (4), length of the name (1),
mapping quality (1), bin (2), number of CIGAR operations (2), flags (2), length of the sequence (4), the mate's contig
and position and the template length (12), name, CIGAR, sequence, qualities, tags.
"""

from __future__ import annotations

import numpy as np

from f5py.accelerate import exact_kernel
from f5py.core._name_table_numba import find_name
from f5py.io.bam_records import FIXED_SIZE

#: What becomes of a record.
KEPT, UNMAPPED, LOW_MAPQ, SECONDARY, SUPPLEMENTARY, NO_BASES, ULTRA = range(7)
#: Where its fields are.
CONTIG, POSITION, NAME_LENGTH, MAPQ, BIN, N_CIGAR, FLAGS, N_BASES = 4, 8, 12, 13, 14, 16, 18, 20
_IS_UNMAPPED, _IS_REVERSE, _IS_SECONDARY, _IS_SUPPLEMENTARY = 4, 16, 256, 2048
_MATCH, _INSERTION, _DELETION, _SKIP, _SOFT_CLIP, _HARD_CLIP, _PAD, _EQUAL, _MISMATCH = range(9)
#: Tags with the place of a split read in its parent.
_PI, _SP, _NS, _CG = (np.uint16(a + 256 * b) for a, b in (b"pi", b"sp", b"ns", b"CG"))
_UNKNOWN = -1
#: Types of tags' values.
_TYPE_A = np.uint8(ord("A"))
_TYPE_INT8 = np.uint8(ord("c"))
_TYPE_UINT8 = np.uint8(ord("C"))
_TYPE_INT16 = np.uint8(ord("s"))
_TYPE_UINT16 = np.uint8(ord("S"))
_TYPE_INT32 = np.uint8(ord("i"))
_TYPE_UINT32 = np.uint8(ord("I"))
_TYPE_FLOAT = np.uint8(ord("f"))
_TYPE_DOUBLE = np.uint8(ord("d"))
_TYPE_TEXT = np.uint8(ord("Z"))
_TYPE_HEX = np.uint8(ord("H"))
_TYPE_ARRAY = np.uint8(ord("B"))


@exact_kernel
def unsigned16(data, at):
    """The two bytes at `at`."""
    return np.uint16(data[at]) | np.uint16(data[at + 1]) << 8


@exact_kernel
def signed32(data, at):
    """The four bytes at `at`."""
    low = np.uint32(data[at]) | np.uint32(data[at + 1]) << 8
    high = np.uint32(data[at + 2]) | np.uint32(data[at + 3]) << 8
    return np.int64(np.int32(low | high << 16))


@exact_kernel
def cut_blocks(data, walked, block_size, ends):
    """Cut text into blocks as `f5py.io.bam_output` says; return how many are full.

    Parameters
    ----------
    data : uint8
        A block begins with it.
    walked : int
        Before this there is no end of a block; from here on there are whole records.
    block_size : int
    ends : int64
        Where the full blocks end; with room for two for each size of a block, and two more.
    """
    begin = np.int64(0)
    at = np.int64(walked)
    n_full = 0
    while at < data.shape[0]:
        end = at + 4 + signed32(data, at)
        if at > begin and end - begin > block_size:
            ends[n_full] = begin = at
            n_full += 1
        at = end
        while at - begin > block_size:
            begin += block_size
            ends[n_full] = begin
            n_full += 1
    return n_full


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


@exact_kernel
def classify(data, starts, n, min_mapq, secondary, supplementary, name_table, kinds, rows):
    """Say what becomes of each of `n` records, and which row of the reads' index those that are kept have, or -1."""
    names, name_begin, name_end, table = name_table
    for i in range(n):
        at = starts[i]
        flags = unsigned16(data, at + FLAGS)
        mapq = np.int64(data[at + MAPQ])
        # a position or the CIGAR can be missing without the flag that says so
        unmapped = flags & _IS_UNMAPPED != 0 or signed32(data, at + CONTIG) < 0 or signed32(data, at + POSITION) < 0
        unmapped = unmapped or unsigned16(data, at + N_CIGAR) == 0
        rows[i] = -1
        if mapq < min_mapq:
            kinds[i] = LOW_MAPQ
        elif unmapped:
            kinds[i] = UNMAPPED
        elif flags & _IS_SECONDARY != 0 and not secondary:
            kinds[i] = SECONDARY
        elif flags & _IS_SUPPLEMENTARY != 0 and not supplementary:
            kinds[i] = SUPPLEMENTARY
        else:
            kinds[i] = KEPT
            begin = at + FIXED_SIZE
            end = begin + np.int64(data[at + NAME_LENGTH]) - 1
            rows[i] = find_name(data, begin, end, names, name_begin, name_end, table)


@exact_kernel
def cut(kinds, lengths, first, n, batch_size, max_bases, ultra_threshold, counts_left_out, state):
    """Find where a batch ends that goes on with record `first`; return the place after its last record.

    Parameters
    ----------
    kinds : uint8, shape (n,)
        Of reads longer than `ultra_threshold`, if that is not negative, it becomes `ULTRA`.
    lengths : int64, shape (n,)
        Bases of each read.
    counts_left_out : bool
        Close a batch also when it has as many records that are left out as reads may be in it.
    state : int64, shape (4,)
        Reads, records left out and bases of the batch so far, and whether it is closed; updated.
    """
    i = first
    while i < n:
        kind = kinds[i]
        if kind == KEPT and 0 <= ultra_threshold < lengths[i]:
            kinds[i] = kind = ULTRA
        i += 1
        if kind == KEPT:
            state[0] += 1
            state[2] += lengths[i - 1]
        elif counts_left_out:
            state[1] += 1
        if max(state[0], state[1]) >= batch_size or state[2] >= max_bases:
            state[3] = 1
            break
    return i


@exact_kernel
def _size_of_number(kind):
    """Bytes of a number of that type, or -1 if it is none that an array may be of."""
    if kind in (_TYPE_INT8, _TYPE_UINT8):
        return np.int64(1)
    if kind in (_TYPE_INT16, _TYPE_UINT16):
        return np.int64(2)
    if kind in (_TYPE_INT32, _TYPE_UINT32, _TYPE_FLOAT):
        return np.int64(4)
    return np.int64(-1)


@exact_kernel
def size_of_value(data, at, kind, end):
    """Bytes of a tag's value of that type, or -1 if it is not possible."""
    if kind == _TYPE_A:
        return np.int64(1)
    if kind == _TYPE_DOUBLE:
        return np.int64(8)
    if kind in (_TYPE_TEXT, _TYPE_HEX):
        size = np.int64(0)
        while at + size < end and data[at + size] != 0:
            size += 1
        return size + 1 if at + size < end else np.int64(-1)
    if kind == _TYPE_ARRAY and at + 5 <= end:
        size = _size_of_number(data[at])
        return np.int64(-1) if size < 0 else 5 + size * (signed32(data, at + 1) & 0xFFFFFFFF)
    return _size_of_number(kind)


@exact_kernel
def find_tag(data, at, end, tag):
    """Where the type of a tag's value is in the tags ``data[at:end]``, and where the value ends; or -1, -1."""
    while at + 3 <= end:
        size = size_of_value(data, at + 3, data[at + 2], end)
        if size < 0 or at + 3 + size > end:
            return np.int64(-1), np.int64(-1)
        if unsigned16(data, at) == tag:
            return at + 2, at + 3 + size
        at += 3 + size
    return np.int64(-1), np.int64(-1)


@exact_kernel
def sequence_begins(data, at):
    """Where a record's sequence begins."""
    return at + FIXED_SIZE + np.int64(data[at + NAME_LENGTH]) + 4 * np.int64(unsigned16(data, at + N_CIGAR))


@exact_kernel
def tags_begin(data, at):
    """Where a record's tags begin."""
    n_bases = signed32(data, at + N_BASES)
    return sequence_begins(data, at) + (n_bases + 1) // 2 + n_bases


@exact_kernel
def cigar_of(data, at, end):
    """Where a record's CIGAR is, and its number of operations; more than 65,535 are in the tag CG."""
    n = np.int64(unsigned16(data, at + N_CIGAR))
    begin = at + FIXED_SIZE + np.int64(data[at + NAME_LENGTH])
    if n == 2:
        n_bases = signed32(data, at + N_BASES)
        if signed32(data, begin) == (n_bases << 4 | _SOFT_CLIP) and data[begin + 4] & 15 == _SKIP:
            value, _ = find_tag(data, tags_begin(data, at), end, _CG)
            if value >= 0 and data[value] == _TYPE_ARRAY and data[value + 1] == _TYPE_UINT32:
                return value + 6, signed32(data, value + 2)
    return begin, n


@exact_kernel
def reference_span(data, begin, n):
    """Number of bases of the reference that a CIGAR of `n` operations covers."""
    span = np.int64(0)
    for j in range(n):
        operation = np.uint32(signed32(data, begin + 4 * j))
        if operation & 15 in (_MATCH, _DELETION, _SKIP, _EQUAL, _MISMATCH):
            span += np.int64(operation >> 4)
    return span


@exact_kernel
def places_of(data, starts, contig, begin, end):
    """Fill contig, start and end of all records; one that covers no base counts as one base long, as in an index."""
    for i in range(contig.shape[0]):
        at = starts[i]
        contig[i] = signed32(data, at + CONTIG)
        begin[i] = signed32(data, at + POSITION)
        span = np.int64(0)
        if unsigned16(data, at + FLAGS) & _IS_UNMAPPED == 0:
            cigar, n = cigar_of(data, at, starts[i + 1])
            span = reference_span(data, cigar, n)
        end[i] = begin[i] + max(span, 1)


@exact_kernel
def copy_records(data, starts, chosen, offsets, out):
    """Fill `out` with the chosen records."""
    for i in range(chosen.shape[0]):
        begin = starts[chosen[i]]
        to = offsets[i]
        for j in range(offsets[i + 1] - to):
            out[to + j] = data[begin + j]


@exact_kernel
def integer_of(data, value, missing):
    """A whole number that is a tag's value, whose type is at `value`; or `missing`."""
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
def measure(data, starts, chosen, name_size, n_cigar, parent_size):
    """Fill the sizes of what `decode` copies of each chosen record."""
    for i in range(chosen.shape[0]):
        at = starts[chosen[i]]
        end = starts[chosen[i] + 1]
        name_size[i] = np.int64(data[at + NAME_LENGTH]) - 1
        _, n_cigar[i] = cigar_of(data, at, end)
        value, value_end = find_tag(data, tags_begin(data, at), end, _PI)
        parent_size[i] = value_end - value - 2 if value >= 0 and data[value] == _TYPE_TEXT else 0


@exact_kernel
def decode(data, starts, chosen, columns):
    """Fill the columns of the chosen records.

    Parameters
    ----------
    data : uint8
    starts : int64
        Of all records, and the end of the last one.
    chosen : int64, shape (n,)
        The records.
    columns : f5py.io.bam_records.RecordColumns
        With the offsets of names, CIGARs and parents filled.
    """
    for i in range(chosen.shape[0]):
        at = starts[chosen[i]]
        end = starts[chosen[i] + 1]
        columns.contig[i] = signed32(data, at + CONTIG)
        position = signed32(data, at + POSITION)
        columns.start[i] = position
        columns.reverse[i] = unsigned16(data, at + FLAGS) & _IS_REVERSE != 0
        to = columns.name_offsets[i]
        for j in range(columns.name_offsets[i + 1] - to):
            columns.names[to + j] = data[at + FIXED_SIZE + j]
        begin, n = cigar_of(data, at, end)
        to = columns.cigar_offsets[i]
        for j in range(n):
            columns.cigar[to + j] = np.uint32(signed32(data, begin + 4 * j))
        span = reference_span(data, begin, n)
        columns.end[i] = position + (1 if n > 0 and span == 0 else span)  # 1 as htslib takes it
        tags = tags_begin(data, at)
        value, _ = find_tag(data, tags, end, _PI)
        to = columns.parent_offsets[i]
        for j in range(columns.parent_offsets[i + 1] - to):
            columns.parents[to + j] = data[value + 1 + j]
        value, _ = find_tag(data, tags, end, _SP)
        columns.split_start[i] = integer_of(data, value, _UNKNOWN)
        value, _ = find_tag(data, tags, end, _NS)
        columns.split_length[i] = integer_of(data, value, _UNKNOWN)


@exact_kernel
def keys_of(data, starts, n, keys):
    """Fill a number for each of `n` records that is the same for records which differ in their tags only (FNV-1a)."""
    for i in range(n):
        key = np.uint64(0xCBF29CE484222325)
        for at in range(starts[i] + CONTIG, tags_begin(data, starts[i])):
            key = (key ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
        keys[i] = key


@exact_kernel
def flags_of(data, starts, n, flags):
    """Fill the flags of `n` records."""
    for i in range(n):
        flags[i] = unsigned16(data, starts[i] + FLAGS)


@exact_kernel
def copy_names(data, starts, chosen, offsets, names):
    """Fill the names of the chosen records."""
    for i in range(chosen.shape[0]):
        begin = starts[chosen[i]] + FIXED_SIZE
        to = offsets[i]
        for j in range(offsets[i + 1] - to):
            names[to + j] = data[begin + j]


@exact_kernel
def find_tags(data, starts, chosen, tag, begin, end):
    """Fill where a tag's value, beginning with its type, is in each chosen record; -1, -1 where it is missing."""
    for i in range(chosen.shape[0]):
        at = starts[chosen[i]]
        begin[i], end[i] = find_tag(data, tags_begin(data, at), starts[chosen[i] + 1], tag)
