"""Alignment of two stretches cell by cell, also over introns: the definition of `f5py.mapping.align.base_alignment`."""

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
    cigar: list[tuple[int, int]]  # length and operation (0 M, 1 I, 2 D, 3 N)


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
    n = last - first + 1
    if is_best[-1] or n == 1:
        return last
    whole = 4 * ((n - 1) // 4)
    order = [i for lane in range(4) for i in range(lane, whole, 4)] + list(range(whole, n - 1))
    return first + next(i for i in order if is_best[i])


#: Donor and acceptor, and the bases that are good behind and before them: by direction, then on reversed targets.
_SITES = {
    (1, False): ("GT", "AG", "AG", "CT"), (2, False): ("CT", "AC", "AG", "CT"),
    (1, True): ("GA", "TG", "CT", "AG"), (2, True): ("CA", "TC", "CT", "AG"),
}  # fmt: skip


def plain_signals(
    target: NDArray[np.uint8],
    direction: int,
    backwards: bool,
    introns: list[tuple[int, int, int]],
    settings: MapSettings,
) -> tuple[list[int], list[int]]:
    """Scores of introns that begin behind, and end at, each base.

    Parameters
    ----------
    target : uint8
        Reversed if `backwards`.
    direction : int
        0 for none, 1 or 2.
    introns : list of (int, int, int)
        Annotated: first base and base behind the last one of the target as it is on the reference; strand.
    """
    n = len(target)
    if direction == 0:
        return [0] * n, [0] * n
    donors, acceptors = [-settings.non_canonical] * n, [-settings.non_canonical] * n
    text = "".join("ACGTN"[code] for code in target)
    donor, acceptor, behind, before = _SITES[direction, backwards]
    flank = -(settings.non_canonical // 2) if settings.splice_flank else 0
    for i in range(n - 4):
        if text[i + 1 : i + 3] == donor:
            donors[i] = 0 if text[i + 3] in behind else flank
    for i in range(2, n):
        if text[i - 1 : i + 1] == acceptor:
            acceptors[i] = 0 if text[i - 2] in before else flank
    on_strand = [(first, end) for first, end, strand in introns if strand == (1 if direction == 1 else -1)]
    if backwards:
        on_strand = [(n - end, n - first) for first, end in on_strand]
    for i in {first - 1 for first, _ in on_strand if first > 0}:
        donors[i] += settings.junction_bonus
    for i in {end - 1 for _, end in on_strand}:
        acceptors[i] += settings.junction_bonus
    return donors, acceptors


def plain_spliced_alignment(
    target: NDArray[np.uint8],
    query: NDArray[np.uint8],
    signals: tuple[list[int], list[int]],
    settings: MapSettings,
    zdrop: int | None = None,
    right: bool = False,
    to_corner: bool = True,
) -> PairAlignment:
    """Align two stretches over introns; parameters as of `plain_alignment`, without a band."""
    n, m, s = len(target), len(query), settings
    donors, acceptors = signals
    edge = [0] + [-min(s.q + s.e * i, s.q2) for i in range(1, max(n, m) + 2)]
    score = {(-1, -1): 0, **{(i, -1): edge[i + 1] for i in range(n)}, **{(-1, j): edge[j + 1] for j in range(m)}}
    deletion: dict[tuple[int, int], int] = {}
    insertion: dict[tuple[int, int], int] = {}
    intron: dict[tuple[int, int], int] = {}
    cells: dict[tuple[int, int], tuple[int, list[bool]]] = {}
    best, best_t, best_q, dropped = 0, -1, -1, False
    for d in range(n + m - 1):
        first, last = max(0, d - m + 1), min(n - 1, d)
        for i in range(first, last + 1):
            j = d - i
            lowest = -(1 << 40)
            a = deletion[i, j] = max(score[i - 1, j] - s.q, deletion.get((i - 1, j), lowest)) - s.e
            b = insertion[i, j] = max(score[i, j - 1] - s.q, insertion.get((i, j - 1), lowest)) - s.e
            donor = donors[i - 1] if i else 0
            c = intron[i, j] = max(score[i - 1, j] + donor - s.q2, intron.get((i - 1, j), lowest))
            z, state = score[i - 1, j - 1] + _base_score(int(target[i]), int(query[j]), s), 0
            for k, value in enumerate((a, b, c + acceptors[i]), 1):
                if value > z or (right and value == z):
                    z, state = value, k
            score[i, j] = z
            over = a - z + s.q, b - z + s.q, c - z + s.q2 - donors[i]
            cells[i, j] = state, [value > 0 or (right and value == 0) for value in over]
        if zdrop is not None:
            here = max(score[i, d - i] for i in range(first, last + 1))
            t = _chosen(first, last, [score[i, d - i] == here for i in range(first, last + 1)])
            if here > best:
                best, best_t, best_q = here, t, d - t
            elif t >= best_t and d - t >= best_q and best - here > zdrop:
                dropped = True
                break
    corner = -(1 << 30) if dropped else score[n - 1, m - 1]
    length = (s.q2 - s.q) // s.e - 1
    shortest = length + (s.q2 > s.q + s.e + length * s.e)
    if to_corner and not dropped:
        path = _path(cells, n - 1, m - 1, shortest)
    else:
        path = _path(cells, best_t, best_q, shortest) if best_t >= 0 and best_q >= 0 else []
    return PairAlignment(corner, best, best_t, best_q, dropped, path)


def _path(
    cells: dict[tuple[int, int], tuple[int, list[bool]]], i: int, j: int, shortest_intron: int | None = None
) -> list[tuple[int, int]]:
    """Path that ends at a cell; with `shortest_intron`, state 3 is an intron, as is a border gap of that length."""
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
        if came == 3 and shortest_intron:
            op = 3
        ops.append(op)
        i -= op != 1
        j -= op < 2
    ops += [3 if shortest_intron and i >= shortest_intron else 2] * (i + 1) + [1] * (j + 1)
    merged: list[tuple[int, int]] = []
    for op in reversed(ops):
        if merged and merged[-1][1] == op:
            merged[-1] = merged[-1][0] + 1, op
        else:
            merged.append((1, op))
    return merged
