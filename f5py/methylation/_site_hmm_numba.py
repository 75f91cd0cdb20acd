"""Jitted forward and backward algorithm with the states of sites; see `f5py.methylation.per_site` for the mathematics.

State arrays hold, for k-mer j and lane l of L, element ``L * j + l``. They are in double precision and probability
space: a row's true values are the stored ones times ``exp(scale)``, and no state that matters lies more than a few
hundred orders of e below the row's greatest, as the last k-mer can be reached from every other within a row.

With independent noise an event has one density in a k-mer and lane. With correlated noise it has three, by where the
path comes from (`f5py.methylation.correlated`); then flows that come from match states are kept apart from the others.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.hmm import P_BAD, P_FROM_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.jit import simd
from f5py.jit.kernel import kernel
from f5py.methylation._calls_numba import LOG2_E
from f5py.methylation._hmm_numba import background, log2_density


class Densities(NamedTuple):
    """Densities of a row's event in all k-mers and lanes; the arrays' length is a multiple of 16.

    `stay` and `step` are used with correlated noise only. `w` has the residuals, as many as there are lanes further on,
    of this row and `w_before` of the row before.
    """

    free: NDArray[np.float32]
    stay: NDArray[np.float32]
    step: NDArray[np.float32]
    w: NDArray[np.float32]
    w_before: NDArray[np.float32]


@kernel
def _residual(x, inverse, offset, at):
    """How far event mean `x` is from the level of a k-mer, in the unit of the loops and double precision."""
    return np.float64(x) * np.float64(inverse[at]) + np.float64(offset[at])


@kernel
def _log_density(square, peak, constant, is_student):
    """Natural logarithm of the density for a squared residual; `peak` and `constant` are the k-mer's."""
    if is_student:
        return math.log(np.float64(peak)) - 4.0 * math.log1p(square)
    return (np.float64(constant) - square) / LOG2_E


@kernel
def _room(size, lanes, noise):
    """Arrays for the densities of `size` k-mers and lanes."""
    n = 0 if noise is None else size
    wide = 0 if noise is None else size + lanes
    return Densities(
        np.empty(size, np.float32), np.empty(n, np.float32), np.empty(n, np.float32),
        np.zeros(wide, np.float32), np.zeros(wide, np.float32),
    )  # fmt: skip


@kernel
def _fourth_power(value):
    square = value * value
    return square * square


@kernel
def _fill_densities(x, before, lanes, inverse, offset, constant, noise, densities):
    """Fill the densities of event mean `x`, after the event `before`."""
    event = simd.splat(x)
    if noise is None:
        for at in range(0, densities.free.shape[0], simd.LANES):
            z = simd.madd(event, simd.load(inverse, at), simd.load(offset, at))
            simd.store(densities.free, at, simd.exp2(simd.load(constant, at) - z * z))
    else:
        one = simd.splat(np.float32(1.0))
        for at in range(0, densities.free.shape[0], simd.LANES):
            slope = simd.load(inverse, at)
            shift = simd.load(offset, at)
            simd.store(densities.w, lanes + at, simd.madd(event, slope, shift))
            simd.store(densities.w_before, lanes + at, simd.madd(simd.splat(before), slope, shift))
        for at in range(0, densities.free.shape[0], simd.LANES):
            w = simd.load(densities.w, lanes + at)
            stay = simd.madd(
                simd.load(densities.w_before, lanes + at), simd.splat(np.float32(noise.stay_before)),
                w * simd.splat(np.float32(noise.stay_now)),
            )  # fmt: skip
            step = simd.madd(
                simd.load(densities.w_before, at), simd.splat(np.float32(noise.step_before)),
                w * simd.splat(np.float32(noise.step_now)),
            )  # fmt: skip
            if noise.is_student:
                peak = simd.load(inverse, at)
                stay = peak * _fourth_power(simd.reciprocal(simd.madd(stay, stay, one)))
                step = peak * _fourth_power(simd.reciprocal(simd.madd(step, step, one)))
                free = peak * _fourth_power(
                    simd.reciprocal(simd.madd(w * simd.splat(np.float32(noise.square)), w, one))
                )
            else:
                top = simd.load(constant, at)
                stay = simd.exp2(top - stay * stay)
                step = simd.exp2(top - step * step)
                free = simd.exp2(top - w * w)
            simd.store(densities.stay, at, stay * simd.splat(np.float32(noise.stay_weight)))
            simd.store(densities.step, at, step * simd.splat(np.float32(noise.step_weight)))
            simd.store(densities.free, at, free * simd.splat(np.float32(noise.free_weight)))


