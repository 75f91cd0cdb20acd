"""Jitted loop of the alignment of two stretches within a narrow band; see `base_alignment`.

The same values as those of `f5py.mapping.align._alignment_numba.fill`, of a band that is one vector wide: all that one
anti-diagonal needs of the one before stays in registers. On every second anti-diagonal the rows of the lanes go on by
one, on the others the columns do.
"""

import numpy as np

from f5py.jit.kernel import exact_inner
from f5py.jit.simd_int import (
    WIDE,
    add,
    choose,
    either,
    equal,
    from_before,
    from_behind,
    greater,
    lane64,
    lanes64,
    larger,
    load8x64,
    splat8x64,
    store8x64,
    sub,
)  # fmt: skip
from f5py.mapping.align._alignment_numba import BITS, border
from f5py.mapping.settings import E2, MATCH, MISMATCH, N_SCORE, Q2, E, Q

#: The band: cells with ``|i - j|`` up to this.
NARROW = WIDE - 1
#: Bytes before and after the bases of a sequence.
FRONT, BEHIND = WIDE, 2 * WIDE


@exact_inner
def fill_narrow(target, n, query, m, integers, rows, cells):
    """Compute a global alignment within ``|i - j| <= NARROW``; ties go to the earlier gap.

    Return the score at the corner of both sequences. These have their bases from `FRONT` on, with `BEHIND` more
    elements; the query's last base comes first. ``abs(n - m) <= NARROW``. `rows` and `cells` are filled as by `fill`;
    there are ``WIDE * (n + m)`` cells.
    """
    q = integers[Q]
    q2 = integers[Q2]
    numbers = lanes64()
    zero = splat8x64(0)
    match = splat8x64(integers[MATCH])
    mismatch = splat8x64(-integers[MISMATCH])
    other = splat8x64(N_SCORE)
    one = splat8x64(1)
    two = splat8x64(2)
    three = splat8x64(3)
    four = splat8x64(4)
    bit1 = splat8x64(BITS[0])
    bit2 = splat8x64(BITS[1])
    bit3 = splat8x64(BITS[2])
    bit4 = splat8x64(BITS[3])
    vq = splat8x64(q)
    vq2 = splat8x64(q2)
    vqe = splat8x64(q + integers[E])
    vqe2 = splat8x64(q2 + integers[E2])
    opened = splat8x64(-q - integers[E])
    opened2 = splat8x64(-q2 - integers[E2])
    last_lane = equal(numbers, splat8x64(WIDE - 1))
    u = opened
    v = opened
    x = opened
    y = opened
    x2 = opened2
    y2 = opened2
    n_diagonals = n + m - 1
    corner = n - 1 - (((n_diagonals - 1) >> 1) - WIDE // 2 + 1)  # its lane
    score = np.int64(0)
    for d in range(n_diagonals):
        first = (d >> 1) - WIDE // 2 + 1  # the row of lane 0
        if d & 1:
            v = from_before(v, opened)
            x = from_before(x, opened)
            x2 = from_before(x2, opened2)
            u = choose(last_lane, opened, u)
            y = choose(last_lane, opened, y)
            y2 = choose(last_lane, opened2, y2)
        else:
            u = from_behind(u)
            y = from_behind(y)
            y2 = from_behind(y2)
        if d < WIDE:
            edge = splat8x64(border(d, integers) - border(d + 1, integers))
            top = equal(numbers, splat8x64(-first))
            v = choose(top, edge, v)
            x = choose(top, opened, x)
            x2 = choose(top, opened2, x2)
            left = equal(numbers, splat8x64(d - first))
            u = choose(left, edge, u)
            y = choose(left, opened, y)
            y2 = choose(left, opened2, y2)
        tb = load8x64(target, FRONT + first)
        qb = load8x64(query, FRONT + m - 1 - d + first)
        s = choose(equal(tb, qb), match, mismatch)
        s = choose(greater(larger(tb, qb), three), other, s)
        a1 = add(x, v)
        b1 = add(y, u)
        a2 = add(x2, v)
        b2 = add(y2, u)
        cell = choose(greater(a1, s), one, zero)
        s = larger(s, a1)
        cell = choose(greater(b1, s), two, cell)
        s = larger(s, b1)
        cell = choose(greater(a2, s), three, cell)
        s = larger(s, a2)
        cell = choose(greater(b2, s), four, cell)
        s = larger(s, b2)
        before = u
        u = sub(s, v)
        v = sub(s, before)
        sq = sub(s, vq)
        a1 = larger(sub(a1, sq), zero)
        b1 = larger(sub(b1, sq), zero)
        sq = sub(s, vq2)
        a2 = larger(sub(a2, sq), zero)
        b2 = larger(sub(b2, sq), zero)
        x = sub(a1, vqe)
        y = sub(b1, vqe)
        x2 = sub(a2, vqe2)
        y2 = sub(b2, vqe2)
        cell = either(cell, choose(greater(a1, zero), bit1, zero))
        cell = either(cell, choose(greater(b1, zero), bit2, zero))
        cell = either(cell, choose(greater(a2, zero), bit3, zero))
        cell = either(cell, choose(greater(b2, zero), bit4, zero))
        store8x64(cells, WIDE * d, cell)
        rows[d] = WIDE * d - first
        row = first + corner
        column = d - row
        if row >= 0 and column >= 0:  # on the way to the corner
            if d & 1:
                if column == 0:
                    score = -border(row + 1, integers)
                score += lane64(v, corner)
            else:
                if row == 0:
                    score = -border(column + 1, integers)
                # the last lane is outside of the band here: the next cell takes it for one behind a new gap
                score += -q - integers[E] if corner == WIDE - 1 else lane64(u, corner)
    return score
