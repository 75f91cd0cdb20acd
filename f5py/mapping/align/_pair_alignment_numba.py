"""The jitted call of the aligner for two stretches; see `f5py.mapping.align.base_alignment`."""

from __future__ import annotations

import numpy as np

from f5py.jit.kernel import exact_kernel
from f5py.mapping._sorting_numba import grown
from f5py.mapping.align._alignment_numba import PAD, fill, way_back
from f5py.mapping.settings import MAX_MATRIX_CELLS

#: Score of what has not been computed.
UNREACHED = -(1 << 30)
# How a pair of stretches is aligned.
EXTEND, EXTEND_BACKWARDS, GLOBAL, GLOBAL_WITH_DROPS = range(4)


@exact_kernel
def align_pair(reference, r, n, strand, s, m, kind, band, zdrop, integers, ops, n_ops):
    """Align ``reference[r:r + n]`` to ``strand[s:s + m]`` and append the path to `ops`.

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
