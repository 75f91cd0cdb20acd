"""The jitted call of the aligner for two stretches; see `f5py.mapping.align.base_alignment`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_kernel
from f5py.mapping._sorting_numba import grown
from f5py.mapping.align._alignment_numba import PAD, fill, way_back
from f5py.mapping.settings import MAX_MATRIX_CELLS

#: Score of what has not been computed.
UNREACHED = -(1 << 30)
# How a pair of stretches is aligned.
EXTEND, EXTEND_BACKWARDS, GLOBAL, GLOBAL_WITH_DROPS = range(4)


class Made(NamedTuple):
    """Alignments that have been made elsewhere, read by read.

    Attributes
    ----------
    keys : int64, shape (n, 7)
        What `align_pair` is given: `r`, `n`, `s`, `m`, `kind`, `band` and `zdrop`.
    results : int64, shape (n, 7)
        What it returns: score, best, best_t, best_q, dropped, number of operations, -1 if there is no result; and where
        these begin.
    ops : uint32
        Operations, the last one of the alignment first.
    offsets : int64, shape (n_reads + 1,)
    cursor : int64, shape (2,)
        The next one that may be wanted, and the end of the read's.
    """

    keys: NDArray[np.int64]
    results: NDArray[np.int64]
    ops: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    cursor: NDArray[np.int64]


@exact_kernel
def _find_made(made, r, n, s, m, kind, band, zdrop):
    """The alignment of these stretches, if it is among those that are yet to come; -1 if not."""
    keys = made.keys
    for i in range(made.cursor[0], made.cursor[1]):
        if keys[i, 0] != r or keys[i, 1] != n or keys[i, 2] != s or keys[i, 3] != m or keys[i, 4] != kind:
            continue
        if keys[i, 5] == band and keys[i, 6] == zdrop and made.results[i, 5] >= 0:
            made.cursor[0] = i + 1
            return i
    return -1


@exact_kernel
def align_pair(reference, r, n, strand, s, m, kind, band, zdrop, integers, ops, n_ops, made):
    """Align ``reference[r:r + n]`` to ``strand[s:s + m]`` and append the path to `ops`, unless that has been `made`.

    Returns
    -------
    ops : int64
        The array, or a larger one.
    n_ops, score, best, best_t, best_q, dropped
        See `f5py.mapping.align._alignment_numba.fill`.
    """
    ops = grown(ops, n_ops + n + m + 2)
    if n == 0 or m == 0:
        return ops, n_ops, UNREACHED, 0, -1, -1, False
    if n * m > MAX_MATRIX_CELLS:
        return ops, n_ops, UNREACHED, 0, -1, -1, True
    there = _find_made(made, r, n, s, m, kind, band, zdrop)
    if there >= 0:
        result = made.results[there]
        count = result[5]
        for i in range(count):
            at = i if kind == EXTEND_BACKWARDS else count - 1 - i
            ops[n_ops + i] = made.ops[result[6] + at]
        return ops, n_ops + count, result[0], result[1], result[2], result[3], result[4] != 0
    target = np.empty(n + PAD, np.uint8)
    query = np.empty(m + PAD, np.uint8)
    if kind == EXTEND_BACKWARDS:
        for i in range(n):
            target[i] = reference[r + n - 1 - i]
        for j in range(m):
            query[j] = strand[s + j]
    else:
        for i in range(n):
            target[i] = reference[r + i]
        for j in range(m):
            query[j] = strand[s + m - 1 - j]
    state = np.empty(6 * (n + PAD) + PAD, np.int8)
    exact = kind != GLOBAL
    h = np.empty(n + PAD if exact else 0, np.int32)
    rows = np.empty(n + m, np.int64)
    cells = np.empty(min(n * m, (n + m) * min(n, m, band + 2)) + PAD, np.uint8)
    score, best, best_t, best_q, dropped = fill(
        target, n, query, m, band, integers, 1 if kind == EXTEND_BACKWARDS else 0, exact, zdrop, state, h, rows, cells
    )
    if kind >= GLOBAL and not dropped:
        n_ops = way_back(rows, cells, n - 1, m - 1, n, m, band, False, ops, n_ops)
    elif best_t >= 0 and best_q >= 0:
        n_ops = way_back(rows, cells, best_t, best_q, n, m, band, kind == EXTEND_BACKWARDS, ops, n_ops)
    return ops, n_ops, score, best, best_t, best_q, dropped


@exact_kernel
def join_ops(ops, begin, n_ops):
    """Merge the operation at `begin` with the one before if they are of one kind; return the new length."""
    if n_ops > begin and begin > 0 and (ops[begin] & 15) == (ops[begin - 1] & 15):
        ops[begin - 1] += ops[begin] >> 4 << 4
        for k in range(begin + 1, n_ops):
            ops[k - 1] = ops[k]
        n_ops -= 1
    return n_ops
