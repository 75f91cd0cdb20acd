r"""Base alignment of hits: the stretches between their anchors, and the ends of the read.

Scores are those of two affine gaps (Li, Bioinformatics 34:3094, 2018): a gap of l bases costs
:math:`\min(q + e l, q_2 + e_2 l)`. With H the score at a cell, i on the target and j on the query,

.. math::
    D_k(i, j) &= \max(H(i-1, j) - q_k, D_k(i-1, j)) - e_k \\
    I_k(i, j) &= \max(H(i, j-1) - q_k, I_k(i, j-1)) - e_k \\
    H(i, j) &= \max(H(i-1, j-1) + s(i, j), D_1, I_1, D_2, I_2)

Of equal values the first of this list is taken in gaps and right ends, the last in left ends, which are aligned
backwards. Only cells with :math:`|i - j|` up to the band are computed. The ends of a read go as far as the best cell,
or until the score has dropped.

Spliced reads have no band, one affine gap, and introns J of any length, which begin behind a donor and end at an
acceptor:

.. math::
    J(i, j) &= \max(H(i-1, j) + donor(i-1) - q_2, J(i-1, j)) \\
    H(i, j) &= \max(H(i-1, j-1) + s(i, j), D, I, J + acceptor(i))

Both are 0 at GT..AG, or at CT..AC for a transcript on the other strand, and negative elsewhere; annotated introns get a
bonus. Hits are aligned for both strands of the transcript, and the better alignment stays.

`_alignment_numba` and `_spliced_alignment_numba` compute this with vectors of bytes; tests/mapping/plain_alignment.py
has it cell by cell.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import f5py.mapping.hit_table as column
import f5py.mapping.settings as setting
from f5py.jit.kernel import exact_inner
from f5py.mapping.align._alignment_numba import PAD, local_alignment
from f5py.mapping.align._cigar_numba import find_drop, finish_hit
from f5py.mapping.align._pair_alignment_numba import (
    EXTEND,
    EXTEND_BACKWARDS,
    GLOBAL,
    GLOBAL_WITH_DROPS,
    AlignmentScratch,
    KnownAlignments,
    Stretch,
    align_pair,
    join_ops,
)
from f5py.mapping.align._spliced_alignment_numba import align_spliced
from f5py.mapping.align._stretches_numba import cut_anchor, ends_gap, ends_of_hit
from f5py.mapping.hit_table import copy_hit, set_coordinates
from f5py.mapping.index.packed_bases import unpack
from f5py.mapping.index.seeds import IGNORE, LONG_JOIN, TANDEM

_LOW = np.uint64(0xFFFFFFFF)


class Aligner(NamedTuple):
    """Parameters, earlier alignments and scratch of a thread."""

    integers: NDArray[np.int64]  # `f5py.mapping.settings.Parameters`
    made: KnownAlignments
    room: AlignmentScratch


@exact_inner
def _split(hits, h, n_hits, n_kept, x, y, read_length):
    """Insert behind hit `h` one with its anchors from the `n_kept`-th on."""
    for i in range(n_hits, h + 1, -1):
        copy_hit(hits, i, i - 1)
    copy_hit(hits, h + 1, h)
    hit = hits[h]
    rest = hits[h + 1]
    rest[column.ID] = -1
    rest[column.ALIGNED] = 0
    rest[column.OPS] = 0
    rest[column.N_OPS] = 0
    rest[column.DP_SCORE] = 0
    rest[column.SPLIT_INV] = 0
    rest[column.TRANSCRIPT] = 0
    if hit[column.PARENT] == hit[column.ID]:
        rest[column.PARENT] = column.OWN_PARENT
    rest[column.COUNT] = hit[column.COUNT] - n_kept
    ratio = np.float32(rest[column.COUNT]) / np.float32(hit[column.COUNT])
    rest[column.SCORE] = np.int64(np.float64(np.float32(hit[column.SCORE]) * ratio) + 0.499)
    rest[column.FIRST] = hit[column.FIRST] + n_kept
    hit[column.COUNT] -= rest[column.COUNT]
    hit[column.SCORE] -= rest[column.SCORE]
    set_coordinates(hit, x, y, read_length)
    set_coordinates(rest, x, y, read_length)
    hit[column.SPLIT] |= 1
    rest[column.SPLIT] |= 2


@exact_inner
def _align(reference, strands, stretch, direction, aligner, introns, ops, n_ops):
    """Align a stretch, over introns if reads are spliced; see `align_pair`."""
    if introns is None:
        return align_pair(reference, strands, stretch, aligner.integers, ops, n_ops, aligner.made, aligner.room)
    junctions, cells = introns
    return align_spliced(
        reference, strands, stretch, direction, junctions, aligner.integers, ops, n_ops, aligner.room, cells
    )


@exact_inner
def align_hit(hits, h, n_hits, read, contigs, aligner, introns, direction, ops, n_ops):
    """Align hit `h`; return the new number of hits, `ops` or a larger array, and its new length.

    `introns` are annotated ones and scratch for matrices; with None the code of spliced reads is not compiled.
    `direction` is that of the transcript on the read, 0 for neither. `ops` has the operations of all hits of the read,
    length << 4 | operation.
    """
    hit = hits[h]
    x, y, strands, read_length = read
    reference = contigs.bases
    integers = aligner.integers
    if hit[column.REVERSE] and direction:
        direction = setting.BOTH - direction
    contig_begin = contigs.offsets[hit[column.CONTIG]]
    strand = read_length if hit[column.REVERSE] else 0
    begin_ops = n_ops
    dp_score = np.int64(0)
    first, count, rs, qs, re, qe, rs0, qs0, re0, qe0 = ends_of_hit(hit, read, contigs, integers)
    band = np.int64(1.5 * integers[setting.BW] + 1.0)
    long_band = np.int64(1.5 * integers[setting.BW_LONG] + 1.0)
    rs1 = rs
    qs1 = qs
    if qs > 0 and rs > 0:
        zdrop = integers[setting.ZDROP_INV] if hit[column.SPLIT_INV] else integers[setting.ZDROP]
        before = n_ops
        ops, n_ops, _, best, best_t, best_q, dropped = _align(
            reference, strands,
            Stretch(contig_begin + rs0, rs - rs0, strand + qs0, qs - qs0, EXTEND_BACKWARDS, band, zdrop),
            direction, aligner, introns, ops, n_ops,
        )  # fmt: skip
        if n_ops > before:
            dp_score += best
        rs1 = rs - (best_t + 1)
        qs1 = qs - (best_q + 1)
    re1 = rs
    qe1 = qs
    is_dropped = False
    for i in range(1, count):
        flags = y[first + i]
        is_last = i == count - 1
        if flags & (IGNORE | TANDEM) and not is_last:
            continue
        re, qe = cut_anchor(x[first + i], flags, reference, contig_begin, strands, strand, integers)
        re1 = re
        qe1 = qe
        if not ends_gap(flags, is_last, qe - qs, re - rs):
            continue
        this_band = max(qe - qs, re - rs) if flags & LONG_JOIN else long_band
        before = n_ops
        ops, n_ops, score, best, best_t, best_q, dropped = _align(
            reference, strands, Stretch(contig_begin + rs, re - rs, strand + qs, qe - qs, GLOBAL, this_band, -1),
            direction, aligner, introns, ops, n_ops,
        )  # fmt: skip
        code = find_drop(ops, before, n_ops, reference, contig_begin + rs, strands, strand + qs, integers)
        if code != 0:
            n_ops = before
            zdrop = integers[setting.ZDROP_INV] if code == 2 else integers[setting.ZDROP]
            ops, n_ops, score, best, best_t, best_q, dropped = _align(
                reference, strands,
                Stretch(contig_begin + rs, re - rs, strand + qs, qe - qs, GLOBAL_WITH_DROPS, this_band, zdrop),
                direction, aligner, introns, ops, n_ops,
            )  # fmt: skip
        if before > begin_ops:
            n_ops = join_ops(ops, before, n_ops)
        if dropped:
            is_dropped = True
            hit[column.ALIGNED] = 1
            j = i - 1
            while j > 0 and np.int64(x[first + j] & _LOW) > rs + best_t:
                j -= 1
            dp_score += best
            re1 = rs + best_t + 1
            qe1 = qs + best_q + 1
            if count - (j + 1) >= integers[setting.MIN_CNT]:
                _split(hits, h, n_hits, first + j + 1 - hit[column.FIRST], x, y, read_length)
                n_hits += 1
                if code == 2:
                    hits[h + 1, column.SPLIT_INV] = 1
            break
        dp_score += score
        rs = re
        qs = qe
    if not is_dropped and qe < qe0 and re < re0:
        before = n_ops
        ops, n_ops, _, best, best_t, best_q, dropped = _align(
            reference, strands,
            Stretch(contig_begin + re, re0 - re, strand + qe, qe0 - qe, EXTEND, band, integers[setting.ZDROP]),
            direction, aligner, introns, ops, n_ops,
        )  # fmt: skip
        if n_ops > before:
            dp_score += best
            if before > begin_ops:
                n_ops = join_ops(ops, before, n_ops)
        re1 = re + best_t + 1
        qe1 = qe + best_q + 1
    hit[column.RS] = rs1
    hit[column.RE] = re1
    if hit[column.REVERSE]:
        hit[column.QS] = read_length - qe1
        hit[column.QE] = read_length - qs1
    else:
        hit[column.QS] = qs1
        hit[column.QE] = qe1
    if n_ops > begin_ops or hit[column.ALIGNED]:
        hit[column.ALIGNED] = 1
        hit[column.OPS] = begin_ops
        hit[column.N_OPS] = n_ops - begin_ops
        hit[column.DP_SCORE] = dp_score
        finish_hit(hit, ops, reference, contig_begin + rs1, strands, strand + qs1, integers)
    return n_hits, ops, n_ops


@exact_inner
def _align_spliced_hit(hits, h, n_hits, read, contigs, aligner, introns, ops, n_ops):
    """Align a hit as a transcript in the read's direction, in the other one, or both and keep the better."""
    directions = aligner.integers[setting.DIRECTIONS]
    if directions != setting.BOTH:
        n_hits, ops, n_ops = align_hit(hits, h, n_hits, read, contigs, aligner, introns, directions, ops, n_ops)
        hits[h, column.TRANSCRIPT] = 1 if directions == setting.FORWARD else 2
        return n_hits, ops, n_ops
    before = hits[h].copy()
    direction = setting.FORWARD
    with_forward, ops, end_forward = align_hit(hits, h, n_hits, read, contigs, aligner, introns, direction, ops, n_ops)
    forward = hits[h : h + 2].copy()
    if with_forward > n_hits:
        _remove_hit(hits, h + 1, with_forward)
    hits[h] = before
    direction = setting.BACKWARD
    with_backward, ops, end = align_hit(hits, h, n_hits, read, contigs, aligner, introns, direction, ops, end_forward)
    difference = forward[0, column.DP_SCORE] - hits[h, column.DP_SCORE]
    if difference < 0 or (difference == 0 and (read.length + hits[h, column.DP_SCORE]) & 1):
        n_hits = with_backward
    else:
        if with_backward > n_hits:
            _remove_hit(hits, h + 1, with_backward)
        if with_forward > n_hits:
            for i in range(n_hits, h + 1, -1):
                copy_hit(hits, i, i - 1)
            hits[h + 1] = forward[1]
        hits[h] = forward[0]
        n_hits = with_forward
        end = end_forward
    hits[h, column.TRANSCRIPT] = 0 if difference == 0 else (1 if difference > 0 else 2)
    return n_hits, ops, end


