"""Tags of alignments: MD and cs strings, divergence, other hits."""

# mypy: disable-error-code="assignment,arg-type"
import numpy as np

import f5py.mapping.hit_table as column
from f5py.jit.kernel import exact_inner
from f5py.mapping.index.packed_bases import base_at
from f5py.text._format_numba import append_bytes, append_int

#: Upper-case letters by code.
LETTERS = np.frombuffer(b"ACGTN", np.uint8)
_SMALL = np.frombuffer(b"acgtn", np.uint8)
_CARET, _COLON, _STAR, _PLUS_SIGN, _MINUS_SIGN, _EQUALS, _TILDE = 94, 58, 42, 43, 45, 61, 126
_COMMA, _SEMICOLON = 44, 59
#: Split of a double into two halves (Dekker), to see what a product has lost.
_SPLITTER = 134217729.0


@exact_inner
def ten_thousandths(value):
    """Convert a number from 0 to 1 to units of 1/10000, rounded as ``%.4f`` does."""
    product = value * 10000.0
    whole = np.floor(product)
    part = product - whole
    n = np.int64(whole)
    if part > 0.5:
        return n + 1
    if part < 0.5:
        return n
    high = value * _SPLITTER
    high = high - (high - value)
    low = value - high
    lost = (high * 10000.0 - product) + low * 10000.0  # 10000 has one half only
    if lost > 0.0 or (lost == 0.0 and n & 1):
        return n + 1
    return n


@exact_inner
def divergence_of(hit):
    """Return the share of differing columns, with gaps counted once."""
    columns = hit[column.BLEN] + hit[column.N_AMBI] - hit[column.N_GAP] + hit[column.N_GAPOPEN]
    return 1.0 - hit[column.MLEN] / columns


@exact_inner
def length_of_md(hit, ops):
    """Return the most bytes of the MD or cs string of a hit."""
    n = 32
    for k in range(hit[column.OPS], hit[column.OPS] + hit[column.N_OPS]):
        n += 24 + (ops[k] >> 4) if 0 < ops[k] & 15 < 3 else 24
    return n + 24 * (hit[column.BLEN] - hit[column.MLEN] + hit[column.N_AMBI]) + hit[column.MLEN]


@exact_inner
def append_md(out, at, hit, ops, reference, r, strand, s):
    """Write the MD string of a hit with bases from `r` and `s` on; return the index after it."""
    run = 0
    for k in range(hit[column.OPS], hit[column.OPS] + hit[column.N_OPS]):
        op = ops[k] & 15
        length = ops[k] >> 4
        if op == 0:
            for i in range(length):
                if base_at(reference, r + i) == strand[s + i]:
                    run += 1
                else:
                    at = append_int(out, at, run)
                    out[at] = LETTERS[base_at(reference, r + i)]
                    at += 1
                    run = 0
            r += length
            s += length
        elif op == 1:
            s += length
        elif op == 3:
            r += length
        else:
            at = append_int(out, at, run)
            out[at] = _CARET
            at += 1
            for i in range(length):
                out[at] = LETTERS[base_at(reference, r + i)]
                at += 1
            run = 0
            r += length
    if run > 0:
        at = append_int(out, at, run)
    return at


