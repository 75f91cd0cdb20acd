"""Jitted loops that extend candidates tile by tile; see `f5py.mapping.darwin.gact`."""

# mypy: disable-error-code="assignment,arg-type"
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping.darwin._tiles_numba import (
    OPENS_READ,
    OPENS_TARGET,
    PAD,
    STRIDE,
    TO_BOTH,
    TO_READ,
    fill_tile,
    fill_tile_plainly,
    new_work,
    take_bases,
)
from f5py.mapping.darwin.darwin_settings import (
    AFTER_SEED,
    FIRST_SCORE,
    GAP_EXTEND,
    GAP_OPEN,
    MATCH,
    MISMATCH,
    OVERLAP,
    TILE,
    K,
)
from f5py.mapping.darwin.extensions import (
    COLUMNS,
    EQUAL,
    LEFT,
    OFFSET,
    PLACE,
    QE,
    QS,
    READ,
    REVERSE,
    SCORE,
    TARGET,
    TE,
    TS,
)

#: Columns of a path.
BOTH, READ_ONLY, TARGET_ONLY = 0, 1, 2
# Places in the state of a side of an extension.
_EQUAL, _OTHER, _GAP, _RUNS, _IN_GAP, _N_STATE = range(6)


@exact_inner
def _walk_back(i, j, n_columns, integers, work, state, ops, at, step):
    """Go back from a cell as far as a tile's path is taken.

    Parameters
    ----------
    i, j : int
    n_columns : int
        Of the tile.
    state : int64, shape (_N_STATE,)
        Sums over the path, which are added to.
    ops : uint8
        Filled with columns, if there is room for any.
    at, step : int
        Where the next column is written, and the way to the one after it.

    Returns
    -------
    on_target, on_read, at : int
        Bases that the path has taken, and where the next column is written.
    """
    bases, _, cells = work
    most = integers[TILE] - integers[OVERLAP]
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


class Tile(NamedTuple):
    """Place of a tile."""

    # r, n: first base on the target, and how many
    r: int
    n: int
    # o, m: the same on the read
    o: int
    m: int


@exact_inner
def _fill(target, read, tile, backwards, finds_best, plain, integers, work):
    """Take the bases of a tile and fill it; see `fill_tile`.

    Parameters
    ----------
    target, read : uint8
        Codes.
    tile : Tile
    backwards : bool
        Take the bases from the last one on.
    finds_best : bool
        Look for the best cell.
    plain : bool
        Fill cell by cell, not by vectors.
    integers : int64
        `f5py.mapping.darwin.darwin_settings.darwin_integers`.
    work
        `new_work`.
    """
    r, n, o, m = tile
    take_bases(target, r, n, read, o, m, backwards, work[0])
    if plain:
        return fill_tile_plainly(n, m, integers, finds_best, work)
    return fill_tile(n, m, integers, finds_best, work)


@exact_inner
def _start(target, read, r, o, k, plain, integers, work):
    """Find where the first tile of a candidate ends; -1, -1 if nothing is there.

    The first tile itself is then in `work`, with the best cell as in what is returned.

    Returns
    -------
    r, o : int
        Where the tile ends.
    i, j : int
        Its best cell.
    """
    tile = integers[TILE]
    after = k if integers[AFTER_SEED] else 0
    r += after
    o += after
    score, i, j = _fill(target, read, Tile(r, min(tile, r), o, min(tile, o)), False, True, plain, integers, work)
    if score >= integers[FIRST_SCORE]:
        return r, o, i, j
    if not integers[AFTER_SEED]:
        return -1, -1, 0, 0
    r -= after
    o -= after
    n = min(tile, target.shape[0] - r)
    m = min(tile, read.shape[0] - o)
    score, i, j = _fill(target, read, Tile(r, n, o, m), True, True, plain, integers, work)
    if score < integers[FIRST_SCORE]:
        return -1, -1, 0, 0
    on_target, on_read, _ = _walk_back(
        i, j, m, integers, work, np.zeros(_N_STATE, np.int64), np.empty(0, np.uint8), 0, 1
    )
    r += n - 1 - i + on_target
    o += m - 1 - j + on_read
    score, i, j = _fill(target, read, Tile(r, min(tile, r), o, min(tile, o)), False, True, plain, integers, work)
    if score < integers[FIRST_SCORE]:
        return -1, -1, 0, 0
    return r, o, i, j


