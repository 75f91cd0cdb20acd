"""Jitted detectors of the peaks of t-statistics; see `f5py.signal.events` for what they compute.

Sixteen stretches of a read are gone through side by side, each in a lane of the vectors: what noise makes hard to
foresee for one of them needs no branches for all. The state in which the detectors enter a stretch is not known, but is
soon forgotten: a lane begins `WARM_UP` positions earlier, as if the read began there, and when all have come to their
ends each compares the state that it had at its begin with that in which the lane before has ended. As long as any
differ, all go through their stretches again, each from the state of the lane before.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit import simd
from f5py.jit.bits import lowest_bit
from f5py.jit.kernel import exact_inner

#: Positions that are gone through at a time: their statistics stay in the first-level cache.
CHUNK = 64
#: Positions before a stretch, after which the detectors' state is nearly always that of the whole read.
WARM_UP = CHUNK

_LARGEST = np.float32(np.finfo(np.float32).max)
#: In a peak nothing falls below this.
_NEVER = np.float32(-np.inf)
#: Elements of `Stretches.states`: of each of the two detectors the smallest statistic since its last peak or, in a
#: peak, the greatest one of it; how far below that the statistic is taken, 0 or, in a peak, `_NEVER`; the peak's
#: position; whether the statistic has fallen by the peak height since, 0 or 1. Up to where the long one is silenced.
VALUE, FLOOR, POSITION, VALID = 0, 1, 2, 3
LONG, SILENT_TO, N_STATES = 4, 8, 9


class Stretches(NamedTuple):
    """Sixteen stretches, and the boundaries that are found in them. Positions are counted from a stretch's begin."""

    begin: NDArray[np.int64]  # shape (16,): first position of each in the read
    limit: NDArray[np.float32]  # shape (16,): boundaries that show themselves from here on are not taken
    states: NDArray[np.float32]  # shape (N_STATES * 16,): those of the detectors, lane by lane
    ended: NDArray[np.uint16]  # shape (2 * CHUNK,): scratch space for the lanes in which peaks end
    marks: NDArray[np.uint64]  # a bit for each position of the read, set at boundaries


@exact_inner
def forget(states):
    """Make the state that of a read's begin, in all lanes."""
    for i in range(states.shape[0]):
        row = i // simd.LANES
        states[i] = _LARGEST if row in (VALUE, LONG + VALUE) else -_LARGEST if row == SILENT_TO else np.float32(0.0)


@exact_inner
def copy_states(states, target):
    """Copy the states of all lanes."""
    for i in range(states.shape[0]):  # compiled ten times faster than an assignment to a slice
        target[i] = states[i]


@exact_inner
def shift(states, distance, shifted):
    """Fill the states in which lanes go on where the lane before has ended, the first one where the last has.

    Parameters
    ----------
    states : float32, shape (N_STATES * 16,)
    distance : int
        Of the begins of two stretches.
    shifted : float32, shape (N_STATES * 16,)
        Filled.
    """
    for row in range(N_STATES):
        is_position = row in (POSITION, LONG + POSITION, SILENT_TO)
        for lane in range(simd.LANES):
            value = states[row * simd.LANES + (lane - 1) % simd.LANES]
            shifted[row * simd.LANES + lane] = value - np.float32(distance) if is_position else value


@exact_inner
def transpose(rows, columns, between):
    """Fill `columns` with the elements of rows, column by column of sixteen rows.

    Parameters
    ----------
    rows, columns : float32, shape (n * 16 * CHUNK,)
    between : float32, shape (16 * 16,)
        Scratch space.
    """
    for first in range(0, rows.shape[0], simd.LANES * CHUNK):
        for column in range(0, CHUNK, simd.LANES):
            for i in range(4):
                _mix(rows, first + column + i * CHUNK, 4 * CHUNK, between, 4 * i * simd.LANES)
            for i in range(4):
                _mix(between, i * simd.LANES, 4 * simd.LANES, columns, first + (column + 4 * i) * simd.LANES)


