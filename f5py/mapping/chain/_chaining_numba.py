"""Jitted loops that score chains of anchors; see `f5py.mapping.chain.chaining`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping.settings import BW, MAX_ITER, MAX_SKIP, REACH_Q, REACH_T, SPLICED

_HIGH = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


class AnchorArrays(NamedTuple):
    """Anchors of reads, as `f5py.mapping.batch.Anchors` has them."""

    x: NDArray[np.uint64]  # shape (n,)
    y: NDArray[np.int64]  # shape (n,)


class ChainScores(NamedTuple):
    """Scores of chains, one element an anchor."""

    f: NDArray[np.int32]  # shape (n,): score of the best chain that ends there
    p: NDArray[np.int32]  # shape (n,): index of its predecessor from the first anchor of the read on, -1 for none


@exact_inner
def score_anchors(anchors, first, begin, end, integers, gap_penalty, scores, marks):
    """Score the best chain that ends at each anchor of one read or segment, and its predecessor.

    Parameters
    ----------
    anchors : AnchorArrays
        Of all reads, those of the read sorted by x.
    first : int
        The read's first anchor.
    begin, end : int
        The read's anchors, or those of a stretch that no chain enters or leaves.
    integers, gap_penalty
        `f5py.mapping.settings.Parameters`.
    scores : ChainScores
        Filled.
    marks : int32
        Scratch, one element an anchor; filled with 0 here.
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
            difference = abs(dr - dq)
            if difference > bw:
                continue
            step = min(dr, dq)
            span_j = (y[j] >> 32) & 0xFF
            gain = min(span_j, step)
            if difference > 0 or step > span_j:
                gain -= gap_penalty[difference + (of_introns if dr > dq else 0)]
            gain += f[j]
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
            difference = abs(dr - dq)
            if dq > 0 and dq <= reach and dr != 0 and difference <= bw:
                step = min(dr, dq)
                span_j = (y[j] >> 32) & 0xFF
                gain = min(span_j, step)
                if difference > 0 or step > span_j:
                    gain -= gap_penalty[difference + (of_introns if dr > dq else 0)]
                gain += f[j]
                if gain > score:
                    score = gain
                    parent = j
        f[i] = score
        p[i] = parent - first if parent >= 0 else -1
        if best_near < 0 or (xi - x[best_near] <= far and f[best_near] < score):
            best_near = i


@exact_kernel
def score_reads(queue, reads, anchors, offsets, integers, gap_penalty, scores):
    """`score_anchors` of reads, whose anchors stand between `offsets`.

    Parameters
    ----------
    anchors : AnchorArrays
        Of all reads.
    offsets : int64, shape (n_reads + 1,)
    integers, gap_penalty, scores
        See `score_anchors`.
    """
    marks = np.empty(0, np.int32)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        begin = offsets[reads[i]]
        end = offsets[reads[i] + 1]
        if marks.shape[0] < end - begin:
            marks = np.empty(2 * (end - begin), np.int32)
        score_anchors(anchors, begin, begin, end, integers, gap_penalty, scores, marks)