class Extended(NamedTuple):
    """Extension of a candidate, to be filled."""

    # shape (N_RESULT,): see `f5py.mapping.darwin.extensions`. All 0 if there is no alignment.
    result: NDArray[np.int64]
    # shape (columns,) or (0,): columns of the path, of which ``result[LEFT]`` and their number are then known
    ops: NDArray[np.uint8]


@exact_inner
def extend(target, read, r, o, plain, integers, work, out):
    """Extend a candidate in both directions.

    Parameters
    ----------
    target, read : uint8
        Codes; those of the read's strand.
    r, o : int
        Where the seed begins on both.
    plain : bool
        Fill tiles cell by cell.
    integers : int64
        `f5py.mapping.darwin.darwin_settings.darwin_integers`.
    work
        `new_work`.
    out : Extended
        Filled.
    """
    result, ops = out
    tile = integers[TILE]
    n_left = result[LEFT]
    left = np.zeros(_N_STATE, np.int64)
    right = np.zeros(_N_STATE, np.int64)
    r, o, i, j = _start(target, read, r, o, integers[K], plain, integers, work)
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
        _fill(target, read, Tile(ts, n, qs, m), False, False, plain, integers, work)
        on_target, on_read, at = _walk_back(n - 1, m - 1, m, integers, work, left, ops, at, -1)
        if on_target + on_read == 0:
            break
        ts -= on_target
        qs -= on_read
    at = n_left
    while te < target.shape[0] and qe < read.shape[0]:
        n = min(tile, target.shape[0] - te)
        m = min(tile, read.shape[0] - qe)
        _fill(target, read, Tile(te, n, qe, m), True, False, plain, integers, work)
        on_target, on_read, at = _walk_back(n - 1, m - 1, m, integers, work, right, ops, at, 1)
        if on_target + on_read == 0:
            break
        te += on_target
        qe += on_read
    both = left + right
    result[SCORE] = (
        both[_EQUAL] * integers[MATCH]
        + both[_OTHER] * integers[MISMATCH]
        + both[_RUNS] * integers[GAP_OPEN]
        + (both[_GAP] - both[_RUNS]) * integers[GAP_EXTEND]
    )
    result[EQUAL] = both[_EQUAL]
    result[COLUMNS] = both[_EQUAL] + both[_OTHER] + both[_GAP]
    result[LEFT] = left[_EQUAL] + left[_OTHER] + left[_GAP]
    result[TS] = ts
    result[TE] = te
    result[QS] = qs
    result[QE] = qe


@exact_kernel
def extend_candidates(queue, order, extensions, targets, target_offsets, plain, integers):
    """`extend` of candidates.

    Parameters
    ----------
    queue, order
        See `f5py.threads.pool`; rows of `table`.
    extensions : f5py.mapping.darwin.extensions.ExtensionArrays
        Results are filled, and paths if there is room.
    targets : uint8, shape (target_offsets[-1],)
        Codes.
    target_offsets : int64, shape (n_targets + 1,)
    plain : bool
        Fill tiles cell by cell.
    integers : int64
        `f5py.mapping.darwin.darwin_settings.darwin_integers`.
    """
    table, strands, offsets, results, ops, op_offsets = extensions
    work = new_work()
    for turned in claimed_indices(work_counter(queue), order.shape[0]):
        c = order[turned]
        read = table[c, READ]
        target = table[c, TARGET]
        extend(
            targets[target_offsets[target] : target_offsets[target + 1]],
            strands[table[c, REVERSE], offsets[read] : offsets[read + 1]], table[c, PLACE], table[c, OFFSET], plain,
            integers, work, Extended(results[c], ops[op_offsets[c] : op_offsets[c + 1]]),
        )  # fmt: skip


@exact_kernel
def make_strands(queue, reads, codes, offsets, strands):
    """Fill both strands of reads.

    Parameters
    ----------
    codes : uint8, shape (offsets[-1],)
        0 to 3, 4 for unknown bases.
    offsets : int64, shape (n_reads + 1,)
    strands : uint8, shape (2, offsets[-1])
        Filled with the reads, and their reverse complements at the same places.
    """
    for turned in claimed_indices(work_counter(queue), reads.shape[0]):
        begin = offsets[reads[turned]]
        end = offsets[reads[turned] + 1]
        for i in range(end - begin):
            base = codes[begin + i]
            strands[0, begin + i] = base
            strands[1, end - 1 - i] = 3 - base if base < 4 else 4
