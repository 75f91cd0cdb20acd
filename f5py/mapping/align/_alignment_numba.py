"""Jitted loops of the alignment of two stretches; see `f5py.mapping.align.base_alignment`.

Differences between neighbouring cells fit into a byte (Suzuki and Kasahara, BMC Bioinformatics 19:45, 2018): 32 cells
of an anti-diagonal are computed at once. Arrays go by the cell's row, the base of the target. A cell needs those of the
row before it and of its own row on the anti-diagonal before, so blocks are taken from the last to the first and written
in place.
"""

# mypy: disable-error-code="assignment,arg-type"
import numpy as np

from f5py.jit import simd_int as simd
from f5py.jit.kernel import exact_inner
from f5py.mapping.settings import E2, MATCH, MISMATCH, N_SCORE, Q2, E, Q

#: Bytes after the end of every sequence and array.
PAD = 2 * simd.LANES
LOWEST = -(1 << 30)
# Bits of a cell: 0 to 4 for where its score comes from, and which gaps go on.
BITS = 8, 16, 32, 64


@exact_inner
def border(n, integers):
    """Score of a gap of `n` bases, negated."""
    if n == 0:
        return 0
    return min(integers[Q] + integers[E] * n, integers[Q2] + integers[E2] * n)


@exact_inner
def best_cell(h, first, last, best):
    """Choose one of the cells with the best score of an anti-diagonal, in the order of minimap2's vectors."""
    if h[last] == best or first == last:
        return last
    n = last - first + 1
    whole = ((n - 1) >> 2) << 2
    lanes = simd.splat32(best)
    chosen = np.int64(1) << 62
    for b in range(first, last, simd.LANES):
        bits = np.int64(simd.bits32(simd.equal(simd.load32(h, b), lanes)))
        while bits:
            low = bits & -bits
            bits ^= low
            at = b - first
            while low > 1:
                low >>= 1
                at += 1
            if at < whole:
                chosen = min(chosen, ((at & 3) << 32) | at)
            elif at < n - 1:
                chosen = min(chosen, (np.int64(4) << 32) | at)
    return first + (chosen & 0xFFFFFFFF)


@exact_inner
def fill(target, n, query, m, band, integers, right, exact, zdrop, state, h, rows, cells):
    """Compute all cells; return score, best, best_t, best_q and whether the score has dropped.

    `score` is that at the corner of both sequences; `best` the largest one above 0, and its place, -1 for none.

    Parameters
    ----------
    target, query : uint8
        `n` and `m` bases with `PAD` more elements; the query's last base first.
    right : int
        1 if of equal scores the later gap is taken.
    exact : bool
        Find the best cell, and stop at a drop of `zdrop`.
    state : int8, shape (>= 6 * (n + PAD),)
    h : int32, shape (>= n + PAD,)
        Used if `exact`.
    rows : int64, shape (>= n + m,)
        Filled: index in `cells`, which are filled, of row 0 of each anti-diagonal.
    """
    q = integers[Q]
    e = integers[E]
    q2 = integers[Q2]
    e2 = integers[E2]
    qe = q + e
    qe2 = q2 + e2
    length = n + PAD
    u = simd.LANES
    v = u + length
    x = v + length
    y = x + length
    x2 = y + length
    y2 = x2 + length
    tie = simd.splat8(right)
    zero = simd.splat8(0)
    match = simd.splat8(integers[MATCH])
    mismatch = simd.splat8(-integers[MISMATCH])
    other = simd.splat8(N_SCORE)
    three = simd.splat8(3)
    vq = simd.splat8(q)
    vq2 = simd.splat8(q2)
    vqe = simd.splat8(qe)
    vqe2 = simd.splat8(qe2)
    one = simd.splat8(1)
    two = simd.splat8(2)
    four = simd.splat8(4)
    bit1 = simd.splat8(BITS[0])
    bit2 = simd.splat8(BITS[1])
    bit3 = simd.splat8(BITS[2])
    bit4 = simd.splat8(BITS[3])
    lowest = simd.splat32(LOWEST)

    best = 0
    best_t = -1
    best_q = -1
    last_h = 0
    st_before = 0
    en_before = -1
    at = 0
    for d in range(n + m - 1):
        st = max(0, d - m + 1, (d - band + 1) >> 1)
        en = min(n - 1, d, (d + band) >> 1)
        if st > en:
            return LOWEST, best, best_t, best_q, True
        if st == 0:
            state[v - 1] = -(border(d + 1, integers) - border(d, integers))
            state[x - 1] = -qe
            state[x2 - 1] = -qe2
        elif st == st_before:
            state[v + st - 1] = -qe
            state[x + st - 1] = -qe
            state[x2 + st - 1] = -qe2
        if en > en_before:
            if en == d:
                state[u + en] = -(border(d + 1, integers) - border(d, integers))
                last_h = -border(d + 1, integers)
            else:
                state[u + en] = -qe
                last_h -= qe + np.int64(state[v + en - 1])  # of row en, column d - en - 1
            state[y + en] = -qe
            state[y2 + en] = -qe2
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
            a1 = simd.add(simd.load8(state, x + b - 1), vb)
            b1 = simd.add(simd.load8(state, y + b), ub)
            a2 = simd.add(simd.load8(state, x2 + b - 1), vb)
            b2 = simd.add(simd.load8(state, y2 + b), ub)
            cell = simd.choose(simd.greater(simd.add(a1, tie), s), one, zero)
            s = simd.larger(s, a1)
            cell = simd.choose(simd.greater(simd.add(b1, tie), s), two, cell)
            s = simd.larger(s, b1)
            cell = simd.choose(simd.greater(simd.add(a2, tie), s), three, cell)
            s = simd.larger(s, a2)
            cell = simd.choose(simd.greater(simd.add(b2, tie), s), four, cell)
            s = simd.larger(s, b2)
            simd.store8(state, u + b, simd.sub(s, vb))
            v_new = simd.sub(s, ub)
            simd.store8(state, v + b, v_new)
            sq = simd.sub(s, vq)
            a1 = simd.sub(a1, sq)
            b1 = simd.sub(b1, sq)
            sq = simd.sub(s, vq2)
            a2 = simd.sub(a2, sq)
            b2 = simd.sub(b2, sq)
            simd.store8(state, x + b, simd.sub(simd.larger(a1, zero), vqe))
            simd.store8(state, y + b, simd.sub(simd.larger(b1, zero), vqe))
            simd.store8(state, x2 + b, simd.sub(simd.larger(a2, zero), vqe2))
            simd.store8(state, y2 + b, simd.sub(simd.larger(b2, zero), vqe2))
            cell = simd.either(cell, simd.choose(simd.greater(simd.add(a1, tie), zero), bit1, zero))
            cell = simd.either(cell, simd.choose(simd.greater(simd.add(b1, tie), zero), bit2, zero))
            cell = simd.either(cell, simd.choose(simd.greater(simd.add(a2, tie), zero), bit3, zero))
            cell = simd.either(cell, simd.choose(simd.greater(simd.add(b2, tie), zero), bit4, zero))
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
        st_before = st
        en_before = en
        if exact:
            here = np.int64(simd.largest(h_best))
            if here > best:
                best_t = best_cell(h, st, en, here)
                best_q = d - best_t
                best = here
            elif zdrop >= 0 and best - here > zdrop:
                t = best_cell(h, st, en, here)
                if t >= best_t and d - t >= best_q:
                    off = abs((t - best_t) - (d - t - best_q))
                    if best - here > zdrop + e2 * off:
                        return LOWEST, best, best_t, best_q, True
    return last_h, best, best_t, best_q, False