@exact_inner
def _remove_hit(hits, h, n_hits):
    """Move the hits behind `h` to the front by one."""
    for i in range(h, n_hits - 1):
        copy_hit(hits, i, i + 1)


@exact_inner
def _reversed(source, begin, n):
    """Copy bases in reverse, with the padding of the aligner."""
    result = np.empty(n + PAD, np.uint8)
    for i in range(n):
        result[i] = source[begin + n - 1 - i]
    return result


@exact_inner
def align_inversion(hits, h, read, contigs, aligner, ops, n_ops):
    """Find an inverted stretch between hit `h` and the previous one, and fill row ``h + 1`` with it.

    The rows from there on must have been moved. Returns whether there is one, `ops` and its new length.
    """
    strands, read_length = read.strands, read.length
    reference = contigs.bases
    integers = aligner.integers
    one = hits[h - 1]
    two = hits[h]
    if not (one[column.SPLIT] & 1 and two[column.SPLIT] & 2):
        return False, ops, n_ops
    if one[column.ID] != one[column.PARENT] and one[column.PARENT] != column.OWN_PARENT:
        return False, ops, n_ops
    if two[column.ID] != two[column.PARENT] and two[column.PARENT] != column.OWN_PARENT:
        return False, ops, n_ops
    if one[column.CONTIG] != two[column.CONTIG] or one[column.REVERSE] != two[column.REVERSE]:
        return False, ops, n_ops
    m = one[column.QS] - two[column.QE] if one[column.REVERSE] else two[column.QS] - one[column.QE]
    n = two[column.RS] - one[column.RE]
    if min(m, n) < integers[setting.MIN_SC] or max(m, n) > integers[setting.MAX_GAP]:
        return False, ops, n_ops
    contig_begin = contigs.offsets[one[column.CONTIG]]
    q = two[column.QE] if one[column.REVERSE] else 2 * read_length - two[column.QS]
    reach = np.empty(2 * (m + 8), np.int64)
    codes = np.empty(n, np.uint8)
    unpack(reference, contig_begin + one[column.RE], contig_begin + two[column.RS], codes, 0)
    score, t_last, q_last = local_alignment(_reversed(codes, 0, n), n, _reversed(strands, q, m), m, integers, reach)
    if score < integers[setting.MIN_DP_MAX]:
        return False, ops, n_ops
    q_off = m - (q_last + 1)
    t_off = n - (t_last + 1)
    begin_ops = n_ops
    ops, n_ops, _, best, best_t, best_q, _ = align_pair(
        reference, strands,
        Stretch(
            contig_begin + one[column.RE] + t_off, n - t_off, q + q_off, m - q_off, EXTEND,
            np.int64(1.5 * integers[setting.BW]), integers[setting.ZDROP],
        ),
        integers, ops, n_ops, aligner.made, aligner.room,
    )  # fmt: skip
    if n_ops == begin_ops:
        return False, ops, n_ops
    hit = hits[h + 1]
    for field in range(column.N_FIELDS):
        hit[field] = 0
    hit[column.ID] = -1
    hit[column.PARENT] = column.NO_PARENT
    hit[column.INVERSION] = 1
    hit[column.REVERSE] = 0 if one[column.REVERSE] else 1
    hit[column.CONTIG] = one[column.CONTIG]
    hit[column.DIVERGENCE] = -1
    if hit[column.REVERSE]:
        hit[column.QE] = two[column.QS] - q_off
        hit[column.QS] = hit[column.QE] - (best_q + 1)
    else:
        hit[column.QS] = two[column.QE] + q_off
        hit[column.QE] = hit[column.QS] + best_q + 1
    hit[column.RS] = one[column.RE] + t_off
    hit[column.RE] = hit[column.RS] + best_t + 1
    hit[column.ALIGNED] = 1
    hit[column.DP_SCORE] = best
    hit[column.OPS] = begin_ops
    hit[column.N_OPS] = n_ops - begin_ops
    finish_hit(hit, ops, reference, contig_begin + hit[column.RS], strands, q + q_off, integers)
    return True, ops, n_ops


