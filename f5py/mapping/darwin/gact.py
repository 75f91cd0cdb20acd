r"""GACT: alignments of any length by tiles of a fixed size.

A candidate is extended by tiles of 320 bases of the read and as many of the target: to the left from where the last
tile's path ended, then to the right from the best cell of the first tile. Of a tile's path the last 120 bases are left
to the next tile, so that memory does not grow with the length of the reads. In a tile

.. math::
    M(i, j) &= \max(0, \max(M, I, D)(i-1, j-1) + s(i, j)) \\
    I(i, j) &= \max(M(i-1, j) + open, I(i-1, j) + extend) \\
    D(i, j) &= \max(M(i, j-1) + open, D(i, j-1) + extend)

with i on the target and j on the read. Of equal values M comes before I before D, and opening a gap before going on.
The path of the first tile begins at its best cell, those of the others at their corner; it ends where nothing is above
0. Source: see `dsoft`.

The paper's first tile ends where the seed begins. A candidate is usually the first seed of an overlap, where the tile
has little to align, and falls through. In f5py it ends behind the seed; if it scores too little all the same, one on
the other side of the seed tells where the ordinary procedure is to begin.

Vectors hold 32 cells of an anti-diagonal, in arrays by row. A cell needs the row before it on the two anti-diagonals
before, and its own row on the last one, so blocks are taken from the last to the first and written in place. Rows that
have not begun have bases that equal nothing: their scores are 0, as those of the border.
"""

# mypy: disable-error-code="assignment,arg-type"
import numpy as np
from numpy.typing import NDArray

import f5py.mapping.darwin.darwin_settings as setting
import f5py.mapping.darwin.extensions as column
from f5py.jit import simd_int as simd
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping.darwin.extensions import Extensions, Targets
from f5py.threads.pool import WorkerPool, longest_first

#: Columns of a path.
BOTH, READ_ONLY, TARGET_ONLY = 0, 1, 2
#: Bytes before and after the bases of a tile.
PAD = 2 * simd.LANES
#: Rows of a tile's arrays.
STRIDE = setting.TILE_BASES + 2 * PAD
#: Bases that equal nothing, not even each other: of targets, of reads.
_NO_TARGET, _NO_READ = 5, 6
# Cells: 0 for no alignment; and which gaps begin at the cell before.
TO_BOTH, TO_TARGET, TO_READ = 1, 2, 3
OPENS_TARGET, OPENS_READ = 4, 8
# Places in the state of a side of an extension.
_EQUAL, _OTHER, _GAP, _RUNS, _IN_GAP, _N_STATE = range(6)


def extend_all(
    extensions: Extensions, targets: Targets, integers: NDArray[np.int64], pool: WorkerPool, plain: bool = False,
    only: NDArray[np.int64] | None = None,
) -> float:  # fmt: skip
    """Fill the results; return the seconds of work of all threads together.

    Parameters
    ----------
    plain : bool
        Fill tiles cell by cell, not by vectors.
    only : int64, optional
        Rows to extend.
    """
    if only is None:
        work = extensions.work(np.diff(targets.offsets))
        only = longest_first(work, np.ones(len(work), np.bool_))
    return pool.run(extend_candidates, only, extensions.arrays, *targets, plain, integers, order=extensions.number)


@exact_inner
def _walk_back(i, j, n_columns, integers, work, state, ops, at, step):
    """Trace back from a cell as far as a tile's path is taken, adding to the sums in `state`.

    Columns are written to `ops`, if it has room, from `at` on by `step`. Returns the bases of target and read on the
    path, and the next `at`.
    """
    bases, _, cells = work
    most = integers[setting.TILE] - integers[setting.OVERLAP]
    n = i
    m = j
    keep = ops.shape[0] > 0
    kind = np.int64(0)
    forced = False
    while i >= 0 and j >= 0 and n - i < most and m - j < most:
        cell = np.int64(cells[(i + j) * STRIDE + i])
        if not forced:
            kind = cell & 3
            if kind == 0:
                break
        if kind == TO_BOTH:
            same = bases[0, PAD + i] == bases[1, PAD + n_columns - 1 - j]
            state[_EQUAL] += same
            state[_OTHER] += not same
            state[_IN_GAP] = 0
            if keep:
                ops[at] = BOTH
            i -= 1
            j -= 1
            forced = False
        else:
            state[_GAP] += 1
            state[_RUNS] += 1 - state[_IN_GAP]
            state[_IN_GAP] = 1
            forced = True
            if kind == TO_READ:
                if keep:
                    ops[at] = READ_ONLY
                j -= 1
                if cell & OPENS_READ:
                    kind = TO_BOTH
            else:
                if keep:
                    ops[at] = TARGET_ONLY
                i -= 1
                if cell & OPENS_TARGET:
                    kind = TO_BOTH
        at += step
    return n - i, m - j, at


