"""Jitted loops that say which stretches of a hit are aligned; see `f5py.mapping.align.base_alignment`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_inner
from f5py.mapping.align._anchor_choice_numba import (
    ignore_close_gaps,
    ignore_opposite_gaps,
    left_limits,
    right_limits,
    trim_ends,
    trim_spliced_ends,
)  # fmt: skip
from f5py.mapping.align._pair_alignment_numba import EXTEND, EXTEND_BACKWARDS, GLOBAL, Stretch
from f5py.mapping.hit_table import CONTIG, COUNT, FIRST, REVERSE, SPLIT_INV
from f5py.mapping.index._packed_bases_numba import base_at
from f5py.mapping.index._seeds_numba import IGNORE, LONG_JOIN, TANDEM
from f5py.mapping.settings import BW, BW_LONG, HPC, MAX_GAP, MIN_DP_LEN, SPLICED, TRIM_ENDS, ZDROP, ZDROP_INV, K

_LOW = np.uint64(0xFFFFFFFF)


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
    if integers[HPC]:
        base = base_at(reference, contig_begin + t)
        while t > 0 and base_at(reference, contig_begin + t - 1) == base:
            t -= 1
        base = strand[strand_begin + q]
        while q > 1 and strand[strand_begin + q - 1] == base:
            q -= 1
        return t, q
    half = integers[K] // 2
    return t - half, q - half


@exact_inner
def ends_of_hit(hit, read, contigs, integers):
    """Choose the anchors between which a hit is aligned.

    Parameters
    ----------
    hit : int64, shape (N_FIELDS,)
    read : AnchoredRead
    contigs : f5py.mapping.batch.ContigColumns
    integers : int64
        `f5py.mapping.settings.Parameters`.

    Returns
    -------
    first, count : int
        The anchors that are left when the ends have been trimmed.
    rs, qs, re, qe : int
        Where the first and the last of them are cut.
    rs0, qs0, re0, qe0 : int
        How far the ends of the read are aligned at most.
    """
    x, y, strands, read_length = read
    reference = contigs.bases
    contig_begin = contigs.offsets[hit[CONTIG]]
    contig_length = contigs.offsets[hit[CONTIG] + 1] - contig_begin
    strand = read_length if hit[REVERSE] else 0
    first = hit[FIRST]
    count = hit[COUNT]
    if integers[TRIM_ENDS] and integers[SPLICED]:
        first, count = trim_spliced_ends(hit, read, contigs, integers)
    elif integers[TRIM_ENDS]:
        first, count = trim_ends(hit, x, y, integers)
    places = np.empty(count, np.int64)
    ignore_opposite_gaps(x, y, first, count, integers[MAX_GAP] >> 1, places)
    ignore_close_gaps(x, y, first, count, integers[MAX_GAP] >> 1, places)
    last = first + count - 1
    rs, qs = cut_anchor(x[first], y[first], reference, contig_begin, strands, strand, integers)
    re, qe = cut_anchor(x[last], y[last], reference, contig_begin, strands, strand, integers)
    rs0, qs0 = left_limits(x, y, hit[FIRST], rs, qs, integers)
    re0, qe0 = right_limits(x, y, hit[FIRST] + hit[COUNT] - 1, re, qe, contig_length, read_length, integers)
    return first, count, rs, qs, re, qe, rs0, qs0, re0, qe0


@exact_inner
def ends_gap(flags, is_last, m, n):
    """Return whether a gap of `m` and `n` bases ends at an anchor with these flags; ignored ones do not come here."""
    return is_last or flags & LONG_JOIN != 0 or (m >= MIN_DP_LEN and n >= MIN_DP_LEN)


@exact_inner
def list_stretches(hit, read, contigs, integers, keys):
    """List what `align_hit` aligns if no score drops; return how many stretches there are.

    Parameters
    ----------
    hit, read, contigs, integers
        See `ends_of_hit`.
    keys : int64, shape (>= hit[COUNT] + 1, 7)
        Filled with the fields of `Stretch`.
    """
    x, y, strands, read_length = read
    reference = contigs.bases
    contig_begin = contigs.offsets[hit[CONTIG]]
    strand = read_length if hit[REVERSE] else 0
    first, count, rs, qs, re, qe, rs0, qs0, re0, qe0 = ends_of_hit(hit, read, contigs, integers)
    band = np.int64(1.5 * integers[BW] + 1.0)
    long_band = np.int64(1.5 * integers[BW_LONG] + 1.0)
    n = 0
    if qs > 0 and rs > 0:
        zdrop = integers[ZDROP_INV] if hit[SPLIT_INV] else integers[ZDROP]
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
        stretch = Stretch(contig_begin + re, re0 - re, strand + qe, qe0 - qe, EXTEND, band, integers[ZDROP])
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
