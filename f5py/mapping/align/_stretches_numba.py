"""Jitted loops that say which stretches of a hit are aligned; see `f5py.mapping.align.base_alignment`."""

# mypy: disable-error-code="assignment,arg-type"
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import f5py.mapping.settings as setting
from f5py.jit.kernel import exact_inner
from f5py.mapping.align._alignment_numba import local_alignment
from f5py.mapping.align._pair_alignment_numba import EXTEND, EXTEND_BACKWARDS, GLOBAL, Stretch
from f5py.mapping.hit_table import CONTIG, COUNT, FIRST, MLEN, REVERSE, SPLIT_INV
from f5py.mapping.index.packed_bases import base_at, unpack
from f5py.mapping.index.seeds import IGNORE, LONG_JOIN, TANDEM

_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(32)
#: Gaps that make seeds suspect, in bases.
_MIN_GAP, _MIN_DIFFERENCE, _MOST_PAIRS = 10, 40, 10
_MIN_GAP_ALONE = 30
#: Bases on both sides of a seed at the end of a spliced read that are looked at.
_BESIDE = 20


@exact_inner
def _steps(x, y, i):
    """Distances on reference and read from the anchor before to anchor `i`."""
    t = np.int64(x[i] & _LOW) - np.int64(x[i - 1] & _LOW)
    return t, (y[i] & 0xFFFFFFFF) - (y[i - 1] & 0xFFFFFFFF)


@exact_inner
def trim_ends(hit, x, y, integers):
    """Leave out anchors at the ends behind large gaps; return the first anchor and how many are left."""
    first = hit[FIRST]
    count = hit[COUNT]
    if count < 3:
        return first, count
    last = first + count - 1
    bw = integers[setting.BW]
    enough = 2 * integers[setting.MIN_SC]
    start = first
    matched = covered = (y[first] >> 32) & 0xFF
    for i in range(first + 1, last):
        if y[i] & LONG_JOIN:
            break
        t, q = _steps(x, y, i)
        if abs(t - q) > covered >> 1:
            start = i
        covered += min(t, q)
        matched += min(min(t, q), (y[i] >> 32) & 0xFF)
        if covered >= 2 * bw or (matched >= enough and matched >= bw) or matched >= hit[MLEN] >> 1:
            break
    end = last
    matched = covered = (y[last] >> 32) & 0xFF
    for i in range(last - 1, start, -1):
        if y[i + 1] & LONG_JOIN:
            break
        t, q = _steps(x, y, i + 1)
        if abs(t - q) > covered >> 1:
            end = i
        covered += min(t, q)
        matched += min(min(t, q), (y[i + 1] >> 32) & 0xFF)
        if covered >= 2 * bw or (matched >= enough and matched >= bw) or matched >= hit[MLEN] >> 1:
            break
    return start, end + 1 - start


@exact_inner
def trim_spliced_ends(hit, read, contigs, integers):
    """Leave out the first and the last anchor if they are poor and behind long gaps; as `trim_ends`."""
    first = hit[FIRST]
    count = hit[COUNT]
    if count < 3:
        return first, count
    last = first + count - 1
    skips_first = _is_poor_end(hit, read, contigs, first, first + 1, integers)
    skips_last = _is_poor_end(hit, read, contigs, last, last, integers)
    return first + skips_first, count - skips_first - skips_last