@kernel
def _entry(x, inverse, offset, constant, noise):
    """Natural logarithm of the density of event mean `x` at the entry, where the exponent may be any."""
    if noise is None:
        return log2_density(x, inverse, offset, constant, 0)
    w = _residual(x, inverse, offset, 0)
    density = _log_density(noise.square * w * w, inverse[0], constant[0], noise.is_student)
    return (density + math.log(noise.free_weight)) * LOG2_E


@kernel
def _average(values, bit):
    """Forget the state that `bit` stands for: both lanes of a pair get the mean of the two."""
    for lane in range(values.shape[0]):
        other = lane ^ bit
        if lane < other:
            mean = 0.5 * (values[lane] + values[other])
            values[lane] = mean
            values[other] = mean


@kernel
def forward(x, p_stay, handover, lanes, inverse, offset, constant, noise, scales, ends, kept):
    """Fill scales and end masses of every row, and the flow out of the last k-mer before each handover of bit 0.

    Parameters
    ----------
    x : float32, shape (n_events,)
    handover : int64, shape (n_kmers,)
        The lane bit that changes from one site to another on the way into a k-mer, or 0.
    noise : Terms or None
    scales : float64, shape (n_events,); ends : float64, shape (n_events, lanes)
    kept : float64, shape (n_handovers, n_events, 3, lanes)
        Flow towards the match state in the next row, from match states and from others, and towards the skip state in
        the same row. With independent noise all of the first two is in the first.
    """
    p_step = 1.0 - p_stay - P_SKIP - P_BAD
    n_kmers = handover.shape[0]
    size = n_kmers * lanes
    densities = _room(inverse.shape[0], lanes, noise)
    match = np.zeros(size)
    wrong = np.zeros(size)
    arriving = np.zeros(size)  # at each k-mer's match state, from the k-mer before in the row before
    leaving = np.zeros(size)
    arriving_free = np.zeros(0 if noise is None else size)  # what of it is not from match states
    leaving_free = np.zeros(0 if noise is None else size)
    skipping = np.zeros(lanes)  # to the k-mer's skip state from the k-mer before in the same row
    scale = 0.0
    greatest = 0.0
    for row in range(x.shape[0]):
        _fill_densities(x[row], x[max(row - 1, 0)], lanes, inverse, offset, constant, noise, densities)
        # No site's base lies under the first k-mer, so all lanes enter alike. The exponent may be far below what the
        # emissions hold, and the first event has no other way in.
        entry = (_entry(x[row], inverse, offset, constant, noise) + background(row)) / LOG2_E
        new_scale = entry if row == 0 else max(scale + math.log(greatest), entry)
        change = 0.0 if row == 0 else math.exp(scale - new_scale)
        scale = new_scale
        scales[row] = scale
        entered = math.exp(entry - scale)
        greatest = 0.0
        skipping[:] = 0.0
        handovers = 0
        for j in range(n_kmers):
            base = j * lanes
            last = j + 1 == n_kmers
            for lane in range(lanes):
                at = base + lane
                bad = change * P_BAD * (match[at] + wrong[at])
                if noise is None:
                    into = p_stay * match[at] + P_FROM_BAD * wrong[at] + arriving[at]
                    good = np.float64(densities.free[at]) * change * into
                else:
                    into = np.float64(densities.free[at]) * (P_FROM_BAD * wrong[at] + arriving_free[at])
                    into += np.float64(densities.stay[at]) * p_stay * match[at]
                    good = change * (into + np.float64(densities.step[at]) * arriving[at])
                if j == 0:
                    good += entered
                skipped = skipping[lane]
                match[at] = good
                wrong[at] = bad
                greatest = max(greatest, good + bad)
                if last:
                    ends[row, lane] = good + bad + skipped
                else:
                    if noise is None:
                        leaving[at + lanes] = p_step * good + P_FROM_BAD * bad + P_FROM_SKIP * skipped
                    else:
                        leaving[at + lanes] = p_step * good
                        leaving_free[at + lanes] = P_FROM_BAD * bad + P_FROM_SKIP * skipped
                    skipping[lane] = P_SKIP * good + P_FROM_BAD * bad + P_SKIP_SELF * skipped
            if not last and handover[j + 1] > 0:
                after = slice(base + lanes, base + 2 * lanes)
                if handover[j + 1] == 1:
                    kept[handovers, row, 0] = leaving[after]
                    if noise is not None:
                        kept[handovers, row, 1] = leaving_free[after]
                    kept[handovers, row, 2] = skipping
                    handovers += 1
                _average(leaving[after], handover[j + 1])
                if noise is not None:
                    _average(leaving_free[after], handover[j + 1])
                _average(skipping, handover[j + 1])
        arriving, leaving = leaving, arriving
        arriving_free, leaving_free = leaving_free, arriving_free


