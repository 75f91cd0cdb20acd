"""Jitted loops of the alignment of two stretches over introns; see `base_alignment`.

As in `_alignment_numba`, differences between neighboring cells fit into a byte, and 32 cells of an anti-diagonal are
computed at once. The second deletion is an intron here; there is no second insertion and no band.
"""

# mypy: disable-error-code="assignment,arg-type"
import numpy as np

import f5py.mapping.settings as setting
from f5py.jit import simd_int as simd
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.mapping._sorting_numba import grown
from f5py.mapping.align._alignment_numba import BITS, LOWEST, PAD, best_cell, way_back
from f5py.mapping.align._pair_alignment_numba import EXTEND_BACKWARDS, GLOBAL, ROOM_BASES, UNREACHED
from f5py.mapping.index.packed_bases import unpack

_A, _C, _G, _T = range(4)
#: Columns of annotated introns: first base, base behind the last one, strand: 1 or -1.
START, END, STRAND = range(3)
_DONOR, _ACCEPTOR = np.uint8(1), np.uint8(2)


@exact_inner
def _border(n, integers):
    """Score of a gap of `n` bases at the border, negated."""
    return 0 if n == 0 else min(integers[setting.Q] + integers[setting.E] * n, integers[setting.Q2])


@exact_inner
def _shortest_intron(integers):
    """Compute the length from which on a gap at the target's border is an intron; 0 if no gap is one."""
    q, e, q2 = integers[setting.Q], integers[setting.E], integers[setting.Q2]
    length = (q2 - q) // e - 1
    return max(length + (q2 > q + e + length * e), 0)