@exact_inner
def _mix(source, at, stride, target, to):
    """Bring the lanes of four rows in turn into four others: of sixteen, every fourth one.

    More than four would be in registers and out of them again where there are sixteen of eight lanes.
    """
    a, b = simd.load(source, at), simd.load(source, at + stride)
    c, d = simd.load(source, at + 2 * stride), simd.load(source, at + 3 * stride)
    e, f, g, h = simd.mixed_low(a, c), simd.mixed_high(a, c), simd.mixed_low(b, d), simd.mixed_high(b, d)
    simd.store(target, to, simd.mixed_low(e, g))
    simd.store(target, to + simd.LANES, simd.mixed_high(e, g))
    simd.store(target, to + 2 * simd.LANES, simd.mixed_low(f, h))
    simd.store(target, to + 3 * simd.LANES, simd.mixed_high(f, h))


@exact_inner
def copy_lane(states, lane, target):
    """Copy the state of a lane."""
    for row in range(N_STATES):
        target[row * simd.LANES + lane] = states[row * simd.LANES + lane]


@exact_inner
def is_same(a, b, lane):
    """Return whether two states at the begin of a lane's stretch lead to the same boundaries."""
    for detector in (0, LONG):
        for row in (VALUE, FLOOR, VALID):
            at = (detector + row) * simd.LANES + lane
            if a[at] != b[at]:
                return False
        at = (detector + POSITION) * simd.LANES + lane
        if a[at] != b[at] and a[(detector + FLOOR) * simd.LANES + lane] < 0:
            return False
    at = SILENT_TO * simd.LANES + lane
    return a[at] == b[at] or (a[at] < 0 and b[at] < 0)


@exact_inner
def _mark(positions, stretches):
    """Set the marks of the boundaries of a chunk.

    Four steps are gone through at a time, because it is hard to foresee how many bits are set.
    """
    ended, marks = stretches.ended, stretches.marks
    for step in range(0, 2 * CHUNK, 4):
        left = np.uint64(0)
        for i in range(4):
            left |= np.uint64(ended[np.uint64(step + i)]) << np.uint64(16 * i)
        while left:
            bit = np.uint64(lowest_bit(left))
            left &= left - np.uint64(1)
            position = positions[np.uint64(step * simd.LANES) + bit]
            at = np.uint64(stretches.begin[bit & np.uint64(simd.LANES - 1)] + np.int64(position))
            marks[at >> np.uint64(6)] |= np.uint64(1) << (at & np.uint64(63))