@exact_inner
def _fill(target, read, r, n, o, m, backwards, finds_best, plain, integers, work):
    """Fill the tile of `n` bases of the target at `r` and `m` of the read at `o`; see `fill_tile`."""
    take_bases(target, r, n, read, o, m, backwards, work[0])
    if plain:
        return fill_tile_plainly(n, m, integers, finds_best, work)
    return fill_tile(n, m, integers, finds_best, work)


@exact_inner
def _start(target, read, r, o, k, plain, integers, work):
    """Fill a candidate's first tile; return its end on target and read, or -1, and its best cell."""
    tile = integers[setting.TILE]
    after = k if integers[setting.AFTER_SEED] else 0
    r += after
    o += after
    score, i, j = _fill(target, read, r, min(tile, r), o, min(tile, o), False, True, plain, integers, work)
    if score >= integers[setting.FIRST_SCORE]:
        return r, o, i, j
    if not integers[setting.AFTER_SEED]:
        return -1, -1, 0, 0
    r -= after
    o -= after
    n = min(tile, target.shape[0] - r)
    m = min(tile, read.shape[0] - o)
    score, i, j = _fill(target, read, r, n, o, m, True, True, plain, integers, work)
    if score < integers[setting.FIRST_SCORE]:
        return -1, -1, 0, 0
    on_target, on_read, _ = _walk_back(
        i, j, m, integers, work, np.zeros(_N_STATE, np.int64), np.empty(0, np.uint8), 0, 1
    )
    r += n - 1 - i + on_target
    o += m - 1 - j + on_read
    score, i, j = _fill(target, read, r, min(tile, r), o, min(tile, o), False, True, plain, integers, work)
    if score < integers[setting.FIRST_SCORE]:
        return -1, -1, 0, 0
    return r, o, i, j


@exact_inner
def extend(target, read, r, o, plain, integers, work, result, ops):
    """Extend a candidate in both directions from its seed; fill its result, 0 if nothing aligns.

    The columns of the path are filled if there is room for them; their number and ``result[LEFT]`` are then known.
    """
    tile = integers[setting.TILE]
    n_left = result[column.LEFT]
    left = np.zeros(_N_STATE, np.int64)
    right = np.zeros(_N_STATE, np.int64)
    r, o, i, j = _start(target, read, r, o, integers[setting.K], plain, integers, work)
    if r < 0:
        return
    n = min(tile, r)
    m = min(tile, o)
    te = r - n + i + 1
    qe = o - m + j + 1
    on_target, on_read, at = _walk_back(i, j, m, integers, work, left, ops, n_left - 1, -1)
    ts = te - on_target
    qs = qe - on_read
    while ts > 0 and qs > 0:
        n = min(tile, ts)
        m = min(tile, qs)
        _fill(target, read, ts, n, qs, m, False, False, plain, integers, work)
        on_target, on_read, at = _walk_back(n - 1, m - 1, m, integers, work, left, ops, at, -1)
        if on_target + on_read == 0:
            break
        ts -= on_target
        qs -= on_read
    at = n_left
    while te < target.shape[0] and qe < read.shape[0]:
        n = min(tile, target.shape[0] - te)
        m = min(tile, read.shape[0] - qe)
        _fill(target, read, te, n, qe, m, True, False, plain, integers, work)
        on_target, on_read, at = _walk_back(n - 1, m - 1, m, integers, work, right, ops, at, 1)
        if on_target + on_read == 0:
            break
        te += on_target
        qe += on_read
    both = left + right
    result[column.SCORE] = (
        both[_EQUAL] * integers[setting.MATCH]
        + both[_OTHER] * integers[setting.MISMATCH]
        + both[_RUNS] * integers[setting.GAP_OPEN]
        + (both[_GAP] - both[_RUNS]) * integers[setting.GAP_EXTEND]
    )
    result[column.EQUAL] = both[_EQUAL]
    result[column.COLUMNS] = both[_EQUAL] + both[_OTHER] + both[_GAP]
    result[column.LEFT] = left[_EQUAL] + left[_OTHER] + left[_GAP]
    result[column.TS] = ts
    result[column.TE] = te
    result[column.QS] = qs
    result[column.QE] = qe


@exact_kernel
def extend_candidates(queue, order, extensions, targets, target_offsets, plain, integers):
    """Extend candidates.

    Parameters
    ----------
    order : int64
        Rows of the table.
    extensions : tuple
        `f5py.mapping.darwin.extensions.Extensions.arrays`. Results are filled, and paths if there is room.
    plain : bool
        Fill tiles cell by cell.
    """
    table, strands, offsets, results, ops, op_offsets = extensions
    work = new_work()
    for turned in claimed_indices(work_counter(queue), order.shape[0]):
        c = order[turned]
        read = table[c, column.READ]
        target = table[c, column.TARGET]
        extend(
            targets[target_offsets[target] : target_offsets[target + 1]],
            strands[table[c, column.REVERSE], offsets[read] : offsets[read + 1]], table[c, column.PLACE],
            table[c, column.OFFSET], plain, integers, work, results[c], ops[op_offsets[c] : op_offsets[c + 1]],
        )  # fmt: skip