@exact_inner
def _is_poor_end(hit, read, contigs, at, behind, integers):
    """Return 1 if the bases around an anchor score too little for the gap before anchor `behind`, else 0."""
    x, y, strands, read_length = read
    span = (y[at] >> 32) & 0xFF
    needed = math.log(np.float64(_steps(x, y, behind)[0])) + integers[setting.END_SEED_PENALTY]
    if span >= needed:
        return 0
    contig_begin = contigs.offsets[hit[CONTIG]]
    t_end = np.int64(x[at] & _LOW) + 1
    q_end = (y[at] & 0xFFFFFFFF) + 1
    t_from = max(t_end - span - _BESIDE, 0)
    q_from = max(q_end - span - _BESIDE, 0)
    n = min(t_end + _BESIDE, contigs.offsets[hit[CONTIG] + 1] - contig_begin) - t_from
    m = min(q_end + _BESIDE, read_length) - q_from
    begin = q_from + (read_length if hit[REVERSE] else 0)
    codes = np.empty(n, np.uint8)
    unpack(contigs.bases, contig_begin + t_from, contig_begin + t_from + n, codes, 0)
    score = local_alignment(
        codes, n, strands[begin : begin + m], m, integers,
        np.empty(2 * (m + 8), np.int64),
    )[0]  # fmt: skip
    return 1 if score / integers[setting.MATCH] < needed else 0


@exact_inner
def _large_gaps(x, y, first, count, smallest, places):
    """Write the anchors behind gaps larger than `smallest`; return how many."""
    n = 0
    for i in range(first + 1, first + count):
        t, q = _steps(x, y, i)
        if abs(q - t) > smallest:
            places[n] = i
            n += 1
    return n


@exact_inner
def ignore_opposite_gaps(x, y, first, count, reach, places):
    """Ignore anchors between insertions and deletions that cancel out."""
    n = _large_gaps(x, y, first, count, _MIN_GAP, places)
    if n < 2:
        return
    largest = 0
    start = -1
    end = -1
    k = 0
    while True:
        if k == n or k >= end:
            if end > 0:
                for i in range(places[start], places[end]):
                    y[i] |= IGNORE
            largest = 0
            start = -1
            end = -1
            if k == n:
                return
        t, q = _steps(x, y, places[k])
        inserted = max(q - t, 0)
        deleted = max(t - q, 0)
        at = places[k] - 1
        q_at = y[at] & 0xFFFFFFFF
        t_at = np.int64(x[at] & _LOW)
        best = 0
        best_at = -1
        m = k + 1
        while m < n and m <= k + _MOST_PAIRS:
            here = places[m]
            if (y[here] & 0xFFFFFFFF) - q_at > reach or np.int64(x[here] & _LOW) - t_at > reach:
                break
            t, q = _steps(x, y, here)
            inserted += max(q - t, 0)
            deleted += max(t - q, 0)
            difference = inserted + deleted - abs(inserted - deleted)
            if difference > best:
                best = difference
                best_at = m
            m += 1
        if best > _MIN_DIFFERENCE and best > largest:
            largest = best
            start = k
            end = best_at
        k += 1


@exact_inner
def ignore_close_gaps(x, y, first, count, reach, places):
    """Ignore anchors between large gaps with few matches between them."""
    n = _large_gaps(x, y, first, count, _MIN_GAP_ALONE, places)
    if n < 2:
        return
    k = 0
    while k < n:
        here = places[k]
        t, q = _steps(x, y, here)
        gap = abs(q - t)
        t_end = np.int64(x[here] & _LOW)
        q_end = y[here] & 0xFFFFFFFF
        m = k + 1
        while m < n:
            here = places[m]
            if (y[here] & 0xFFFFFFFF) - q_end > reach or np.int64(x[here] & _LOW) - t_end > reach:
                break
            span = (y[here - 1] >> 32) & 0xFF
            between = min(np.int64(x[here - 1] & _LOW) + span - t_end, (y[here - 1] & 0xFFFFFFFF) + span - q_end)
            t, q = _steps(x, y, here)
            if between > gap + abs(q - t):
                break
            t_end = np.int64(x[here] & _LOW)
            q_end = y[here] & 0xFFFFFFFF
            gap = abs(q - t)
            m += 1
        if m > k + 1:
            for i in range(places[k], places[m - 1]):
                y[i] |= IGNORE
            y[places[m - 1]] |= LONG_JOIN
        k = m


@exact_inner
def _longer(length, integers, room, to_end):
    """Compute how far an end of `length` bases may reach on the reference."""
    gain = length * integers[setting.MATCH]
    if gain > integers[setting.Q]:
        length += (gain - integers[setting.Q]) // integers[setting.E]
    return min(length, room, to_end)


