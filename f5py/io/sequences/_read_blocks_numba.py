"""Kernels that compress reads as FASTA into BGZF blocks and list them in an index.

Text is Huffman-coded without matches (RFC 1951, section 3.2.7), because bases hardly compress further. With m = 4, 8,
... 64 frequent letters, m - 1 get codes of log2(m) bits, the next one bit more, and all others 8 or 9 bits more. No
trees are built, and a base takes 2 or 3 bits, as with zlib.
"""

from __future__ import annotations

import numpy as np

from f5py.io.bytes.bgzf_blocks import FOOTER_SIZE, HEADER_SIZE, HEADER_START
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter

#: Longest text of a block, so that it also fits uncompressed.
MOST_TEXT = 0xFF00
#: Largest excess of a block over its text, in bytes.
MOST_MORE = 5 + HEADER_SIZE + FOOTER_SIZE
_MAGIC = np.frombuffer(HEADER_START + b"\0\0", np.uint8)
_END = 256
#: Order of the code length codes (RFC 1951).
_LENGTH_ORDER = np.array([16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15], np.int64)


def _crc_tables() -> np.ndarray:
    """Make the tables of CRC-32 for eight bytes at a time; uint32, shape (8, 256)."""
    tables = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
        tables[0, byte] = value
    for row in range(1, 8):
        before = tables[row - 1]
        tables[row] = before >> 8 ^ tables[0][before & 255]
    return tables


_CRC = _crc_tables()


@exact_inner
def crc_of(text, n):
    """Return the CRC-32 of the first n bytes."""
    crc = np.uint32(0xFFFFFFFF)
    i = 0
    while i + 8 <= n:
        crc ^= (
            np.uint32(text[i])
            | np.uint32(text[i + 1]) << np.uint32(8)
            | np.uint32(text[i + 2]) << np.uint32(16)
            | np.uint32(text[i + 3]) << np.uint32(24)
        )
        crc = (
            _CRC[7, crc & np.uint32(255)]
            ^ _CRC[6, crc >> np.uint32(8) & np.uint32(255)]
            ^ _CRC[5, crc >> np.uint32(16) & np.uint32(255)]
            ^ _CRC[4, crc >> np.uint32(24)]
            ^ _CRC[3, text[i + 4]]
            ^ _CRC[2, text[i + 5]]
            ^ _CRC[1, text[i + 6]]
            ^ _CRC[0, text[i + 7]]
        )
        i += 8
    while i < n:
        crc = crc >> np.uint32(8) ^ _CRC[0, (crc ^ np.uint32(text[i])) & np.uint32(255)]
        i += 1
    return crc ^ np.uint32(0xFFFFFFFF)


@exact_inner
def _choose_lengths(text, n, counts, order, lengths):
    """Fill the code length of each symbol; return log2(m) and the bits of text and end."""
    counts[:] = 0
    for i in range(n):
        counts[text[i]] += 1
    n_found = 0
    for symbol in range(_END):
        if counts[symbol] > 0:
            at = n_found
            while at > 0 and counts[order[at - 1]] < counts[symbol]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = symbol
            n_found += 1
    n_ordered = n_found
    for symbol in range(_END):
        if counts[symbol] == 0:
            order[n_ordered] = symbol
            n_ordered += 1
    order[_END] = _END
    best, best_bits = 0, np.int64(0)
    for p in range(2, 7):
        m = 1 << p
        bits = np.int64(p + 9)
        for place in range(n_found):
            extra = 0 if place < m - 1 else 1 if place == m - 1 else 8 if place < 2 * m - 1 else 9
            bits += counts[order[place]] * (p + extra)
        if best == 0 or bits < best_bits:
            best, best_bits = p, bits
    m = 1 << best
    for place in range(_END + 1):
        extra = 0 if place < m - 1 else 1 if place == m - 1 else 8 if place < 2 * m - 1 else 9
        lengths[order[place]] = best + extra
    return best, best_bits