@exact_inner
def go_through(statistics, first, parameters, stretches):
    """Lead the detectors along `CHUNK` positions of all stretches.

    Parameters
    ----------
    statistics : float32, shape (2 * 16 * CHUNK,)
        Position by position, of all lanes: those of the short window, then those of the long one. They are overwritten.
    first : int
        The first position.
    parameters : f5py.signal.events.EventParameters
        The peak height is greater than 0.
    stretches : Stretches
        States are changed, and boundaries marked.
    """
    states = stretches.states
    limit = simd.load(stretches.limit, 0)
    zero, one, never = simd.splat(np.float32(0.0)), simd.splat(np.float32(1.0)), simd.splat(_NEVER)
    largest, height = simd.splat(_LARGEST), simd.splat(parameters.peak_height)
    fall = simd.splat(-parameters.peak_height)
    threshold, threshold_long = simd.splat(parameters.threshold_short), simd.splat(parameters.threshold_long)
    width = simd.splat(np.float32(parameters.window_short))
    half, half_long = (
        simd.splat(np.float32(parameters.window_short // 2)), simd.splat(np.float32(parameters.window_long // 2))
    )  # fmt: skip

    value = simd.load(states, VALUE * simd.LANES)
    position = simd.load(states, POSITION * simd.LANES)
    valid = simd.load(states, VALID * simd.LANES)
    value_long = simd.load(states, (LONG + VALUE) * simd.LANES)
    position_long = simd.load(states, (LONG + POSITION) * simd.LANES)
    valid_long = simd.load(states, (LONG + VALID) * simd.LANES)
    silent_to = simd.load(states, SILENT_TO * simd.LANES)
    # By how much the statistic must rise: to begin a peak, or to be its new top, 0. That tells where there is a peak.
    rise = simd.select(simd.gt(zero, simd.load(states, FLOOR * simd.LANES)), zero, height)
    rise_long = simd.select(simd.gt(zero, simd.load(states, (LONG + FLOOR) * simd.LANES)), zero, height)
    for step in range(CHUNK):
        now = simd.splat(np.float32(first + step))
        is_taken = simd.gt(limit, now)

        # What follows from the values before this step is found out from these: in a peak the value is the greater one
        # of the old and the new one, and at its top nothing falls or ends. So little waits for what is chosen.
        new = simd.load(statistics, step * simd.LANES)
        difference = new - value
        rises = simd.gt(difference, rise)
        no_peak = simd.gt(rise, zero)
        is_above = simd.either(simd.gt(value, threshold), simd.gt(new, threshold))
        high = simd.but_not(is_above, no_peak)
        falls = simd.both(high, simd.gt(fall, difference))
        is_valid = simd.both(high, simd.either(simd.gt(valid, zero), falls))
        ended = simd.but_not(simd.both(is_valid, simd.gt(now - position, half)), rises)
        lower = simd.both(no_peak, simd.gt(zero, difference))
        value = simd.select(simd.either(simd.either(rises, ended), lower), new, value)
        position = simd.select(rises, now, position)
        rise = simd.select(ended, height, simd.select(rises, zero, rise))
        valid = simd.select(ended, zero, simd.select(falls, one, valid))
        stretches.ended[np.uint64(step)] = simd.bits(simd.both(ended, is_taken))
        simd.store(statistics, step * simd.LANES, position)

        silent_to = simd.select(high, position + width, silent_to)
        value_long = simd.select(high, largest, value_long)
        rise_long = simd.select(high, height, rise_long)
        valid_long = simd.select(high, zero, valid_long)

        new = simd.load(statistics, (CHUNK + step) * simd.LANES)
        is_heard = simd.gt(now, silent_to)
        difference = new - value_long
        rises = simd.both(is_heard, simd.gt(difference, rise_long))
        no_peak = simd.gt(rise_long, zero)
        was_peak = simd.but_not(is_heard, no_peak)
        falls = simd.both(was_peak, simd.both(simd.gt(fall, difference), simd.gt(value_long, threshold_long)))
        is_valid = simd.both(was_peak, simd.either(simd.gt(valid_long, zero), falls))
        ended = simd.but_not(simd.both(is_valid, simd.gt(now - position_long, half_long)), rises)
        lower = simd.both(simd.both(is_heard, no_peak), simd.gt(zero, difference))
        value_long = simd.select(simd.either(simd.either(rises, ended), lower), new, value_long)
        position_long = simd.select(rises, now, position_long)
        rise_long = simd.select(ended, height, simd.select(rises, zero, rise_long))
        valid_long = simd.select(ended, zero, simd.select(falls, one, valid_long))
        stretches.ended[np.uint64(CHUNK + step)] = simd.bits(simd.both(ended, is_taken))
        simd.store(statistics, (CHUNK + step) * simd.LANES, position_long)
    simd.store(states, VALUE * simd.LANES, value)
    simd.store(states, FLOOR * simd.LANES, simd.select(simd.gt(rise, zero), zero, never))
    simd.store(states, POSITION * simd.LANES, position)
    simd.store(states, VALID * simd.LANES, valid)
    simd.store(states, (LONG + VALUE) * simd.LANES, value_long)
    simd.store(states, (LONG + FLOOR) * simd.LANES, simd.select(simd.gt(rise_long, zero), zero, never))
    simd.store(states, (LONG + POSITION) * simd.LANES, position_long)
    simd.store(states, (LONG + VALID) * simd.LANES, valid_long)
    simd.store(states, SILENT_TO * simd.LANES, silent_to)
    _mark(statistics, stretches)