@exact_inner
def left_limits(x, y, first, rs, qs, integers):
    """Find where the alignment before the first cut (`rs`, `qs`) may begin."""
    span = (y[first] >> 32) & 0xFF
    rs0 = max(0, np.int64(x[first] & _LOW) + 1 - span)
    qs0 = (y[first] & 0xFFFFFFFF) + 1 - span
    rs1 = np.int64(0)
    qs1 = np.int64(0)
    n_before = 0
    for i in range(first - 1, -1, -1):
        if x[i] >> _HIGH != x[first] >> _HIGH:
            break
        span = (y[i] >> 32) & 0xFF
        t = np.int64(x[i] & _LOW) + 1 - span
        q = (y[i] & 0xFFFFFFFF) + 1 - span
        if t < rs0 and q < qs0:
            n_before += 1
            if n_before > integers[setting.MIN_CNT]:
                length = max(rs0 - t, qs0 - q)
                rs1 = max(0, rs0 - length)
                qs1 = qs0 - length
                break
    if qs <= 0 or rs <= 0:
        return rs, qs
    length = min(qs, integers[setting.MAX_GAP])
    qs1 = max(qs1, qs - length)
    qs0 = min(qs0, qs1)
    length = _longer(length, integers, integers[setting.MAX_GAP], rs)
    rs1 = max(rs1, rs - length)
    return min(rs0, rs1, rs), qs0


@exact_inner
def right_limits(x, y, last, re, qe, contig_length, read_length, integers):
    """Find the furthest end of the alignment behind the last cut (`re`, `qe`)."""
    re0 = np.int64(x[last] & _LOW) + 1
    qe0 = (y[last] & 0xFFFFFFFF) + 1
    re1 = contig_length
    qe1 = read_length
    n_behind = 0
    for i in range(last + 1, x.shape[0]):
        if x[i] >> _HIGH != x[last] >> _HIGH:
            break
        t = np.int64(x[i] & _LOW) + 1
        q = (y[i] & 0xFFFFFFFF) + 1
        if t > re0 and q > qe0:
            n_behind += 1
            if n_behind > integers[setting.MIN_CNT]:
                length = max(t - re0, q - qe0)
                re1 = re0 + length
                qe1 = qe0 + length
                break
    if qe >= read_length or re >= contig_length:
        return re, qe
    length = min(read_length - qe, integers[setting.MAX_GAP])
    qe1 = min(qe1, qe + length)
    qe0 = max(qe0, qe1)
    length = _longer(length, integers, integers[setting.MAX_GAP], contig_length - re)
    re1 = min(re1, re + length)
    return max(re0, re1), qe0


class AnchoredRead(NamedTuple):
    """A read and the anchors of its hits."""

    # x, y: the anchors that belong to hits; `y` gets flags
    x: NDArray[np.uint64]
    y: NDArray[np.int64]
    strands: NDArray[np.uint8]  # shape (2 * length,): codes of the read, then of its reverse complement
    length: int  # bases of the read


@exact_inner
def cut_anchor(x, y, reference, contig_begin, strand, strand_begin, integers):
    """Find where an anchor's bases are cut: places on the contig and on the read's strand."""
    t = np.int64(x & _LOW)
    q = y & 0xFFFFFFFF
    if integers[setting.HPC]:
        base = base_at(reference, contig_begin + t)
        while t > 0 and base_at(reference, contig_begin + t - 1) == base:
            t -= 1
        base = strand[strand_begin + q]
        while q > 1 and strand[strand_begin + q - 1] == base:
            q -= 1
        return t, q
    half = integers[setting.K] // 2
    return t - half, q - half


