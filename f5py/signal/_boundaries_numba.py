"""Jitted bookkeeping of the boundaries between events, block by block of a read; see `f5py.signal._events_numba`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.bits import lowest_bit
from f5py.jit.kernel import exact_inner
from f5py.jit.simd import LANES
from f5py.signal._peaks_numba import FLOOR, LONG, POSITION


class Boundaries(NamedTuple):
    """Where the open event of a read begins, and the boundaries behind it that have been found in a block."""

    positions: NDArray[np.int64]
    sums: NDArray[np.float64]  # of samples before each
    squares: NDArray[np.float64]
    last: NDArray[np.int64]  # shape (1,): which is the last one


class OpenPeaks(NamedTuple):
    """Peaks of both detectors that are open at the end of a block; they may become boundaries later."""

    positions: NDArray[np.int64]  # shape (2,): -1 if there is none
    sums: NDArray[np.float64]  # shape (4,): of samples before each, then of squares


@exact_inner
def append_boundary(position, total, square_total, boundaries):
    """Add a boundary, with the sums before it."""
    last = boundaries.last[0] + 1
    boundaries.positions[last] = position
    boundaries.sums[last] = total
    boundaries.squares[last] = square_total
    boundaries.last[0] = last


@exact_inner
def take_boundaries(begin, end, marks, sums, peaks, boundaries):
    """Add the boundaries of a block, before them perhaps a peak that was open when the block began."""
    first = 0 if peaks.positions[0] < peaks.positions[1] else 1
    for k in range(2):
        which = first ^ k
        at = peaks.positions[which]
        if at > boundaries.positions[boundaries.last[0]] and marks[at >> 6] >> np.uint64(at & 63) & np.uint64(1):
            append_boundary(at, peaks.sums[which], peaks.sums[2 + which], boundaries)
    to = sums.lead - begin
    for word in range(begin >> 6, (end + 63) >> 6):
        left = marks[word]
        while left:
            position = 64 * word + lowest_bit(left)
            left &= left - np.uint64(1)
            append_boundary(position, sums.values[to + position], sums.squares[to + position], boundaries)


@exact_inner
def fill_events(boundaries, n, start, mean, stdv):
    """Fill the events between boundaries, the first one being event `n`; return how many there are then, or -1.

    The last boundary becomes the first one.
    """
    count = boundaries.last[0]
    if n < 0 or n + count > mean.shape[0]:
        boundaries.last[0] = 0
        return -1
    positions, sums, squares = boundaries.positions, boundaries.sums, boundaries.squares
    for j in range(count):  # vector code
        e = np.uint64(j)
        width = np.float32(positions[e + np.uint64(1)] - positions[e])
        mean[np.uint64(n) + e] = np.float32(sums[e + np.uint64(1)] - sums[e]) / width
    if start.shape[0] > 0:
        for e in range(count):
            start[n + e] = positions[e]
            width = np.float32(positions[e + 1] - positions[e])
            variance = np.float32(squares[e + 1] - squares[e]) / width - mean[n + e] * mean[n + e]
            stdv[n + e] = np.sqrt(max(variance, np.float32(0.0)))
    positions[0], sums[0], squares[0] = positions[count], sums[count], squares[count]
    boundaries.last[0] = 0
    return n + count


@exact_inner
def keep_open_peaks(begin, end, states, sums, peaks):
    """Note the peaks that are open at the end of a block, given the states in which lane 0 goes on there."""
    for which in range(2):
        detector = which * LONG
        position = end + np.int64(states[(detector + POSITION) * LANES])
        if not states[(detector + FLOOR) * LANES] < 0:
            peaks.positions[which] = -1
        elif position >= begin:  # else it was open before, too
            peaks.positions[which] = position
            peaks.sums[which] = sums.values[sums.lead + position - begin]
            peaks.sums[2 + which] = sums.squares[sums.lead + position - begin]
