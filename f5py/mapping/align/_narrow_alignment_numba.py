"""Jitted loop of the alignment of two stretches within a narrow band; see `base_alignment`.

The same values as those of `f5py.mapping.align._alignment_numba.fill`, of a band that is one vector wide: all that one
anti-diagonal needs of the one before stays in registers. On every second anti-diagonal the rows of the lanes go on by
one, on the others the columns do.
"""

import numpy as np

from f5py.jit import simd_int as simd
from f5py.jit.kernel import exact_inner
from f5py.mapping.align._alignment_numba import BITS, border
from f5py.mapping.settings import E2, MATCH, MISMATCH, N_SCORE, Q2, E, Q

#: The band: cells with ``|i - j|`` up to this.
NARROW = simd.WIDE - 1
#: Bytes before and after the bases of a sequence.
FRONT, BEHIND = simd.WIDE, 2 * simd.WIDE


@exact_inner
def fill_narrow(target, n, query, m, integers, rows, cells):
    """Compute a global alignment within ``|i - j| <= NARROW``; ties go to the earlier gap.

    Return the score at the corner of both sequences. These have their bases from `FRONT` on, with `BEHIND` more
    elements; the query's last base comes first. ``abs(n - m) <= NARROW``. `rows` and `cells` are filled as by `fill`;
    there are ``WIDE * (n + m)`` cells.
    """
    q = integers[Q]
    q2 = integers[Q2]
    numbers = simd.lanes64()
    zero = simd.splat8x64(0)
    match = simd.splat8x64(integers[MATCH])
    mismatch = simd.splat8x64(-integers[MISMATCH])
    other = simd.splat8x64(N_SCORE)
    one = simd.splat8x64(1)
    two = simd.splat8x64(2)
    three = simd.splat8x64(3)
    four = simd.splat8x64(4)
    bit1 = simd.splat8x64(BITS[0])
    bit2 = simd.splat8x64(BITS[1])
    bit3 = simd.splat8x64(BITS[2])
    bit4 = simd.splat8x64(BITS[3])
    vq = simd.splat8x64(q)
    vq2 = simd.splat8x64(q2)
    vqe = simd.splat8x64(q + integers[E])
    vqe2 = simd.splat8x64(q2 + integers[E2])
    opened = simd.splat8x64(-q - integers[E])
    opened2 = simd.splat8x64(-q2 - integers[E2])
    last_lane = simd.equal(numbers, simd.splat8x64(simd.WIDE - 1))
    u = opened
    v = opened
    x = opened
    y = opened
    x2 = opened2
    y2 = opened2
    n_diagonals = n + m - 1
    corner = n - 1 - (((n_diagonals - 1) >> 1) - simd.WIDE // 2 + 1)  # its lane
    score = np.int64(0)
    for d in range(n_diagonals):
        first = (d >> 1) - simd.WIDE // 2 + 1  # the row of lane 0
        if d & 1:
            v = simd.from_before(v, opened)
            x = simd.from_before(x, opened)
            x2 = simd.from_before(x2, opened2)
            u = simd.choose(last_lane, opened, u)
            y = simd.choose(last_lane, opened, y)
            y2 = simd.choose(last_lane, opened2, y2)
        else:
            u = simd.from_behind(u)
            y = simd.from_behind(y)
            y2 = simd.from_behind(y2)
        if d < simd.WIDE:
            edge = simd.splat8x64(border(d, integers) - border(d + 1, integers))
            top = simd.equal(numbers, simd.splat8x64(-first))
            v = simd.choose(top, edge, v)
            x = simd.choose(top, opened, x)
            x2 = simd.choose(top, opened2, x2)
            left = simd.equal(numbers, simd.splat8x64(d - first))
            u = simd.choose(left, edge, u)
            y = simd.choose(left, opened, y)
            y2 = simd.choose(left, opened2, y2)
        tb = simd.load8x64(target, FRONT + first)
        qb = simd.load8x64(query, FRONT + m - 1 - d + first)
        s = simd.choose(simd.equal(tb, qb), match, mismatch)
        s = simd.choose(simd.greater(simd.larger(tb, qb), three), other, s)
        a1 = simd.add(x, v)
        b1 = simd.add(y, u)
        a2 = simd.add(x2, v)
        b2 = simd.add(y2, u)
        cell = simd.choose(simd.greater(a1, s), one, zero)
        s = simd.larger(s, a1)
        cell = simd.choose(simd.greater(b1, s), two, cell)
        s = simd.larger(s, b1)
        cell = simd.choose(simd.greater(a2, s), three, cell)
        s = simd.larger(s, a2)
        cell = simd.choose(simd.greater(b2, s), four, cell)
        s = simd.larger(s, b2)
        before = u
        u = simd.sub(s, v)
        v = simd.sub(s, before)
        sq = simd.sub(s, vq)
        a1 = simd.larger(simd.sub(a1, sq), zero)
        b1 = simd.larger(simd.sub(b1, sq), zero)
        sq = simd.sub(s, vq2)
        a2 = simd.larger(simd.sub(a2, sq), zero)
        b2 = simd.larger(simd.sub(b2, sq), zero)
        x = simd.sub(a1, vqe)
        y = simd.sub(b1, vqe)
        x2 = simd.sub(a2, vqe2)
        y2 = simd.sub(b2, vqe2)
        cell = simd.either(cell, simd.choose(simd.greater(a1, zero), bit1, zero))
        cell = simd.either(cell, simd.choose(simd.greater(b1, zero), bit2, zero))
        cell = simd.either(cell, simd.choose(simd.greater(a2, zero), bit3, zero))
        cell = simd.either(cell, simd.choose(simd.greater(b2, zero), bit4, zero))
        simd.store8x64(cells, simd.WIDE * d, cell)
        rows[d] = simd.WIDE * d - first
        row = first + corner
        column = d - row
        if row >= 0 and column >= 0:  # on the way to the corner
            if d & 1:
                if column == 0:
                    score = -border(row + 1, integers)
                score += simd.lane64(v, corner)
            else:
                if row == 0:
                    score = -border(column + 1, integers)
                # the last lane is outside of the band here: the next cell takes it for one behind a new gap
                score += -q - integers[E] if corner == simd.WIDE - 1 else simd.lane64(u, corner)
    return score
