"""The jitted call of the aligner for two stretches; see `f5py.mapping.align.base_alignment`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.simd_int import LANES, WIDE
from f5py.mapping._sorting_numba import grown
from f5py.mapping.align._alignment_numba import PAD, fill, way_back
from f5py.mapping.align._narrow_alignment_numba import BEHIND, FRONT, NARROW, fill_narrow
from f5py.mapping.index.packed_bases import unpack
from f5py.mapping.settings import E2, MATCH, MAX_CELLS, Q2, E, Q

#: Score of what has not been computed.
UNREACHED = -(1 << 30)
#: Stretches up to this length, and matrices up to this size, are aligned in arrays that are there already.
ROOM_BASES, _ROOM_CELLS = 1024, 1 << 17
#: A perfect score, in units of `AlignmentScratch.lost`.
_LOST_UNIT = 256
# How a pair of stretches is aligned.
EXTEND, EXTEND_BACKWARDS, GLOBAL, GLOBAL_WITH_DROPS = range(4)


class Stretch(NamedTuple):
    """A stretch of the reference and one of a read's strand, and how they are aligned."""

    # r, n: the first base of the reference's and how many they are
    r: int
    n: int
    # s, m: the same of the strand's
    s: int
    m: int
    kind: int  # `EXTEND`, `EXTEND_BACKWARDS`, `GLOBAL` or `GLOBAL_WITH_DROPS`
    band: int  # cells on both sides of the diagonal
    zdrop: int  # how far a score may drop; see `f5py.mapping.align._alignment_numba.fill`


class KnownAlignments(NamedTuple):
    """Alignments computed before by another device, read by read."""

    keys: NDArray[np.int64]  # shape (n, 7): the fields of `Stretch`
    # shape (n, 7): what it returns: score, best, best_t, best_q, dropped, number of operations, -1 if there is no
    # result; and where these begin
    results: NDArray[np.int64]
    ops: NDArray[np.uint32]  # operations, the last one of the alignment first
    offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    cursor: NDArray[np.int64]  # shape (2,): the next one that may be wanted, and the end of the read's


class AlignmentScratch(NamedTuple):
    """Scratch arrays of an aligning thread."""

    target: NDArray[np.uint8]
    query: NDArray[np.uint8]
    state: NDArray[np.int8]
    h: NDArray[np.int32]
    rows: NDArray[np.int64]
    cells: NDArray[np.uint8]  # see `f5py.mapping.align._alignment_numba.fill`
    # shape (1,): what share of a perfect score the last stretches have lost, about, and a margin: how wide a band is
    # tried first
    lost: NDArray[np.int64]