@exact_inner
def new_work():
    """Allocate arrays for `fill_tile`: bases, scores, cells."""
    return (
        np.empty((2, STRIDE), np.uint8),
        np.empty((7, STRIDE), np.int16),
        np.empty(2 * setting.TILE_BASES * STRIDE, np.uint8),
    )


@exact_inner
def take_bases(target, r, n, read, o, m, backwards, bases):
    """Copy the `n` and `m` bases of a tile before ``(r, o)``, or those behind it in reverse.

    The read's bases are reversed.
    """
    for i in range(STRIDE):
        bases[0, i] = _NO_TARGET
        bases[1, i] = _NO_READ
    for i in range(n):
        base = target[r + n - 1 - i if backwards else r - n + i]
        bases[0, PAD + i] = base if base < 4 else _NO_TARGET
    for j in range(m):
        base = read[o + j if backwards else o - 1 - j]
        bases[1, PAD + j] = base if base < 4 else _NO_READ


@exact_inner
def fill_tile(n, m, integers, finds_best, work):
    """Fill the cells of a tile, a row for each target base; return the best score and its cell.

    With `finds_best` the best cell is that in the last row, and there in the last column, of equal ones.
    """
    bases, scores, cells = work
    target = bases[0]
    read = bases[1]
    both = scores[0]
    on_target = scores[1]
    on_read = scores[2]
    best = scores[5]
    best_at = scores[6]
    opened = simd.splat16(integers[setting.GAP_OPEN])
    extended = simd.splat16(integers[setting.GAP_EXTEND])
    match = simd.splat8(integers[setting.MATCH])
    mismatch = simd.splat8(integers[setting.MISMATCH])
    zero = simd.splat16(0)
    to_both = simd.splat16(TO_BOTH)
    to_target = simd.splat16(TO_TARGET)
    to_read = simd.splat16(TO_READ)
    opens_target = simd.splat16(OPENS_TARGET)
    opens_read = simd.splat16(OPENS_READ)
    for b in range(0, n + PAD + simd.LANES, simd.LANES):
        simd.store16(both, b, zero)
        simd.store16(scores[3], b, zero)
        simd.store16(scores[4], b, zero)
        simd.store16(on_target, b, opened)
        simd.store16(on_read, b, opened)
        simd.store16(best, b, zero)
        simd.store16(best_at, b, zero)
    for d in range(n + m - 1):
        first = max(0, d - m + 1)
        last = min(n - 1, d)
        total = scores[3 + (d & 1)]
        here = simd.splat16(d)
        row = d * STRIDE
        b = first + ((last - first) // simd.LANES) * simd.LANES
        while b >= first:
            at = PAD + b
            same = simd.equal(simd.load8(target, at), simd.load8(read, PAD + m - 1 - d + b))
            step = simd.widen16(simd.choose(same, match, mismatch))
            new_both = simd.larger(simd.add(simd.load16(total, at - 1), step), zero)
            before = simd.load16(both, at - 1)
            opens = simd.add(before, opened)
            goes_on = simd.add(simd.load16(on_target, at - 1), extended)
            new_target = simd.larger(opens, goes_on)
            cell = simd.choose(simd.greater(goes_on, opens), zero, opens_target)
            opens = simd.add(simd.load16(both, at), opened)
            goes_on = simd.add(simd.load16(on_read, at), extended)
            new_read = simd.larger(opens, goes_on)
            cell = simd.either(cell, simd.choose(simd.greater(goes_on, opens), zero, opens_read))
            gap = simd.larger(new_target, new_read)
            score = simd.larger(new_both, gap)
            gap_kind = simd.choose(simd.greater(new_read, new_target), to_read, to_target)
            kind = simd.choose(simd.greater(gap, new_both), gap_kind, to_both)
            cell = simd.either(cell, simd.choose(simd.greater(score, zero), kind, zero))
            simd.store16(both, at, new_both)
            simd.store16(on_target, at, new_target)
            simd.store16(on_read, at, new_read)
            simd.store16(total, at, score)
            simd.store8(cells, row + b, simd.narrow(cell))
            if finds_best:
                old = simd.load16(best, at)
                worse = simd.greater(old, score)
                simd.store16(best, at, simd.choose(worse, old, score))
                simd.store16(best_at, at, simd.choose(worse, simd.load16(best_at, at), here))
            b -= simd.LANES
    if not finds_best:
        return 0, n - 1, m - 1
    row = n - 1
    for i in range(n - 1, -1, -1):
        if best[PAD + i] > best[PAD + row]:
            row = i
    return np.int64(best[PAD + row]), row, np.int64(best_at[PAD + row]) - row


@exact_inner
def fill_tile_plainly(n, m, integers, finds_best, work):
    """Fill a tile cell by cell: the definition of `fill_tile`."""
    bases, scores, cells = work
    both = scores[0]
    on_read = scores[1]
    total = scores[2]
    opened = integers[setting.GAP_OPEN]
    extended = integers[setting.GAP_EXTEND]
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
            step = integers[setting.MATCH] if base == bases[1, PAD + m - 1 - j] else integers[setting.MISMATCH]
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
