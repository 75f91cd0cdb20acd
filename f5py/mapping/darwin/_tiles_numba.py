"""Jitted tiles of GACT: 32 cells of an anti-diagonal at once, and the definition; see `f5py.mapping.darwin.gact`.

Arrays of the vectors go by the cell's row. A cell needs the row before it on the two anti-diagonals before, and its own
row on the last one, so blocks are taken from the last to the first and written in place. Rows that have not begun take
part with bases that equal nothing: their scores are 0, as those of the border.
"""

# mypy: disable-error-code="assignment,arg-type"
import numpy as np

from f5py.jit.kernel import exact_inner
from f5py.jit.simd_int import (
    LANES,
    add,
    choose,
    either,
    equal,
    greater,
    larger,
    load8,
    load16,
    narrow,
    splat8,
    splat16,
    store8,
    store16,
    widen16,
)  # fmt: skip
from f5py.mapping.darwin.darwin_settings import GAP_EXTEND, GAP_OPEN, MATCH, MISMATCH, TILE_BASES

#: Bytes before and after the bases of a tile.
PAD = 2 * LANES
#: Rows of a tile's arrays.
STRIDE = TILE_BASES + 2 * PAD
#: Bases that equal nothing, not even each other: of targets, of reads.
_NO_TARGET, _NO_READ = 5, 6
# What a cell is: 0 for no alignment; and which gaps begin at the cell before.
TO_BOTH, TO_TARGET, TO_READ = 1, 2, 3
OPENS_TARGET, OPENS_READ = 4, 8


@exact_inner
def new_work():
    """Arrays for `fill_tile`: bases; scores; cells."""
    return (
        np.empty((2, STRIDE), np.uint8),
        np.empty((7, STRIDE), np.int16),
        np.empty(2 * TILE_BASES * STRIDE, np.uint8),
    )


@exact_inner
def take_bases(target, r, n, read, o, m, backwards, bases):
    """Copy the bases of a tile: ``n`` of the target and ``m`` of the read, before ``(r, o)``, or behind it backwards.

    Those of the read are written the last first.
    """
    for i in range(STRIDE):
        bases[0, i] = _NO_TARGET
        bases[1, i] = _NO_READ
    if backwards:
        for i in range(n):
            base = target[r + n - 1 - i]
            bases[0, PAD + i] = base if base < 4 else _NO_TARGET
        for j in range(m):
            base = read[o + j]
            bases[1, PAD + j] = base if base < 4 else _NO_READ
    else:
        for i in range(n):
            base = target[r - n + i]
            bases[0, PAD + i] = base if base < 4 else _NO_TARGET
        for j in range(m):
            base = read[o - 1 - j]
            bases[1, PAD + j] = base if base < 4 else _NO_READ