@exact_kernel
def new_room():
    """Allocate the scratch of a thread."""
    return AlignmentScratch(
        np.empty(FRONT + ROOM_BASES + BEHIND, np.uint8),
        np.empty(FRONT + ROOM_BASES + BEHIND, np.uint8),
        np.empty(6 * (ROOM_BASES + PAD) + PAD, np.int8),
        np.empty(ROOM_BASES + PAD, np.int32),
        np.empty(2 * ROOM_BASES, np.int64),
        np.empty(_ROOM_CELLS, np.uint8),
        np.full(1, _LOST_UNIT // 2, np.int64),
    )


@exact_inner
def _find_made(made, stretch):
    """Find the alignment of a stretch, if it is among those that are yet to come; -1 if not."""
    keys = made.keys
    r, n, s, m, kind, band, zdrop = stretch
    for i in range(made.cursor[0], made.cursor[1]):
        if keys[i, 0] != r or keys[i, 1] != n or keys[i, 2] != s or keys[i, 3] != m or keys[i, 4] != kind:
            continue
        if keys[i, 5] == band and keys[i, 6] == zdrop and made.results[i, 5] >= 0:
            made.cursor[0] = i + 1
            return i
    return -1


@exact_inner
def _most_beyond(n, m, width, integers):
    """Bound the score of a global alignment that leaves the band ``|i - j| <= width``.

    Its gaps have more than `width` bases in all, and so have those on its way back to the corner, which lies within the
    band. The rest of the shorter sequence are matches at best.
    """
    there = width + 1
    most = np.int64(UNREACHED)
    for longer, shorter in ((n, m), (m, n)):
        back = there - (longer - shorter)
        gaps = min(integers[Q] + integers[E] * there, integers[Q2] + integers[E2] * there)
        gaps += min(integers[Q] + integers[E] * back, integers[Q2] + integers[E2] * back)
        most = max(most, integers[MATCH] * (longer - there) - gaps)
    return most


@exact_inner
def _width_for(n, m, band, score, integers):
    """Find the narrowest band in whole vectors that no alignment with this score leaves, or `band`."""
    width = LANES - 1
    end = min(band, max(n, m) - 1)
    while width < end and (abs(n - m) > width or _most_beyond(n, m, width, integers) >= score):
        width += LANES
    return width if width < end else band


@exact_kernel
def align_pair(reference, strand, stretch, integers, ops, n_ops, made, room):
    """Align a stretch and append its path to `ops`, or copy its alignment if that is in `made`.

    Return `ops` or a larger array, `n_ops`, and the results of `f5py.mapping.align._alignment_numba.fill`.

    Parameters
    ----------
    strand : uint8
        Codes of bases.
    ops : int64
        Operations, length << 4 | operation, of which there are `n_ops`.
    made : KnownAlignments
    """
    r, n, s, m, kind, band, zdrop = stretch
    ops = grown(ops, n_ops + n + m + 2)
    if n == 0 or m == 0:
        return ops, n_ops, UNREACHED, 0, -1, -1, False
    if 0 < integers[MAX_CELLS] < n * m:
        return ops, n_ops, UNREACHED, 0, -1, -1, True
    there = _find_made(made, stretch)
    if there >= 0:
        result = made.results[there]
        count = result[5]
        for i in range(count):
            at = i if kind == EXTEND_BACKWARDS else count - 1 - i
            ops[n_ops + i] = made.ops[result[6] + at]
        return ops, n_ops + count, result[0], result[1], result[2], result[3], result[4] != 0
    fits = max(n, m) <= ROOM_BASES
    target = room.target if fits else np.empty(FRONT + n + BEHIND, np.uint8)
    query = room.query if fits else np.empty(FRONT + m + BEHIND, np.uint8)
    if kind == EXTEND_BACKWARDS:
        unpack(reference, r, r + n, target, FRONT)
        for i in range(n // 2):
            target[FRONT + i], target[FRONT + n - 1 - i] = target[FRONT + n - 1 - i], target[FRONT + i]
        for j in range(m):
            query[FRONT + j] = strand[s + j]
    else:
        unpack(reference, r, r + n, target, FRONT)
        for j in range(m):
            query[FRONT + j] = strand[s + m - 1 - j]
    rows = room.rows if fits else np.empty(n + m, np.int64)
    cells = room.cells
    best = np.int64(0)
    best_t = np.int64(-1)
    best_q = np.int64(-1)
    dropped = False
    width = band
    is_done = False
    perfect = integers[MATCH] * min(n, m)
    if kind == GLOBAL:
        width = _width_for(n, m, band, perfect - perfect * room.lost[0] // _LOST_UNIT, integers)
        if width <= NARROW and width < band:
            width = NARROW
            if not fits:
                cells = np.empty(WIDE * (n + m), np.uint8)
            score = fill_narrow(target, n, query, m, integers, rows, cells)
            is_done = _most_beyond(n, m, width, integers) < score
            if not is_done:
                width = _width_for(n, m, band, score, integers)
    if not is_done:
        state = room.state if fits else np.empty(6 * (n + PAD) + PAD, np.int8)
        h = room.h if fits else np.empty(n + PAD, np.int32)
    while not is_done:
        size = min(n * m, (n + m) * min(n, m, width + 2)) + PAD
        cells = room.cells if size <= _ROOM_CELLS else np.empty(size, np.uint8)
        score, best, best_t, best_q, dropped = fill(
            target[FRONT:], n, query[FRONT:], m, width, integers, 1 if kind == EXTEND_BACKWARDS else 0, kind != GLOBAL,
            zdrop, state, h, rows, cells,
        )  # fmt: skip
        is_done = width == band or _most_beyond(n, m, width, integers) < score
        if not is_done:
            width = _width_for(n, m, band, score, integers)
    if kind == GLOBAL:
        lost = _LOST_UNIT * (perfect - score) // max(perfect, 1)
        room.lost[0] += (min(lost + _LOST_UNIT // 16, _LOST_UNIT) - room.lost[0]) >> 2
    if kind >= GLOBAL and not dropped:
        n_ops = way_back(rows, cells, n - 1, m - 1, n, m, width, False, ops, n_ops, 0)
    elif best_t >= 0 and best_q >= 0:
        n_ops = way_back(rows, cells, best_t, best_q, n, m, width, kind == EXTEND_BACKWARDS, ops, n_ops, 0)
    return ops, n_ops, score, best, best_t, best_q, dropped


@exact_inner
def join_ops(ops, begin, n_ops):
    """Merge the operation at `begin` with the one before if they are of one kind; return the new length."""
    if n_ops > begin and begin > 0 and (ops[begin] & 15) == (ops[begin - 1] & 15):
        ops[begin - 1] += ops[begin] >> 4 << 4
        for k in range(begin + 1, n_ops):
            ops[k - 1] = ops[k]
        n_ops -= 1
    return n_ops