@exact_inner
def ends_of_hit(hit, read, contigs, integers):
    """Choose the anchors between which a hit is aligned.

    Return the first and the number of those left when the ends have been trimmed; where the first and the last one are
    cut, on reference and read; and how far the ends of the read are aligned at most.
    """
    x, y, strands, read_length = read
    reference = contigs.bases
    contig_begin = contigs.offsets[hit[CONTIG]]
    contig_length = contigs.offsets[hit[CONTIG] + 1] - contig_begin
    strand = read_length if hit[REVERSE] else 0
    first = hit[FIRST]
    count = hit[COUNT]
    if integers[setting.TRIM_ENDS] and integers[setting.SPLICED]:
        first, count = trim_spliced_ends(hit, read, contigs, integers)
    elif integers[setting.TRIM_ENDS]:
        first, count = trim_ends(hit, x, y, integers)
    places = np.empty(count, np.int64)
    ignore_opposite_gaps(x, y, first, count, integers[setting.MAX_GAP] >> 1, places)
    ignore_close_gaps(x, y, first, count, integers[setting.MAX_GAP] >> 1, places)
    last = first + count - 1
    rs, qs = cut_anchor(x[first], y[first], reference, contig_begin, strands, strand, integers)
    re, qe = cut_anchor(x[last], y[last], reference, contig_begin, strands, strand, integers)
    rs0, qs0 = left_limits(x, y, hit[FIRST], rs, qs, integers)
    re0, qe0 = right_limits(x, y, hit[FIRST] + hit[COUNT] - 1, re, qe, contig_length, read_length, integers)
    return first, count, rs, qs, re, qe, rs0, qs0, re0, qe0


@exact_inner
def ends_gap(flags, is_last, m, n):
    """Return whether a gap of `m` and `n` bases ends at a used anchor with these flags."""
    return is_last or flags & LONG_JOIN != 0 or (m >= setting.MIN_DP_LEN and n >= setting.MIN_DP_LEN)


@exact_inner
def list_stretches(hit, read, contigs, integers, keys):
    """List the stretches that `align_hit` aligns if no score drops; return their number.

    `keys`, int64, shape (>= hit[COUNT] + 1, 7), is filled with the fields of `Stretch`.
    """
    x, y, strands, read_length = read
    reference = contigs.bases
    contig_begin = contigs.offsets[hit[CONTIG]]
    strand = read_length if hit[REVERSE] else 0
    first, count, rs, qs, re, qe, rs0, qs0, re0, qe0 = ends_of_hit(hit, read, contigs, integers)
    band = np.int64(1.5 * integers[setting.BW] + 1.0)
    long_band = np.int64(1.5 * integers[setting.BW_LONG] + 1.0)
    n = 0
    if qs > 0 and rs > 0:
        zdrop = integers[setting.ZDROP_INV] if hit[SPLIT_INV] else integers[setting.ZDROP]
        stretch = Stretch(contig_begin + rs0, rs - rs0, strand + qs0, qs - qs0, EXTEND_BACKWARDS, band, zdrop)
        _list(keys, n, stretch)
        n += 1
    for i in range(1, count):
        flags = y[first + i]
        is_last = i == count - 1
        if flags & (IGNORE | TANDEM) and not is_last:
            continue
        re, qe = cut_anchor(x[first + i], flags, reference, contig_begin, strands, strand, integers)
        if not ends_gap(flags, is_last, qe - qs, re - rs):
            continue
        this_band = max(qe - qs, re - rs) if flags & LONG_JOIN else long_band
        _list(keys, n, Stretch(contig_begin + rs, re - rs, strand + qs, qe - qs, GLOBAL, this_band, -1))
        n += 1
        rs = re
        qs = qe
    if qe < qe0 and re < re0:
        stretch = Stretch(contig_begin + re, re0 - re, strand + qe, qe0 - qe, EXTEND, band, integers[setting.ZDROP])
        _list(keys, n, stretch)
        n += 1
    return n


@exact_inner
def _list(keys, at, stretch):
    """Write a row of `keys`."""
    keys[at, 0] = stretch.r
    keys[at, 1] = stretch.n
    keys[at, 2] = stretch.s
    keys[at, 3] = stretch.m
    keys[at, 4] = stretch.kind
    keys[at, 5] = stretch.band
    keys[at, 6] = stretch.zdrop
