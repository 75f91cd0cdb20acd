"""Kernels that decode BAM records (SAM specification, section 4.2) into columns.

Layout of a record: block size (4 bytes), contig (4), position (4), length of the name (1), mapping quality (1), bin
(2), number of CIGAR operations (2), flags (2), length of the sequence (4), the mate's contig and position and the
template length (12), name, CIGAR, sequence, qualities, tags.

Kernels of records take `data`, uint8; `starts`, int64, the offset of each record and the end of the last; and `chosen`,
int64, record indices. They fill arrays with an element for each record.
"""

import numpy as np
from numpy.typing import NDArray

from f5py.core._name_table_numba import find_name
from f5py.core.cigar import OF_REFERENCE, REFERENCE_SKIP, SOFT_CLIP
from f5py.io.bam.headers import FIXED_SIZE
from f5py.jit.kernel import exact_inner, exact_kernel

#: Fates of a record.
KEPT, UNMAPPED, LOW_MAPQ, SECONDARY, SUPPLEMENTARY, NO_BASES, ULTRA, UNMAPPED_LOW_MAPQ, DUPLICATE = range(9)
#: Offsets of its fields.
CONTIG, POSITION, NAME_LENGTH, MAPQ, BIN, N_CIGAR, FLAGS, N_BASES = 4, 8, 12, 13, 14, 16, 18, 20
IS_UNMAPPED, IS_REVERSE, IS_SECONDARY, IS_SUPPLEMENTARY = 4, 16, 256, 2048
#: Letters by their four-bit codes.
LETTERS = np.frombuffer(b"=ACMGRSVTWYHKDBN", np.uint8)
#: The two letters of each byte of a sequence.
LETTER_PAIRS = np.stack([np.repeat(LETTERS, 16), np.tile(LETTERS, 16)], axis=1).view(np.uint16)[:, 0]
_CG, _PI, _SP, _NS = (np.uint16(name[0] + 256 * name[1]) for name in (b"CG", b"pi", b"sp", b"ns"))
#: Types of tags' values.
_TYPE_UINT32 = np.uint8(ord("I"))
_TYPE_FLOAT = np.uint8(ord("f"))
_TYPE_TEXT = np.uint8(ord("Z"))
_TYPE_HEX = np.uint8(ord("H"))
_TYPE_ARRAY = np.uint8(ord("B"))

#: Of the letters of signed types.
_LOWER_CASE = np.uint8(32)


def _sizes(*sizes: tuple[bytes, int]) -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    for kinds, size in sizes:
        table[list(kinds)] = size
    return table


#: Bytes of numbers by type, in arrays and single; 0 for other types.
_NUMBER_SIZES = _sizes((b"cC", 1), (b"sS", 2), (b"iIf", 4))
_SIZES = _sizes((b"AcC", 1), (b"sS", 2), (b"iIf", 4), (b"d", 8))


@exact_inner
def unsigned16(data, at):
    return np.uint16(data[at]) | np.uint16(data[at + 1]) << 8


@exact_kernel
def signed32(data, at):
    """Read four bytes as a signed integer.

    Parameters
    ----------
    data : uint8
    """
    low = np.uint32(data[at]) | np.uint32(data[at + 1]) << 8
    high = np.uint32(data[at + 2]) | np.uint32(data[at + 3]) << 8
    return np.int64(np.int32(low | high << 16))


@exact_kernel
def end_of_contigs(data, at):
    """Return the end of the header's list of contigs, or -1 if it is incomplete.

    Parameters
    ----------
    at : int
        Offset of the number of contigs.
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
    """List the whole records; return their number and whether the next one is invalid.

    Parameters
    ----------
    starts : int64
        Large enough for all.
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
def classify(data, starts, n, wanted, name_table, kinds, rows):
    """Classify `n` records, `KEPT` or rejected for a reason, and look up the kept ones in the read index.

    Parameters
    ----------
    wanted : tuple of int and two bool
        Least mapping quality, and whether to keep secondary and supplementary records.
    name_table : tuple of arrays
        Of a `f5py.core.names.NameTable`.
    rows : int64
        -1 for records that are rejected or not in the index.
    """
    min_mapq, secondary, supplementary = wanted
    names, name_begin, name_end, table = name_table
    for i in range(n):
        at = starts[i]
        flags = unsigned16(data, at + FLAGS)
        mapq = np.int64(data[at + MAPQ])
        # position or CIGAR can be missing without the flag
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
    """Return the bytes of a tag's value, or -1 if it is invalid.

    Parameters
    ----------
    kind : uint8
        Its type, as a letter.
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
def tag_end(data, at, end):
    """Return the end of the tag at `at` of a record that ends at `end`, or -1 if there is no valid one."""
    if at + 3 > end:
        return np.int64(-1)
    size = size_of_value(data, at + 3, data[at + 2], end)
    return np.int64(-1) if size < 0 or at + 3 + size > end else np.int64(at + 3 + size)


@exact_inner
def find_tag(data, at, end, tag):
    """Find a tag in ``data[at:end]``; return the offset of its type and its end, or -1, -1."""
    stop = tag_end(data, at, end)
    while stop > 0:
        if unsigned16(data, at) == tag:
            return at + 2, stop
        at, stop = stop, tag_end(data, stop, end)
    return np.int64(-1), np.int64(-1)


@exact_inner
def sequence_begins(data, at):
    """Return the offset of a record's sequence."""
    return at + FIXED_SIZE + np.int64(data[at + NAME_LENGTH]) + 4 * np.int64(unsigned16(data, at + N_CIGAR))


