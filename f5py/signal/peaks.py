"""Peak detectors of the t-statistics of event detection.

Sixteen stretches of a read are scanned side by side, one per vector lane, without branches that noise would make
unpredictable. The detectors' state at the start of a stretch is unknown but soon forgotten, so each lane starts
`WARM_UP` positions earlier. At the end each lane's state at its start is compared with the previous lane's final state.
While any differ, all stretches are scanned again, each from the final state of the previous lane.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit import simd
from f5py.jit.instructions import lowest_bit
from f5py.jit.kernel import exact_inner

#: Positions scanned at a time: their statistics stay in the first-level cache.
CHUNK = 64
#: Positions after which the detectors' state is nearly always that of the whole read.
WARM_UP = CHUNK

_LARGEST = np.float32(np.finfo(np.float32).max)
_NEVER = np.float32(-np.inf)
# Rows of `SignalStretches.states`, for the short detector and from `LONG` on for the long one:
VALUE = 0  # smallest statistic since the last peak or, in a peak, its maximum
FLOOR = 1  # 0, or `_NEVER` in a peak
POSITION = 2  # of the peak
VALID = 3  # 1 if the statistic has fallen by the peak height since, else 0
LONG = 4
SILENT_TO = 8  # position up to which the long detector is silenced
N_STATES = 9


class SignalStretches(NamedTuple):
    """Sixteen stretches and their boundaries; positions are relative to the stretch."""

    begin: NDArray[np.int64]  # shape (16,): first position in the read
    limit: NDArray[np.float32]  # shape (16,): boundaries found from here on are ignored
    states: NDArray[np.float32]  # shape (N_STATES * 16,): of the detectors, row by row
    ended: NDArray[np.uint16]  # shape (2 * CHUNK,): scratch space, lanes in which peaks end
    marks: NDArray[np.uint64]  # one bit per position of the read, set at boundaries


@exact_inner
def reset_states(states):
    """Reset all lanes to the state at the start of a read."""
    for i in range(states.shape[0]):
        row = i // simd.LANES
        states[i] = _LARGEST if row in (VALUE, LONG + VALUE) else -_LARGEST if row == SILENT_TO else np.float32(0.0)


@exact_inner
def copy_states(states, target):
    """Copy the states of all lanes."""
    for i in range(states.shape[0]):  # compiles faster than a slice
        target[i] = states[i]


@exact_inner
def shift_states(states, distance, shifted):
    """Fill `shifted` with the final state of each lane's previous lane, cyclically.

    `distance` is that of the starts of two stretches.
    """
    for row in range(N_STATES):
        is_position = row in (POSITION, LONG + POSITION, SILENT_TO)
        for lane in range(simd.LANES):
            value = states[row * simd.LANES + (lane - 1) % simd.LANES]
            shifted[row * simd.LANES + lane] = value - np.float32(distance) if is_position else value


@exact_inner
def transpose(rows, columns, between):
    """Transpose blocks of 16 rows of `CHUNK` elements; `between` is scratch space of 16 * 16 elements."""
    for first in range(0, rows.shape[0], simd.LANES * CHUNK):
        for column in range(0, CHUNK, simd.LANES):
            for i in range(4):
                _mix(rows, first + column + i * CHUNK, 4 * CHUNK, between, 4 * i * simd.LANES)
            for i in range(4):
                _mix(between, i * simd.LANES, 4 * simd.LANES, columns, first + (column + 4 * i) * simd.LANES)


@exact_inner
def _mix(source, at, stride, target, to):
    """Interleave the lanes of four rows; more rows at a time would not fit the registers of AVX2."""
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
def states_agree(a, b, lane):
    """Return whether two states at the start of a lane's stretch lead to the same boundaries."""
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
def _mark_chunk(positions, stretches):
    """Set the marks of a chunk's boundaries, four steps at a time as the number of bits is unpredictable."""
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
def advance_detectors(statistics, first, parameters, stretches):
    """Advance the detectors by `CHUNK` positions of all stretches, from `first` on, and mark boundaries.

    `statistics` (float32, shape (2 * 16 * CHUNK,)) are position by position, of all lanes: first of the short window,
    then of the long one. They are overwritten. The peak height must be greater than 0.
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
    # Rise needed to begin a peak; in a peak 0, for a new maximum.
    rise = simd.select(simd.gt(zero, simd.load(states, FLOOR * simd.LANES)), zero, height)
    rise_long = simd.select(simd.gt(zero, simd.load(states, (LONG + FLOOR) * simd.LANES)), zero, height)
    for step in range(CHUNK):
        now = simd.splat(np.float32(first + step))
        is_taken = simd.gt(limit, now)

        # Conditions use the values before this step, which shortens the dependency chain: in a peak the value is the
        # larger of old and new, and at its maximum nothing falls or ends.
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
    _mark_chunk(statistics, stretches)