@kernel
def backward(x, p_stay, handover, lanes, inverse, offset, constant, noise, scales, kept, reference, flows):
    """Add up, for every handover of bit 0, the probability of all paths through it by lane, over ``exp(reference)``.

    Parameters
    ----------
    noise : Terms or None
    scales, kept
        As `forward` has filled them.
    flows : float64, shape (n_handovers, lanes)
        Filled.
    """
    p_step = 1.0 - p_stay - P_SKIP - P_BAD
    n_events = x.shape[0]
    n_kmers = handover.shape[0]
    size = n_kmers * lanes
    densities = _room(inverse.shape[0], lanes, noise)
    match = np.zeros(size)  # what may follow each match state of the row below, times that row's density
    wrong = np.zeros(size)
    onward = np.zeros(lanes)  # `match` of the row below one k-mer on
    onward_free = np.zeros(lanes)  # the same after a bad event or a skip
    before = np.zeros(lanes)
    skipping = np.zeros(lanes)  # what may follow the skip state one k-mer on in the same row
    flows[:] = 0.0
    scale = 0.0
    greatest = 0.0
    for row in range(n_events - 1, -1, -1):
        end = background(n_events - 1 - row) / LOG2_E
        below = scale
        scale = end if row == n_events - 1 else max(below + math.log(greatest), end)
        change = 0.0 if row == n_events - 1 else math.exp(below - scale)
        ended = math.exp(end - scale)
        if noise is None:
            _fill_densities(x[row], x[row], lanes, inverse, offset, constant, noise, densities)
        else:  # those of the row below, which `match` is without
            _fill_densities(x[min(row + 1, n_events - 1)], x[row], lanes, inverse, offset, constant, noise, densities)
        # The product of two scales may be out of range where that of the two masses is not: a half for each of them.
        weight_below = 0.0 if row == n_events - 1 else math.exp(0.5 * (scales[row] + below - reference))
        weight = math.exp(0.5 * (scales[row] + scale - reference))
        greatest = 0.0
        handovers = kept.shape[0]
        for j in range(n_kmers - 1, -1, -1):
            base = j * lanes
            last = j + 1 == n_kmers
            if last:
                onward[:] = 0.0
                onward_free[:] = 0.0
                skipping[:] = 0.0
            elif handover[j + 1] > 0:
                _average(onward, handover[j + 1])
                if noise is not None:
                    _average(onward_free, handover[j + 1])
                _average(skipping, handover[j + 1])
                if handover[j + 1] == 1:
                    handovers -= 1
                    for lane in range(lanes):
                        flows[handovers, lane] += (kept[handovers, row, 0, lane] * weight_below) * (
                            onward[lane] * weight_below
                        ) + (kept[handovers, row, 2, lane] * weight) * (skipping[lane] * weight)
                        if noise is not None:
                            flows[handovers, lane] += (kept[handovers, row, 1, lane] * weight_below) * (
                                onward_free[lane] * weight_below
                            )
            for lane in range(lanes):
                at = base + lane
                skip = skipping[lane]
                finish = ended if last else 0.0
                bad = change * P_BAD * wrong[at]
                if noise is None:
                    same = change * match[at]
                    step = change * onward[lane]
                    before[lane] = match[at]
                    good = p_stay * same + bad + p_step * step + P_SKIP * skip + finish
                    good *= np.float64(densities.free[at])
                else:
                    stay = change * match[at] * np.float64(densities.stay[at])
                    step_on = change * onward[lane]
                    same = change * match[at] * np.float64(densities.free[at])
                    step = change * onward_free[lane]
                    before[lane] = match[at] * np.float64(densities.step[at])
                    onward_free[lane] = match[at] * np.float64(densities.free[at])
                    good = p_stay * stay + bad + p_step * step_on + P_SKIP * skip + finish
                match[at] = good
                wrong[at] = bad + P_FROM_BAD * (same + step + skip) + finish
                greatest = max(greatest, max(good, wrong[at]))
                skipping[lane] = P_FROM_SKIP * step + P_SKIP_SELF * skip + finish
            onward, before = before, onward