@exact_inner
def tags_begin(data, at):
    """Return the offset of a record's tags."""
    n_bases = signed32(data, at + N_BASES)
    return sequence_begins(data, at) + (n_bases + 1) // 2 + n_bases


@exact_inner
def cigar_of(data, at, end):
    """Return the offset and length of a record's CIGAR; beyond 65,535 operations it is in the tag CG."""
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
    """Return the reference bases covered by a CIGAR of `n` operations."""
    span = np.int64(0)
    for j in range(n):
        operation = np.uint32(signed32(data, begin + 4 * j))
        if OF_REFERENCE >> (operation & 15) & 1:
            span += np.int64(operation >> 4)
    return span


@exact_inner
def integer_of(data, value, missing):
    """Return the integer value of the tag at `value`; `missing` if it is none."""
    if value < 0:
        return np.int64(missing)
    kind = data[value]
    size = np.int64(_NUMBER_SIZES[kind])
    if size == 0 or kind == _TYPE_FLOAT:
        return np.int64(missing)
    number = np.int64(0)
    for i in range(size):
        number |= np.int64(data[value + 1 + i]) << (8 * i)
    is_signed = kind & _LOWER_CASE != 0
    return number - (np.int64(1) << (8 * size)) if is_signed and number >> (8 * size - 1) else number


@exact_kernel
def cigars_of(data, starts, chosen, places, sizes, spans):
    """Locate the CIGAR of each chosen record, and count the reference bases that it covers.

    Parameters
    ----------
    places, sizes, spans : int64
        Offset, operations and reference bases.
    """
    for i in range(chosen.shape[0]):
        places[i], sizes[i] = cigar_of(data, starts[chosen[i]], starts[chosen[i] + 1])
        spans[i] = reference_span(data, places[i], sizes[i])


@exact_kernel
def split_tags(data, starts, chosen, places, sizes, split_start, split_length):
    """Locate the text of the tag pi of each chosen record, and fill the integers of sp and ns.

    Parameters
    ----------
    places, sizes : int64
        Offset and bytes of the text; 0 without it.
    split_start, split_length : int64
        -1 for a missing tag.
    """
    for i in range(chosen.shape[0]):
        places[i] = sizes[i] = 0
        split_start[i] = split_length[i] = -1
        end = starts[chosen[i] + 1]
        at = tags_begin(data, starts[chosen[i]])
        stop = tag_end(data, at, end)
        while stop > 0:
            tag = unsigned16(data, at)
            if tag == _PI and data[at + 2] == _TYPE_TEXT:
                places[i], sizes[i] = at + 3, stop - at - 4
            elif tag == _SP:
                split_start[i] = integer_of(data, at + 2, -1)
            elif tag == _NS:
                split_length[i] = integer_of(data, at + 2, -1)
            at, stop = stop, tag_end(data, stop, end)


@exact_inner
def put_integer(out, at, value, size):
    """Write the lowest `size` bytes of an integer; return the index after them."""
    for _ in range(size):
        out[at] = value & 255
        value >>= 8
        at += 1
    return at


@exact_kernel
def keys_of(data, starts, n, keys):
    """Hash each of `n` records without its tags (FNV-1a).

    Parameters
    ----------
    keys : uint64
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
    tag : uint16
        Its two letters, the first one in the low byte.
    """
    for i in range(chosen.shape[0]):
        at = starts[chosen[i]]
        begin[i], end[i] = find_tag(data, tags_begin(data, at), starts[chosen[i] + 1], tag)