@exact_inner
def set_signals(target, n, direction, backwards, integers, donors, acceptors):
    """Fill the scores of introns that begin behind, or end at, each base of the target.

    `direction` is that of the transcript on the reference, 0 for neither; a target can be reversed (`backwards`).
    """
    lowest = -integers[setting.NON_CANONICAL] if direction else 0
    for i in range(n):
        donors[i] = lowest
        acceptors[i] = lowest
    if direction == 0:
        return
    # GT and AG; CT and AC on the other strand; both reversed if the target is
    outer = _G if direction == setting.FORWARD else _C
    inner = _A if backwards else _T
    other = _T if backwards else _A
    flank = -(integers[setting.NON_CANONICAL] // 2) if integers[setting.SPLICE_FLANK] else 0
    # a purine follows the donor's two bases, and a pyrimidine is before the acceptor's
    odd = 1 if backwards else 0
    for i in range(n - 4):
        if target[i + 1] == outer and target[i + 2] == inner:
            donors[i] = 0 if target[i + 3] < 4 and target[i + 3] & 1 == odd else flank
    for i in range(2, n):
        if target[i] == outer and target[i - 1] == other:
            acceptors[i] = 0 if target[i - 2] < 4 and target[i - 2] & 1 != odd else flank


@exact_inner
def add_junctions(junctions, r, n, direction, backwards, integers, donors, acceptors):
    """Add the bonus to sites of annotated introns inside of ``r:r + n``; each site counts once.

    `junctions`, int64, shape (n_introns, 3), has the columns `START`, `END` and `STRAND`, and is sorted by `START`.
    """
    low = 0
    high = junctions.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if junctions[middle, START] < r:
            low = middle + 1
        else:
            high = middle
    if low == junctions.shape[0] or junctions[low, START] >= r + n:
        return
    marks = np.zeros(n, np.uint8)
    for k in range(low, junctions.shape[0]):
        if junctions[k, START] >= r + n:
            break
        if junctions[k, END] > r + n or (junctions[k, STRAND] > 0) != (direction == setting.FORWARD):
            continue
        first = junctions[k, START] - r
        last = junctions[k, END] - 1 - r
        if backwards:
            first, last = n - 1 - last, n - 1 - first
        if first > 0:
            marks[first - 1] |= _DONOR
        marks[last] |= _ACCEPTOR
    bonus = integers[setting.JUNCTION_BONUS]
    for i in range(n):
        if marks[i] & _DONOR:
            donors[i] += bonus
        if marks[i] & _ACCEPTOR:
            acceptors[i] += bonus


@exact_inner
def fill_spliced(target, n, query, m, donors, acceptors, integers, right, exact, zdrop, state, h, rows, cells):
    """Compute all cells; as `f5py.mapping.align._alignment_numba.fill`, with the arrays of `set_signals`."""
    q = integers[setting.Q]
    q2 = integers[setting.Q2]
    qe = q + integers[setting.E]
    length = n + PAD
    u = simd.LANES
    v = u + length
    x = v + length
    y = x + length
    x2 = y + length
    tie = simd.splat8(right)
    zero = simd.splat8(0)
    match = simd.splat8(integers[setting.MATCH])
    mismatch = simd.splat8(-integers[setting.MISMATCH])
    other = simd.splat8(setting.N_SCORE)
    three = simd.splat8(3)
    vq = simd.splat8(q)
    vq2 = simd.splat8(q2)
    vqe = simd.splat8(qe)
    one = simd.splat8(1)
    two = simd.splat8(2)
    bit1 = simd.splat8(BITS[0])
    bit2 = simd.splat8(BITS[1])
    bit3 = simd.splat8(BITS[2])
    lowest = simd.splat32(LOWEST)

    best = 0
    best_t = -1
    best_q = -1
    last_h = 0
    at = 0
    for d in range(n + m - 1):
        st = max(0, d - m + 1)
        en = min(n - 1, d)
        if st == 0:
            state[v - 1] = -(_border(d + 1, integers) - _border(d, integers))
            state[x - 1] = -qe
            state[x2 - 1] = -q2
        if en == d:
            state[u + en] = -(_border(d + 1, integers) - _border(d, integers))
            last_h = -_border(d + 1, integers)
            state[y + en] = -qe
            if exact:
                h[en] = last_h
        row = at - st
        rows[d] = row
        query_at = m - 1 - d
        h_best = lowest
        b = st + ((en - st) >> 5 << 5)
        while b >= st:
            tb = simd.load8(target, b)
            qb = simd.load8(query, query_at + b)
            s = simd.choose(simd.equal(tb, qb), match, mismatch)
            s = simd.choose(simd.greater(simd.larger(tb, qb), three), other, s)
            vb = simd.load8(state, v + b - 1)
            ub = simd.load8(state, u + b)
            donor = simd.load8(donors, b)
            a1 = simd.add(simd.load8(state, x + b - 1), vb)
            b1 = simd.add(simd.load8(state, y + b), ub)
            a2 = simd.add(simd.load8(state, x2 + b - 1), vb)
            left = simd.add(a2, simd.load8(acceptors, b))
            cell = simd.choose(simd.greater(simd.add(a1, tie), s), one, zero)
            s = simd.larger(s, a1)
            cell = simd.choose(simd.greater(simd.add(b1, tie), s), two, cell)
            s = simd.larger(s, b1)
            cell = simd.choose(simd.greater(simd.add(left, tie), s), three, cell)
            s = simd.larger(s, left)
            simd.store8(state, u + b, simd.sub(s, vb))
            v_new = simd.sub(s, ub)
            simd.store8(state, v + b, v_new)
            sq = simd.sub(s, vq)
            a1 = simd.sub(a1, sq)
            b1 = simd.sub(b1, sq)
            a2 = simd.sub(a2, simd.sub(s, vq2))
            simd.store8(state, x + b, simd.sub(simd.larger(a1, zero), vqe))
            simd.store8(state, y + b, simd.sub(simd.larger(b1, zero), vqe))
            simd.store8(state, x2 + b, simd.sub(simd.larger(a2, donor), vq2))
            cell = simd.either(cell, simd.choose(simd.greater(simd.add(a1, tie), zero), bit1, zero))
            cell = simd.either(cell, simd.choose(simd.greater(simd.add(b1, tie), zero), bit2, zero))
            cell = simd.either(cell, simd.choose(simd.greater(simd.add(a2, tie), donor), bit3, zero))
            simd.store8(cells, row + b, cell)
            if exact:
                hb = simd.add(simd.load32(h, b), simd.widen(v_new))
                simd.store32(h, b, hb)
                if en - b < simd.LANES - 1:
                    hb = simd.choose(simd.first_of_32(en - b + 1), hb, lowest)
                h_best = simd.larger(h_best, hb)
            b -= simd.LANES
        last_h += np.int64(state[v + en])
        at += en - st + 1
        if exact:
            here = np.int64(simd.largest(h_best))
            if here > best:
                best_t = best_cell(h, st, en, here)
                best_q = d - best_t
                best = here
            elif zdrop >= 0 and best - here > zdrop:
                t = best_cell(h, st, en, here)
                if t >= best_t and d - t >= best_q:
                    return LOWEST, best, best_t, best_q, True
    return last_h, best, best_t, best_q, False


@exact_kernel
def align_spliced(reference, strand, stretch, direction, junctions, integers, ops, n_ops, room, room_of_cells):
    """Align a stretch over introns and append its path to `ops`; otherwise as `align_pair`.

    Parameters
    ----------
    direction, junctions
        See `set_signals` and `add_junctions`.
    room_of_cells : uint8
        Scratch; matrices with more cells get their own.
    """
    r, n, s, m, kind, _, zdrop = stretch
    ops = grown(ops, n_ops + n + m + 2)
    if n == 0 or m == 0:
        return ops, n_ops, UNREACHED, 0, -1, -1, False
    if 0 < integers[setting.MAX_CELLS] < n * m:
        return ops, n_ops, UNREACHED, 0, -1, -1, True
    fits = max(n, m) <= ROOM_BASES
    target = room.target if fits else np.empty(n + PAD, np.uint8)
    query = room.query if fits else np.empty(m + PAD + simd.LANES, np.uint8)
    backwards = kind == EXTEND_BACKWARDS
    unpack(reference, r, r + n, target, 0)
    if backwards:
        for i in range(n // 2):
            target[i], target[n - 1 - i] = target[n - 1 - i], target[i]
        for j in range(m):
            query[simd.LANES + j] = strand[s + j]
    else:
        for j in range(m):
            query[simd.LANES + j] = strand[s + m - 1 - j]
    donors = np.empty(n + PAD, np.int8)
    acceptors = np.empty(n + PAD, np.int8)
    set_signals(target, n, direction, backwards, integers, donors, acceptors)
    if direction and junctions.shape[0]:
        add_junctions(junctions, r, n, direction, backwards, integers, donors, acceptors)
    rows = room.rows if fits else np.empty(n + m, np.int64)
    state = room.state if fits else np.empty(6 * (n + PAD) + PAD, np.int8)
    h = room.h if fits else np.empty(n + PAD, np.int32)
    cells = room_of_cells if n * m + PAD <= room_of_cells.shape[0] else np.empty(n * m + PAD, np.uint8)
    score, best, best_t, best_q, dropped = fill_spliced(
        target, n, query[simd.LANES :], m, donors, acceptors, integers, 1 if backwards else 0, kind != GLOBAL, zdrop,
        state, h, rows, cells,
    )  # fmt: skip
    shortest = _shortest_intron(integers)
    if kind >= GLOBAL and not dropped:
        n_ops = way_back(rows, cells, n - 1, m - 1, n, m, n + m, False, ops, n_ops, shortest)
    elif best_t >= 0 and best_q >= 0:
        n_ops = way_back(rows, cells, best_t, best_q, n, m, n + m, backwards, ops, n_ops, shortest)
    return ops, n_ops, score, best, best_t, best_q, dropped