@exact_inner
def way_back(rows, cells, i, j, n, m, band, forwards, ops, n_ops, shortest_intron):
    """Append the path that ends at cell (i, j) to `ops`, with room for it; return its new length.

    Operations, up to ``i + j + 2`` more, are length << 4 | operation (0 M, 1 I, 2 D, 3 N). With `forwards` they stay in
    the order of the way back, for reversed sequences. Gaps at the target's border from `shortest_intron` on, unless
    that is 0, are introns.
    """
    begin = n_ops
    came = 0
    while i >= 0 and j >= 0:
        d = i + j
        st = max(0, d - m + 1, (d - band + 1) >> 1)
        en = min(n - 1, d, (d + band) >> 1)
        if i < st:
            came = 2
        elif i > en:
            came = 1
        else:
            cell = np.int64(cells[rows[d] + i])
            if came == 0 or not (cell >> (came + 2)) & 1:
                came = cell & 7
        op = 0 if came == 0 else (2 if came & 1 else 1)
        if op == 2 and came == 3 and shortest_intron > 0:
            op = 3
        if op != 1:
            i -= 1
        if op < 2:
            j -= 1
        n_ops = append_op(ops, n_ops, op, 1, begin)
    if i >= 0:
        n_ops = append_op(ops, n_ops, 3 if 0 < shortest_intron <= i else 2, i + 1, begin)
    if j >= 0:
        n_ops = append_op(ops, n_ops, 1, j + 1, begin)
    if not forwards:
        a = begin
        b = n_ops - 1
        while a < b:
            ops[a], ops[b] = ops[b], ops[a]
            a += 1
            b -= 1
    return n_ops


@exact_inner
def append_op(ops, n_ops, op, length, begin):
    """Append an operation, or lengthen an equal last one from `begin` on; return the new length."""
    if n_ops > begin and (ops[n_ops - 1] & 15) == op:
        ops[n_ops - 1] += length << 4
        return n_ops
    ops[n_ops] = (length << 4) | op
    return n_ops + 1


@exact_inner
def local_alignment(target, n, query, m, integers, reach):
    """Score the best local alignment with one kind of gap; return it and its last bases.

    Of several cells with the best score the one in the last row is taken, in this row the one that comes last where
    minimap2 keeps columns: eight to a vector, every ``s``-th in one. Columns up to a multiple of eight exist, and
    score 0 there; so the end may lie outside of the query, as in minimap2 2.24. `reach` is scratch for ``2 * (m + 8)``.
    """
    s = (m + 7) // 8
    width = 8 * s
    qe = integers[Q] + integers[E]
    e = integers[E]
    for j in range(2 * width):
        reach[j] = 0
    best = 0
    best_t = -1
    best_q = -1
    for i in range(n):
        diagonal = np.int64(0)
        gap = np.int64(0)
        base = target[i]
        row_best = np.int64(0)
        for j in range(width):
            if j >= m:
                score = 0
            elif base > 3 or query[j] > 3:
                score = N_SCORE
            elif base == query[j]:
                score = integers[MATCH]
            else:
                score = -integers[MISMATCH]
            above = reach[2 * j + 1]
            cell = max(diagonal + score, above, gap, 0)
            diagonal = reach[2 * j]
            reach[2 * j] = cell
            reach[2 * j + 1] = max(cell - qe, above - e, 0)
            gap = max(cell - qe, gap - e, 0)
            row_best = max(row_best, cell)
        if row_best >= best and row_best > 0:
            best = row_best
            best_t = i
            order = -1
            for j in range(width):
                if reach[2 * j] == best and (j % s) * 8 + j // s > order:
                    order = (j % s) * 8 + j // s
                    best_q = j
    return best, best_t, best_q