@exact_inner
def _assign_codes(lengths, codes):
    """Fill the canonical codes (RFC 1951, section 3.2.2) with reversed bits."""
    n_of = np.zeros(17, np.int64)
    for symbol in range(lengths.shape[0]):
        n_of[lengths[symbol]] += 1
    following = np.zeros(17, np.int64)
    code = 0
    n_of[0] = 0
    for length in range(1, 17):
        code = (code + n_of[length - 1]) << 1
        following[length] = code
    for symbol in range(lengths.shape[0]):
        length = lengths[symbol]
        if length > 0:
            code = following[length]
            following[length] += 1
            turned = 0
            for _ in range(length):
                turned = turned << 1 | code & 1
                code >>= 1
            codes[symbol] = turned


@exact_inner
def _put_bits(out, state, value, n_bits):
    """Append bits; `state` has the next byte's index, the pending bits and their number."""
    state[1] |= value << state[2]
    state[2] += n_bits
    while state[2] >= 8:
        out[state[0]] = state[1] & 255
        state[0] += 1
        state[1] >>= 8
        state[2] -= 8


@exact_inner
def _deflate(text, n, out, begin, work):
    """Write the first n bytes of `text` as a deflate block at `begin`; return its end."""
    counts, order, lengths, codes = work
    p, n_bits = _choose_lengths(text, n, counts, order, lengths)
    m = 1 << p
    head = 3 + 14 + 3 * 19 + 3 * (2 * m - 1) + (258 - 2 * m) + 6
    if (head + n_bits + 7) // 8 >= n + 5:
        out[begin] = 1
        out[begin + 1], out[begin + 2] = n & 255, n >> 8
        out[begin + 3], out[begin + 4] = out[begin + 1] ^ 255, out[begin + 2] ^ 255
        for i in range(n):
            out[begin + 5 + i] = text[i]
        return begin + 5 + n
    state = np.zeros(3, np.int64)
    state[0] = begin
    _put_bits(out, state, 1 | 2 << 1, 3)
    _put_bits(out, state, 0 | 1 << 5 | 15 << 10, 14)  # 257 literal, 2 distance and 19 length codes
    code_lengths = np.zeros(19, np.int64)
    code_codes = np.zeros(19, np.int64)
    code_lengths[p + 9] = 1
    for length in (p, p + 1, p + 8):
        code_lengths[length] = 3
    code_lengths[1] = 3  # of the two unused distance codes
    _assign_codes(code_lengths, code_codes)
    for place in range(19):
        _put_bits(out, state, code_lengths[_LENGTH_ORDER[place]], 3)
    for symbol in range(_END + 1):
        _put_bits(out, state, code_codes[lengths[symbol]], code_lengths[lengths[symbol]])
    for _ in range(2):
        _put_bits(out, state, code_codes[1], 3)
    _assign_codes(lengths, codes)
    at, held, n_held = state[0], np.uint64(state[1]), np.uint64(state[2])
    for i in range(n):
        symbol = text[i]
        held |= np.uint64(codes[symbol]) << n_held
        n_held += np.uint64(lengths[symbol])
        if n_held >= np.uint64(32):
            for _ in range(4):
                out[at] = held & np.uint64(255)
                held >>= np.uint64(8)
                at += 1
            n_held -= np.uint64(32)
    state[0], state[1], state[2] = at, np.int64(held), np.int64(n_held)
    _put_bits(out, state, codes[_END], lengths[_END])
    _put_bits(out, state, 0, 7)
    return state[0]


@exact_inner
def _copy(source, begin, n, target, to):
    for i in range(n):
        target[to + i] = source[begin + i]


@exact_inner
def _lay_out(reads, first, begin, end, text):
    """Fill `text` with the bytes `begin` to `end` of the reads' lines; `first` is the first read."""
    names, name_offsets, bases, base_offsets, at = reads
    i = first
    while i < at.shape[0] - 1 and at[i] < end:
        place = at[i]
        n_name, n_bases = name_offsets[i + 1] - name_offsets[i], base_offsets[i + 1] - base_offsets[i]
        if begin <= place < end:
            text[place - begin] = ord(">")
        place += 1
        for part in range(2):
            n = n_name if part == 0 else n_bases
            source, at_source = (names, name_offsets[i]) if part == 0 else (bases, base_offsets[i])
            low, high = max(place, begin), min(place + n, end)
            if low < high:
                _copy(source, at_source + low - place, high - low, text, low - begin)
            place += n
            if begin <= place < end:
                text[place - begin] = ord("\n")
            place += 1
        i += 1


