"""Jitted forward and backward algorithm with the states of sites and correlated noise.

See `f5py.methylation.per_site` and `f5py.methylation.correlated` for the mathematics, and
`f5py.methylation._site_hmm_numba` for the arrays and their scales. Flows from match states are kept apart from the
others, as an event's density depends on where the path comes from. Loops run over all k-mers and lanes at once, but for
the chains of skips, which end where a lane bit is handed over from one site to another.
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
from f5py.methylation._hmm_numba import background


class Steps(NamedTuple):
    """The k-mers that densities of steps are for, and those that the steps come from; lengths are multiples of 16."""

    inverse: NDArray[np.float32]
    offset: NDArray[np.float32]
    constant: NDArray[np.float32]
    inverse_before: NDArray[np.float32]
    offset_before: NDArray[np.float32]


class Densities(NamedTuple):
    """Densities of a row's event in all k-mers and lanes; the arrays' length is a multiple of 16.

    `stay` and `step` are times the probability of that transition; `step` is after the same lane of the k-mer before.
    `cross` is so, too, but after the lane that differs in the bit that is handed over; it has the k-mers where one is.
    """

    free: NDArray[np.float32]
    stay: NDArray[np.float32]
    step: NDArray[np.float32]
    cross: NDArray[np.float32]


@kernel
def _steps(inverse, offset, constant, lanes):
    """The steps into all k-mers from the same lane."""
    size = inverse.shape[0]
    inverse_before, offset_before = np.zeros(size, np.float32), np.zeros(size, np.float32)
    inverse_before[lanes:] = inverse[: size - lanes]
    offset_before[lanes:] = offset[: size - lanes]
    return Steps(inverse, offset, constant, inverse_before, offset_before)


@kernel
def _crossings(inverse, offset, constant, lanes, handover, places):
    """The steps into the k-mers where a lane bit is handed over, from the lane with the other bit."""
    size = (places.shape[0] * lanes + simd.LANES - 1) // simd.LANES * simd.LANES
    found = Steps(
        np.zeros(size, np.float32), np.zeros(size, np.float32), np.zeros(size, np.float32),
        np.zeros(size, np.float32), np.zeros(size, np.float32),
    )  # fmt: skip
    for i in range(places.shape[0]):
        base = places[i] * lanes
        for lane in range(lanes):
            at = i * lanes + lane
            other = base - lanes + (lane ^ handover[places[i]])
            found.inverse[at] = inverse[base + lane]
            found.offset[at] = offset[base + lane]
            found.constant[at] = constant[base + lane]
            found.inverse_before[at] = inverse[other]
            found.offset_before[at] = offset[other]
    return found


@kernel
def _room(steps, crossings):
    size = steps.inverse.shape[0]
    return Densities(
        np.empty(size, np.float32), np.empty(size, np.float32), np.empty(size, np.float32),
        np.empty(crossings.inverse.shape[0], np.float32),
    )  # fmt: skip


@kernel
def _halve(densities, places, lanes):
    """Give both lanes that a step where a bit is handed over may come from a half of it."""
    for i in range(places.shape[0]):
        for lane in range(lanes):
            densities.step[places[i] * lanes + lane] *= np.float32(0.5)
            densities.cross[i * lanes + lane] *= np.float32(0.5)


@kernel
def _fourth_power(value):
    square = value * value
    return square * square


@kernel
def _fill_densities(x, before, p_stay, steps, crossings, noise, densities):
    """Fill the densities of event mean `x`, after the event `before`."""
    one = simd.splat(np.float32(1.0))
    event, event_before = simd.splat(x), simd.splat(before)
    stay_now, stay_before = simd.splat(np.float32(noise.stay_now)), simd.splat(np.float32(noise.stay_before))
    step_now, step_before = simd.splat(np.float32(noise.step_now)), simd.splat(np.float32(noise.step_before))
    square = simd.splat(np.float32(noise.square))
    stay_weight = simd.splat(np.float32(noise.stay_weight * p_stay))
    step_weight = simd.splat(np.float32(noise.step_weight * (1.0 - p_stay - P_SKIP - P_BAD)))
    free_weight = simd.splat(np.float32(noise.free_weight))
    has_step = noise.step_before != 0.0
    for at in range(0, densities.free.shape[0], simd.LANES):
        slope = simd.load(steps.inverse, at)
        shift = simd.load(steps.offset, at)
        w = simd.madd(event, slope, shift)
        stay = simd.madd(simd.madd(event_before, slope, shift), stay_before, w * stay_now)
        w_before = simd.madd(event_before, simd.load(steps.inverse_before, at), simd.load(steps.offset_before, at))
        step = simd.madd(w_before, step_before, w * step_now)
        if noise.is_student:  # three reciprocals by one
            d_stay = simd.madd(stay, stay, one)
            d_step = simd.madd(step, step, one)
            d_free = simd.madd(w * square, w, one)
            both = d_stay * d_step
            reciprocal = simd.reciprocal(both * d_free)
            free = slope * _fourth_power(reciprocal * both)
            reciprocal = reciprocal * d_free
            stay = slope * _fourth_power(reciprocal * d_step)
            step = slope * _fourth_power(reciprocal * d_stay)
        else:
            top = simd.load(steps.constant, at)
            stay = simd.exp2(top - stay * stay)
            free = simd.exp2(top - w * w)
            step = simd.exp2(top - step * step) if has_step else free  # else the residual is the same to the last bit
        simd.store(densities.stay, at, stay * stay_weight)
        simd.store(densities.step, at, step * step_weight)
        simd.store(densities.free, at, free * free_weight)
    for at in range(0, densities.cross.shape[0], simd.LANES):
        slope = simd.load(crossings.inverse, at)
        w = simd.madd(event, slope, simd.load(crossings.offset, at))
        w_before = simd.madd(
            event_before, simd.load(crossings.inverse_before, at), simd.load(crossings.offset_before, at)
        )
        step = simd.madd(w_before, step_before, w * step_now)
        if noise.is_student:
            step = slope * _fourth_power(simd.reciprocal(simd.madd(step, step, one)))
        else:
            step = simd.exp2(simd.load(crossings.constant, at) - step * step)
        simd.store(densities.cross, at, step * step_weight)


@kernel
def _entry(x, inverse, offset, constant, noise):
    """Base-two logarithm of the density of event mean `x` at the entry, where the exponent may be any."""
    w = np.float64(x) * np.float64(inverse[0]) + np.float64(offset[0])
    square = noise.square * w * w
    if noise.is_student:
        density = math.log(np.float64(inverse[0])) - 4.0 * math.log1p(square)
    else:
        density = (np.float64(constant[0]) - square) / LOG2_E
    return (density + math.log(noise.free_weight)) * LOG2_E


@kernel
def _average(values, first, lanes, bit):
    """Give both elements of each pair of lanes from `first` on the mean of the two; see `_site_hmm_numba`."""
    for lane in range(lanes):
        other = lane ^ bit
        if lane < other:
            mean = 0.5 * (values[first + lane] + values[first + other])
            values[first + lane] = mean
            values[first + other] = mean


@kernel
def forward_correlated(x, p_stay, handover, lanes, inverse, offset, constant, noise, scales, ends, kept):
    """Fill scales and end masses of every row, and the flow out of the last k-mer before each handover of bit 0.

    Parameters
    ----------
    noise : Terms
    kept : float64, shape (n_handovers, n_events, 3, lanes)
        Flow towards the match state in the next row, from match states and from others, and towards the skip state in
        the same row; the first without the probability of the transition.
    others
        Those of `f5py.methylation._site_hmm_numba.forward`.
    """
    size = handover.shape[0] * lanes
    places = np.flatnonzero(handover)
    steps = _steps(inverse, offset, constant, lanes)
    crossings = _crossings(inverse, offset, constant, lanes, handover, places)
    densities = _room(steps, crossings)
    # Of this row and of that before, one k-mer further on: match states, and what arrives at the match states from the
    # k-mer before if not from its match state.
    match, match_before = np.zeros(size + lanes), np.zeros(size + lanes)
    arriving, arriving_before = np.zeros(size + lanes), np.zeros(size + lanes)
    wrong = np.zeros(size)
    skipping = np.zeros(size + lanes)  # to each k-mer's skip state from the k-mer before in the same row
    more = np.empty(lanes)  # at a match state, from the entry or from the lane with the other bit
    width = np.uint64(lanes)  # unsigned, as indices are that are not looked at for being negative
    scale = 0.0
    greatest = 0.0
    for row in range(x.shape[0]):
        _fill_densities(x[row], x[max(row - 1, 0)], p_stay, steps, crossings, noise, densities)
        _halve(densities, places, lanes)
        # No site's base lies under the first k-mer, so all lanes enter alike. The exponent may be far below what the
        # emissions hold, and the first event has no other way in.
        entry = (_entry(x[row], inverse, offset, constant, noise) + background(row)) / LOG2_E
        new_scale = entry if row == 0 else max(scale + math.log(greatest), entry)
        change = 0.0 if row == 0 else math.exp(scale - new_scale)
        scale = new_scale
        scales[row] = scale
        more[:] = math.exp(entry - scale)
        match, match_before = match_before, match
        arriving, arriving_before = arriving_before, arriving
        greatest = 0.0
        handovers = 0
        begin = 0
        for i in range(places.shape[0] + 1):
            end = size if i == places.shape[0] else places[i] * lanes
            for at in range(np.uint64(begin), np.uint64(end)):
                onward = at + width
                same = match_before[onward]
                bad = wrong[at]
                into = np.float64(densities.free[at]) * (P_FROM_BAD * bad + arriving_before[at])
                into += np.float64(densities.stay[at]) * same
                into += np.float64(densities.step[at]) * match_before[at]
                good = change * into
                if at - np.uint64(begin) < width:
                    good += more[at - np.uint64(begin)]
                bad = change * P_BAD * (same + bad)
                match[onward] = good
                wrong[at] = bad
                greatest = good + bad if good + bad > greatest else greatest
                skipped = skipping[at]
                bad = P_FROM_BAD * bad
                arriving[onward] = bad + P_FROM_SKIP * skipped
                skipping[onward] = P_SKIP * good + bad + P_SKIP_SELF * skipped
            begin = end
            if i < places.shape[0]:
                bit = handover[places[i]]
                for lane in range(lanes):
                    crossed = np.float64(densities.cross[i * lanes + lane]) * match_before[end + (lane ^ bit)]
                    more[lane] = change * crossed
                if bit == 1:
                    for lane in range(lanes):
                        kept[handovers, row, 0, lane] = match[end + lane]
                        kept[handovers, row, 1, lane] = arriving[end + lane]
                        kept[handovers, row, 2, lane] = skipping[end + lane]
                    handovers += 1
                _average(arriving, end, lanes, bit)
                _average(skipping, end, lanes, bit)
        for lane in range(lanes):
            at = size - lanes + lane
            ends[row, lane] = match[at + lanes] + wrong[at] + skipping[at]


@kernel
def backward_correlated(x, p_stay, handover, lanes, inverse, offset, constant, noise, scales, kept, reference, flows):
    """Add up, for every handover of bit 0, the probability of all paths through it by lane, over ``exp(reference)``.

    Parameters
    ----------
    noise : Terms
    others
        Those of `f5py.methylation._site_hmm_numba.backward`; `scales` and `kept` as `forward_correlated` has filled
        them.
    """
    n_events = x.shape[0]
    size = handover.shape[0] * lanes
    places = np.flatnonzero(handover)
    steps = _steps(inverse, offset, constant, lanes)
    crossings = _crossings(inverse, offset, constant, lanes, handover, places)
    densities = _room(steps, crossings)
    # What may follow each match state of this row and of the row below.
    match, below = np.zeros(size), np.zeros(size)
    wrong = np.zeros(size)
    # One k-mer on: what may follow the step into the match state of the row below, the same after a bad event or a
    # skip, both times the density there; and what may follow the skip state in the same row.
    stepped, freed, skipping = np.empty(lanes), np.empty(lanes), np.empty(lanes)
    flows[:] = 0.0
    width = np.uint64(lanes)
    scale = 0.0
    greatest = 0.0
    for row in range(n_events - 1, -1, -1):
        end_mass = background(n_events - 1 - row) / LOG2_E
        scale_below = scale
        scale = end_mass if row == n_events - 1 else max(scale_below + math.log(greatest), end_mass)
        change = 0.0 if row == n_events - 1 else math.exp(scale_below - scale)
        ended = math.exp(end_mass - scale)
        _fill_densities(x[min(row + 1, n_events - 1)], x[row], p_stay, steps, crossings, noise, densities)
        _halve(densities, places, lanes)
        # The product of two scales may be out of range where that of the two masses is not: a half for each of them.
        weight = math.exp(0.5 * (scales[row] + scale - reference))
        match, below = below, match
        greatest = 0.0
        handovers = kept.shape[0]
        i = places.shape[0] - 1
        for j in range(handover.shape[0] - 1, -1, -1):
            base = j * lanes
            last = j + 1 == handover.shape[0]
            if not last and handover[j + 1] > 0:
                bit = handover[j + 1]
                for lane in range(lanes):  # by the lane that the step comes from
                    other = lane ^ bit
                    crossed = np.float64(densities.cross[i * lanes + other]) * below[base + lanes + other]
                    stepped[lane] += change * crossed
                i -= 1
                _average(freed, 0, lanes, bit)
                _average(skipping, 0, lanes, bit)
                if bit == 1:
                    handovers -= 1
                    for lane in range(lanes):
                        flows[handovers, lane] += (
                            (kept[handovers, row, 0, lane] * weight) * (stepped[lane] * weight)
                            + (kept[handovers, row, 1, lane] * weight) * (freed[lane] * weight)
                            + (kept[handovers, row, 2, lane] * weight) * (skipping[lane] * weight)
                        )
            for lane in range(width):
                at = np.uint64(base) + lane
                after = change * below[at]
                same = np.float64(densities.free[at]) * after
                bad = change * P_BAD * wrong[at]
                good = np.float64(densities.stay[at]) * after + bad
                if last:
                    good += ended
                    other_end = bad + P_FROM_BAD * same + ended
                    skipping[lane] = ended
                else:
                    skip = skipping[lane]
                    good += stepped[lane] + P_SKIP * skip
                    other_end = bad + P_FROM_BAD * (same + freed[lane] + skip)
                    skipping[lane] = P_FROM_SKIP * freed[lane] + P_SKIP_SELF * skip
                match[at] = good
                wrong[at] = other_end
                greater = good if good > other_end else other_end
                greatest = greater if greater > greatest else greatest
                stepped[lane] = np.float64(densities.step[at]) * after
                freed[lane] = same
