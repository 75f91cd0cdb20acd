r"""Chains of anchors that lie in the same order on read and reference.

The score of the best chain that ends at anchor i is (Li, Bioinformatics 34:3094, 2018)

.. math:: f(i) = \max(\mathit{span}_i,\ \max_{j<i} f(j) + \min(d_{ji}, \mathit{span}_j) - \gamma(|d^r_{ji} - d^q_{ji}|))

with d the smaller of the distances on reference and read and gamma the penalty of `settings.gap_penalties`. Chains are
then joined over gaps of up to the long bandwidth (Li, Bioinformatics 37:4572, 2021), where that covers more of the
read; for that part see `_chains_numba`.
"""

import numpy as np

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping.batch import MappingBatch
from f5py.mapping.settings import BW, MAX_ITER, MAX_SKIP, REACH_Q, REACH_T, SPLICED, Parameters
from f5py.threads.pool import WorkerPool, longest_first

_HIGH = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@exact_inner
def _gain(dr, dq, span, gap_penalty, of_introns):
    """Gain of a step over distances on reference and read, from an anchor with a span."""
    step = min(dr, dq)
    difference = abs(dr - dq)
    if difference > 0 or step > span:
        return min(span, step) - gap_penalty[difference + (of_introns if dr > dq else 0)]
    return min(span, step)


@exact_inner
def score_anchors(anchors, first, begin, end, integers, gap_penalty, scores, marks):
    """Score the best chain that ends at each anchor of one read or segment, and its predecessor.

    Anchors, x and y of all reads, are sorted by x within the read, which begins at `first`; no chain enters or leaves
    those from `begin` to `end`. Scores are filled: that of the best chain, and the index of the predecessor from the
    read's first anchor on, -1 for none; int32. `marks`, int32, is scratch.
    """
    x, y = anchors
    f, p = scores
    max_iter = integers[MAX_ITER]
    max_skip = integers[MAX_SKIP]
    bw = integers[BW]
    far = np.uint64(integers[REACH_T])
    reach = min(integers[REACH_T], integers[REACH_Q])
    of_introns = gap_penalty.shape[0] >> 1 if integers[SPLICED] else 0
    for i in range(end - begin):
        marks[i] = 0
    st = begin
    best_near = -1
    offset = begin - first
    for i in range(begin, end):
        xi = x[i]
        while x[st] >> _HIGH != xi >> _HIGH or xi > x[st] + far:
            st += 1
        if i - st > max_iter:
            st = i - max_iter
        qi = y[i] & 0xFFFFFFFF
        span = (y[i] >> 32) & 0xFF
        score = span
        parent = -1
        skipped = 0
        stopped = st - 1
        turn = i - begin
        for j in range(i - 1, st - 1, -1):
            dq = qi - (y[j] & 0xFFFFFFFF)
            if dq <= 0 or dq > reach:
                continue
            dr = np.int64(xi - x[j])
            if dr == 0:
                continue
            if abs(dr - dq) > bw:
                continue
            gain = _gain(dr, dq, (y[j] >> 32) & 0xFF, gap_penalty, of_introns) + f[j]
            if gain > score:
                score = gain
                parent = j
                if skipped > 0:
                    skipped -= 1
            elif marks[j - begin] == turn:
                skipped += 1
                if skipped > max_skip:
                    stopped = j
                    break
            if p[j] >= 0:
                marks[p[j] - offset] = turn
        if best_near < 0 or xi - x[best_near] > far:
            best_near = -1
            best = np.int64(-(1 << 40))
            for j in range(i - 1, st - 1, -1):
                if f[j] > best:
                    best = f[j]
                    best_near = j
        if best_near >= 0 and best_near < stopped:
            j = best_near
            dq = qi - (y[j] & 0xFFFFFFFF)
            dr = np.int64(np.int32((xi - x[j]) & _LOW))
            if dq > 0 and dq <= reach and dr != 0 and abs(dr - dq) <= bw:
                gain = _gain(dr, dq, (y[j] >> 32) & 0xFF, gap_penalty, of_introns) + f[j]
                if gain > score:
                    score = gain
                    parent = j
        f[i] = score
        p[i] = parent - first if parent >= 0 else -1
        if best_near < 0 or (xi - x[best_near] <= far and f[best_near] < score):
            best_near = i


@exact_kernel
def score_reads(queue, reads, anchors, offsets, integers, gap_penalty, scores):
    """Score the anchors of several reads; see `score_anchors`.

    Parameters
    ----------
    offsets : int64, shape (n_reads + 1,)
    """
    marks = np.empty(0, np.int32)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        begin = offsets[reads[i]]
        end = offsets[reads[i] + 1]
        if marks.shape[0] < end - begin:
            marks = np.empty(2 * (end - begin), np.int32)
        score_anchors(anchors, begin, begin, end, integers, gap_penalty, scores, marks)


def score_chains(batch: MappingBatch, parameters: Parameters, pool: WorkerPool) -> float:
    """Fill the scores and predecessors of all anchors; return the seconds summed over threads."""
    anchors = batch.anchors
    assert anchors is not None
    f, p = np.empty(len(anchors.x), np.int32), np.empty(len(anchors.x), np.int32)
    n_anchors = np.diff(anchors.offsets)
    seconds = pool.run(
        score_reads, longest_first(n_anchors, n_anchors > 0), (anchors.x, anchors.y), anchors.offsets,
        parameters.integers, parameters.gap_penalty, (f, p), order=batch.number,
    )  # fmt: skip
    batch.anchors = anchors._replace(f=f, p=p)
    return seconds