@exact_kernel
def plan_blocks(at, least, most, first, begin):
    """Divide lines of reads into blocks that end between reads or, within long reads, after `most` bytes.

    Parameters
    ----------
    at : int64, shape (n + 1,)
        Text offsets of the reads' lines.
    least : int
        Blocks of at least this size get no further read.
    first, begin : int64, shape (>= n + at[n] // most,)
        Filled: the read at which a block begins, and its text offset.

    Returns
    -------
    int
        Number of blocks.
    """
    n_blocks = 0
    opened = np.int64(0)
    of = 0
    for i in range(at.shape[0] - 1):
        if at[i] > opened and (at[i] - opened >= least or at[i + 1] - opened > most):
            first[n_blocks], begin[n_blocks] = of, opened
            n_blocks += 1
            opened, of = at[i], i
        while at[i + 1] - opened > most:
            first[n_blocks], begin[n_blocks] = of, opened
            n_blocks += 1
            opened += most
            of = i
    if at.shape[0] > 1:
        first[n_blocks], begin[n_blocks] = of, opened
        n_blocks += 1
    return n_blocks


@exact_kernel
def compress_blocks(queue, blocks, reads, first, begin, out, sizes):
    """Compress the text of blocks.

    Parameters
    ----------
    reads : tuple of arrays
        Names and their offsets; bases and their offsets; text offsets of the reads' lines.
    first, begin : int64
        From `plan_blocks`; `begin` also has the end of the last block.
    out : uint8
        Filled; block i may begin at ``begin[i] + i * MOST_MORE``.
    sizes : int64
        Filled with the bytes of each block.
    """
    text = np.empty(MOST_TEXT, np.uint8)
    work = np.zeros(256, np.int64), np.zeros(257, np.int64), np.zeros(257, np.int64), np.zeros(257, np.int64)
    for turned in claimed_indices(work_counter(queue), blocks.shape[0]):
        i = blocks[turned]
        n = begin[i + 1] - begin[i]
        _lay_out(reads, first[i], begin[i], begin[i + 1], text)
        place = begin[i] + i * MOST_MORE
        end = _deflate(text, n, out, place + HEADER_SIZE, work)
        _copy(_MAGIC, 0, HEADER_SIZE, out, place)
        size = end + FOOTER_SIZE - place
        out[place + 16], out[place + 17] = (size - 1) & 255, (size - 1) >> 8
        crc = np.int64(crc_of(text, n))
        for j in range(4):
            out[end + j] = crc >> (8 * j) & 255
            out[end + 4 + j] = n >> (8 * j) & 255
        sizes[i] = size


@exact_kernel
def gather_blocks(queue, blocks, out, begin, offsets, packed):
    """Copy compressed blocks from `out` to their offsets in `packed`.

    Parameters
    ----------
    out, begin
        See `compress_blocks`.
    offsets : int64, shape (n + 1,)
        Of the compressed blocks, in bytes.
    packed : uint8, shape (offsets[-1],)
        Filled.
    """
    for turned in claimed_indices(work_counter(queue), blocks.shape[0]):
        i = blocks[turned]
        _copy(out, begin[i] + i * MOST_MORE, offsets[i + 1] - offsets[i], packed, offsets[i])


@exact_inner
def _put_number(out, at, value):
    digits = 1
    rest = value // 10
    while rest > 0:
        digits += 1
        rest //= 10
    for i in range(digits):
        out[at + digits - 1 - i] = ord("0") + value % 10
        value //= 10
    return at + digits


@exact_kernel
def list_reads(reads, n_before, out):
    """Write the lines of a ``.fai``; return the number of bytes.

    Parameters
    ----------
    reads : tuple of arrays
        See `compress_blocks`.
    n_before : int
        Bytes of text before these reads.
    out : uint8
        Filled; needs the size of the names and 84 bytes per read.
    """
    names, name_offsets, _, base_offsets, at = reads
    to = 0
    for i in range(name_offsets.shape[0] - 1):
        n = base_offsets[i + 1] - base_offsets[i]
        if n == 0:
            continue
        n_name = name_offsets[i + 1] - name_offsets[i]
        _copy(names, name_offsets[i], n_name, out, to)
        to += n_name
        for number in (n, n_before + at[i] + n_name + 2, n, n + 1):
            out[to] = ord("\t")
            to = _put_number(out, to + 1, number)
        out[to] = ord("\n")
        to += 1
    return to