@exact_inner
def append_cs(out, at, hit, ops, reference, r, strand, s, is_long):
    """Write the cs string of a hit with bases from `r` and `s` on; return the index after it."""
    for k in range(hit[column.OPS], hit[column.OPS] + hit[column.N_OPS]):
        op = ops[k] & 15
        length = ops[k] >> 4
        if op == 0:
            run = 0
            for i in range(length + 1):
                if i < length and base_at(reference, r + i) == strand[s + i]:
                    run += 1
                    continue
                if run > 0:
                    if is_long:
                        out[at] = _EQUALS
                        at += 1
                        for j in range(i - run, i):
                            out[at] = LETTERS[strand[s + j]]
                            at += 1
                    else:
                        out[at] = _COLON
                        at = append_int(out, at + 1, run)
                    run = 0
                if i < length:
                    out[at] = _STAR
                    out[at + 1] = _SMALL[base_at(reference, r + i)]
                    out[at + 2] = _SMALL[strand[s + i]]
                    at += 3
            r += length
            s += length
        elif op == 1:
            out[at] = _PLUS_SIGN
            at += 1
            for i in range(length):
                out[at] = _SMALL[strand[s + i]]
                at += 1
            s += length
        elif op == 3:
            out[at] = _TILDE
            at = append_int(out, _append_small(out, at + 1, reference, r), length)
            at = _append_small(out, at, reference, r + length - 2)
            r += length
        else:
            out[at] = _MINUS_SIGN
            at += 1
            for i in range(length):
                out[at] = _SMALL[base_at(reference, r + i)]
                at += 1
            r += length
    return at


@exact_inner
def _append_small(out, at, bases, first):
    """Write two bases in lower case; return the index after them."""
    out[at] = _SMALL[base_at(bases, first)]
    out[at + 1] = _SMALL[base_at(bases, first + 1)]
    return at + 2


@exact_inner
def append_other_hits(out, at, hits, first, end, h, read_length, names, name_offsets):
    """Write the value of tag SA: the other primary hits of the read; return the index after it."""
    for other in range(first, end):
        hit = hits[other]
        if other == h or hit[column.PARENT] != hit[column.ID] or not hit[column.ALIGNED]:
            continue
        at = append_bytes(out, at, names[name_offsets[hit[column.CONTIG]] : name_offsets[hit[column.CONTIG] + 1]])
        out[at] = _COMMA
        at = append_int(out, at + 1, hit[column.RS] + 1)
        out[at] = _COMMA
        out[at + 1] = _MINUS_SIGN if hit[column.REVERSE] else _PLUS_SIGN
        out[at + 2] = _COMMA
        at += 3
        q = hit[column.QE] - hit[column.QS]
        t = hit[column.RE] - hit[column.RS]
        before = read_length - hit[column.QE] if hit[column.REVERSE] else hit[column.QS]
        behind = hit[column.QS] if hit[column.REVERSE] else read_length - hit[column.QE]
        at = _append_op(out, at, before, 83)
        at = _append_op(out, at, min(q, t), 77)
        at = _append_op(out, at, max(q - t, 0), 73)
        at = _append_op(out, at, max(t - q, 0), 68)
        at = _append_op(out, at, behind, 83)
        out[at] = _COMMA
        at = append_int(out, at + 1, hit[column.MAPQ])
        out[at] = _COMMA
        at = append_int(out, at + 1, hit[column.BLEN] - hit[column.MLEN] + hit[column.N_AMBI])
        out[at] = _SEMICOLON
        at += 1
    return at


@exact_inner
def _append_op(out, at, length, letter):
    """Write an operation of a CIGAR string unless it is empty."""
    if length > 0:
        at = append_int(out, at, length)
        out[at] = letter
        at += 1
    return at


@exact_inner
def split_matches(hit, ops, reference, r, strand, s, out):
    """Write the operations of a hit with 7 (=) and 8 (X) in the place of M; return their number."""
    n = 0
    for k in range(hit[column.OPS], hit[column.OPS] + hit[column.N_OPS]):
        op = ops[k] & 15
        length = ops[k] >> 4
        if op == 0:
            begin = 0
            while begin < length:
                equal = base_at(reference, r + begin) == strand[s + begin]
                i = begin + 1
                while i < length and (base_at(reference, r + i) == strand[s + i]) == equal:
                    i += 1
                out[n] = ((i - begin) << 4) | (7 if equal else 8)
                n += 1
                begin = i
            r += length
            s += length
            continue
        out[n] = ops[k]
        n += 1
        if op == 1:
            s += length
        else:
            r += length
    return n