@exact_inner
def fill_tile(n, m, integers, finds_best, work):
    """Fill the cells of a tile of `n` rows (target) and `m` columns (read); return the best score and its cell.

    The best cell is looked for if `finds_best`; of equal ones it is that of the last row, and there of the last column.
    """
    bases, scores, cells = work
    target = bases[0]
    read = bases[1]
    both = scores[0]
    on_target = scores[1]
    on_read = scores[2]
    best = scores[5]
    best_at = scores[6]
    opened = splat16(integers[GAP_OPEN])
    extended = splat16(integers[GAP_EXTEND])
    match = splat8(integers[MATCH])
    mismatch = splat8(integers[MISMATCH])
    zero = splat16(0)
    to_both = splat16(TO_BOTH)
    to_target = splat16(TO_TARGET)
    to_read = splat16(TO_READ)
    opens_target = splat16(OPENS_TARGET)
    opens_read = splat16(OPENS_READ)
    for b in range(0, n + PAD + LANES, LANES):
        store16(both, b, zero)
        store16(scores[3], b, zero)
        store16(scores[4], b, zero)
        store16(on_target, b, opened)
        store16(on_read, b, opened)
        store16(best, b, zero)
        store16(best_at, b, zero)
    for d in range(n + m - 1):
        first = max(0, d - m + 1)
        last = min(n - 1, d)
        total = scores[3 + (d & 1)]
        here = splat16(d)
        row = d * STRIDE
        b = first + ((last - first) // LANES) * LANES
        while b >= first:
            at = PAD + b
            same = equal(load8(target, at), load8(read, PAD + m - 1 - d + b))
            new_both = larger(add(load16(total, at - 1), widen16(choose(same, match, mismatch))), zero)
            before = load16(both, at - 1)
            opens = add(before, opened)
            goes_on = add(load16(on_target, at - 1), extended)
            new_target = larger(opens, goes_on)
            cell = choose(greater(goes_on, opens), zero, opens_target)
            opens = add(load16(both, at), opened)
            goes_on = add(load16(on_read, at), extended)
            new_read = larger(opens, goes_on)
            cell = either(cell, choose(greater(goes_on, opens), zero, opens_read))
            gap = larger(new_target, new_read)
            score = larger(new_both, gap)
            kind = choose(greater(gap, new_both), choose(greater(new_read, new_target), to_read, to_target), to_both)
            cell = either(cell, choose(greater(score, zero), kind, zero))
            store16(both, at, new_both)
            store16(on_target, at, new_target)
            store16(on_read, at, new_read)
            store16(total, at, score)
            store8(cells, row + b, narrow(cell))
            if finds_best:
                old = load16(best, at)
                worse = greater(old, score)
                store16(best, at, choose(worse, old, score))
                store16(best_at, at, choose(worse, load16(best_at, at), here))
            b -= LANES
    if not finds_best:
        return 0, n - 1, m - 1
    row = n - 1
    for i in range(n - 1, -1, -1):
        if best[PAD + i] > best[PAD + row]:
            row = i
    return np.int64(best[PAD + row]), row, np.int64(best_at[PAD + row]) - row


@exact_inner
def fill_tile_plainly(n, m, integers, finds_best, work):
    """Define `fill_tile`, cell by cell. Bases and cells lie as there."""
    bases, scores, cells = work
    both = scores[0]
    on_read = scores[1]
    total = scores[2]
    opened = integers[GAP_OPEN]
    extended = integers[GAP_EXTEND]
    for j in range(m):
        both[j] = 0
        on_read[j] = 0
        total[j] = 0
    on_target = scores[3]
    for j in range(m):
        on_target[j] = opened
    best = np.int64(0)
    best_i = n - 1
    best_j = m - 1
    for i in range(n):
        diagonal = np.int64(0)
        left_both = np.int64(0)
        left_read = np.int64(opened)
        base = bases[0, PAD + i]
        for j in range(m):
            step = integers[MATCH] if base == bases[1, PAD + m - 1 - j] else integers[MISMATCH]
            new_both = max(diagonal + step, 0)
            opens = both[j] + opened
            goes_on = on_target[j] + extended
            cell = 0 if goes_on > opens else OPENS_TARGET
            new_target = max(opens, goes_on)
            opens = left_both + opened
            goes_on = left_read + extended
            cell |= 0 if goes_on > opens else OPENS_READ
            new_read = max(opens, goes_on)
            score = max(new_both, new_target, new_read)
            if score > 0:
                if new_both >= new_target and new_both >= new_read:
                    cell |= TO_BOTH
                elif new_target >= new_read:
                    cell |= TO_TARGET
                else:
                    cell |= TO_READ
            diagonal = np.int64(total[j])
            both[j] = new_both
            on_target[j] = new_target
            total[j] = score
            left_both = new_both
            left_read = new_read
            cells[(i + j) * STRIDE + i] = cell
            if finds_best and score >= best and score > 0:
                best = score
                best_i = i
                best_j = j
    return best, best_i, best_j