@exact_inner
def drop_poor(hits, n, integers):
    """Drop hits with too few anchors, matches or too low a score; return how many stay."""
    kept = 0
    fewest, least, least_score = integers[setting.MIN_CNT], integers[setting.MIN_SC], integers[setting.MIN_DP_MAX]
    for i in range(n):
        hit = hits[i]
        if hit[column.INVERSION] == 0 and hit[column.COUNT] < fewest:
            continue
        if hit[column.ALIGNED] and (hit[column.MLEN] < least or hit[column.DP_MAX] < least_score):
            continue
        copy_hit(hits, kept, i)
        kept += 1
    return kept


@exact_inner
def align_hits_of_read(hits, n_hits, read, contigs, aligner, introns, ops):
    """Align all hits of a read, which may add hits; return hits, their number, operations and theirs."""
    n_ops = 0
    i = 0
    while i < n_hits:
        if hits.shape[0] < n_hits + 2:
            larger = np.empty((2 * n_hits + 2, column.N_FIELDS), np.int64)
            for j in range(n_hits):
                for field in range(column.N_FIELDS):
                    larger[j, field] = hits[j, field]
            hits = larger
        if introns is None:
            n_hits, ops, n_ops = align_hit(hits, i, n_hits, read, contigs, aligner, introns, 0, ops, n_ops)
        else:
            n_hits, ops, n_ops = _align_spliced_hit(hits, i, n_hits, read, contigs, aligner, introns, ops, n_ops)
        if i > 0 and hits[i, column.SPLIT_INV]:
            for j in range(n_hits, i + 1, -1):
                copy_hit(hits, j, j - 1)
            found, ops, n_ops = align_inversion(hits, i, read, contigs, aligner, ops, n_ops)
            if found:
                i += 1
                n_hits += 1
            else:
                _remove_hit(hits, i + 1, n_hits + 1)
        i += 1
    return hits, drop_poor(hits, n_hits, aligner.integers), ops, n_ops
