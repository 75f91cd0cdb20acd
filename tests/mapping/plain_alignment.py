"""Alignment of two stretches cell by cell: the definition of `f5py.mapping.align.base_alignment`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.mapping.settings import N_SCORE, MapSettings


class PairAlignment(NamedTuple):
    """Alignment of two stretches."""

    score: int  # at the corner of both; -2**30 if it was not reached
    # best, best_t, best_q: largest score above 0 and its cell; the cell is -1, -1 for none. Only where ends are looked
    # for.
    best: int
    best_t: int
    best_q: int
    dropped: bool
    cigar: list[tuple[int, int]]  # length and operation (0 M, 1 I, 2 D)


def plain_alignment(
    target: NDArray[np.uint8],
    query: NDArray[np.uint8],
    band: int,
    settings: MapSettings,
    zdrop: int | None = None,
    right: bool = False,
    to_corner: bool = True,
) -> PairAlignment:
    """Align two stretches cell by cell; the definition, and what the vectors are tested against.

    Parameters
    ----------
    target, query : uint8
        Codes.
    band : int
    settings : MapSettings
        Scores.
    zdrop : int, optional
        Look for the best cell, and stop at a drop of more than this.
    right : bool
        Of equal values take the last.
    to_corner : bool
        The path begins at the corner, unless the alignment was dropped; else at the best cell.
    """
    n, m = len(target), len(query)
    s = settings
    opens, extends = (s.q, s.q2), (s.e, s.e2)
    edge = [0] + [-min(s.q + s.e * i, s.q2 + s.e2 * i) for i in range(1, max(n, m) + 2)]
    score: dict[tuple[int, int], int] = {}
    gaps: dict[tuple[int, int], list[int]] = {}
    cells: dict[tuple[int, int], tuple[int, list[bool]]] = {}
    best, best_t, best_q, dropped = 0, -1, -1, False
    for d in range(n + m - 1):
        first = max(0, d - m + 1, (d - band + 1) // 2)
        last = min(n - 1, d, (d + band) // 2)
        if first > last:
            dropped = True
            break
        for i in range(first, last + 1):
            j = d - i
            diagonal = score[i - 1, j - 1] if i and j else edge[max(i, j)]
            above = _neighbour(score, gaps, edge, (i - 1, j), diagonal, s)
            beside = _neighbour(score, gaps, edge, (i, j - 1), diagonal, s)
            z = diagonal + _base_score(int(target[i]), int(query[j]), s)
            state = 0
            values = [above[0], beside[1], above[2], beside[3]]
            for k, value in enumerate(values, 1):
                if value > z or (right and value == z):
                    z, state = value, k
            on = [
                value - z + opens[k // 2] > 0 or (right and value - z + opens[k // 2] == 0)
                for k, value in enumerate(values)
            ]
            score[i, j] = z
            gaps[i, j] = [max(z - opens[k // 2], value) - extends[k // 2] for k, value in enumerate(values)]
            cells[i, j] = state, on
        if zdrop is not None:
            here = max(score[i, d - i] for i in range(first, last + 1))
            t = _chosen(first, last, [score[i, d - i] == here for i in range(first, last + 1)])
            if here > best:
                best, best_t, best_q = here, t, d - t
            elif t >= best_t and d - t >= best_q and best - here > zdrop + s.e2 * abs((t - best_t) - (d - t - best_q)):
                dropped = True
                break
    corner = score.get((n - 1, m - 1), -(1 << 30)) if not dropped else -(1 << 30)
    if to_corner and not dropped:
        path = _path(cells, n - 1, m - 1)
    else:
        path = _path(cells, best_t, best_q) if best_t >= 0 and best_q >= 0 else []
    return PairAlignment(corner, best, best_t, best_q, dropped, path)


def _neighbour(
    score: dict[tuple[int, int], int],
    gaps: dict[tuple[int, int], list[int]],
    edge: list[int],
    cell: tuple[int, int],
    diagonal: int,
    s: MapSettings,
) -> list[int]:
    """Gaps of a neighbouring cell; beyond the edge or the band they can only be opened."""
    i, j = cell
    if cell in score:
        return gaps[cell]
    value = edge[max(i, j) + 1] if i < 0 or j < 0 else diagonal - s.q - s.e
    return [value - s.q - s.e, value - s.q - s.e, value - s.q2 - s.e2, value - s.q2 - s.e2]


def _base_score(a: int, b: int, s: MapSettings) -> int:
    if a > 3 or b > 3:
        return N_SCORE
    return s.match if a == b else -s.mismatch


def _chosen(first: int, last: int, is_best: list[bool]) -> int:
    """Choose one of the best cells of an anti-diagonal."""
    n = last - first + 1
    if is_best[-1] or n == 1:
        return last
    whole = 4 * ((n - 1) // 4)
    order = [i for lane in range(4) for i in range(lane, whole, 4)] + list(range(whole, n - 1))
    return first + next(i for i in order if is_best[i])


def _path(cells: dict[tuple[int, int], tuple[int, list[bool]]], i: int, j: int) -> list[tuple[int, int]]:
    ops: list[int] = []
    came = 0
    while i >= 0 and j >= 0:
        if (i, j) in cells:
            state, on = cells[i, j]
            if came == 0 or not on[came - 1]:
                came = state
        else:  # out of the band: above it or below
            came = 2 if i < j else 1
        op = 0 if came == 0 else (2 if came in (1, 3) else 1)
        ops.append(op)
        i -= op != 1
        j -= op != 2
    ops += [2] * (i + 1) + [1] * (j + 1)
    merged: list[tuple[int, int]] = []
    for op in reversed(ops):
        if merged and merged[-1][1] == op:
            merged[-1] = merged[-1][0] + 1, op
        else:
            merged.append((1, op))
    return merged
