"""Jitted forward and backward algorithm with the states of sites; see `f5py.methylation.per_site` for the mathematics.

State arrays hold, for k-mer j and lane l of L, element ``L * j + l``. They are in double precision and probability
space: a row's true values are the stored ones times ``exp(scale)``, and no state that matters lies more than a few
hundred orders of e below the row's greatest, as the last k-mer can be reached from every other within a row.
"""

from __future__ import annotations

import math

import numpy as np

from f5py.core.hmm import P_BAD, P_FROM_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.jit import simd
from f5py.jit.kernel import kernel
from f5py.methylation._calls_numba import LOG2_E
from f5py.methylation._hmm_numba import background, log2_density


@kernel
def _fill_emissions(x, inverse, offset, constant, emission):
    """Densities of event mean `x` in all k-mers and lanes; the arrays' length is a multiple of 16."""
    event = simd.splat(x)
    for at in range(0, emission.shape[0], simd.LANES):
        z = simd.madd(event, simd.load(inverse, at), simd.load(offset, at))
        simd.store(emission, at, simd.exp2(simd.load(constant, at) - z * z))


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
def forward(x, p_stay, handover, lanes, inverse, offset, constant, scales, ends, kept):
    """Fill scales and end masses of every row, and the flow out of the last k-mer before each handover of bit 0.

    Parameters
    ----------
    x : float32, shape (n_events,)
    handover : int64, shape (n_kmers,)
        The lane bit that changes from one site to another on the way into a k-mer, or 0.
    scales : float64, shape (n_events,); ends : float64, shape (n_events, lanes)
    kept : float64, shape (n_handovers, n_events, 2, lanes)
        Flow towards the match state in the next row, and towards the skip state in the same row.
    """
    p_step = 1.0 - p_stay - P_SKIP - P_BAD
    n_kmers = handover.shape[0]
    size = n_kmers * lanes
    emission = np.empty(inverse.shape[0], np.float32)
    match = np.zeros(size)
    wrong = np.zeros(size)
    arriving = np.zeros(size)  # at each k-mer's match state, from the k-mer before in the row before
    leaving = np.zeros(size)
    skipping = np.zeros(lanes)  # to the k-mer's skip state from the k-mer before in the same row
    scale = 0.0
    greatest = 0.0
    for row in range(x.shape[0]):
        _fill_emissions(x[row], inverse, offset, constant, emission)
        # No site's base lies under the first k-mer, so all lanes enter alike. The exponent may be far below what the
        # emissions hold, and the first event has no other way in.
        entry = (log2_density(x[row], inverse, offset, constant, 0) + background(row)) / LOG2_E
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
                into = p_stay * match[at] + P_FROM_BAD * wrong[at] + arriving[at]
                bad = change * P_BAD * (match[at] + wrong[at])
                good = np.float64(emission[at]) * change * into
                if j == 0:
                    good += entered
                skipped = skipping[lane]
                match[at] = good
                wrong[at] = bad
                greatest = max(greatest, good + bad)
                if last:
                    ends[row, lane] = good + bad + skipped
                else:
                    leaving[at + lanes] = p_step * good + P_FROM_BAD * bad + P_FROM_SKIP * skipped
                    skipping[lane] = P_SKIP * good + P_FROM_BAD * bad + P_SKIP_SELF * skipped
            if not last and handover[j + 1] > 0:
                onward = leaving[base + lanes : base + 2 * lanes]
                if handover[j + 1] == 1:
                    for lane in range(lanes):
                        kept[handovers, row, 0, lane] = onward[lane]
                        kept[handovers, row, 1, lane] = skipping[lane]
                    handovers += 1
                _average(onward, handover[j + 1])
                _average(skipping, handover[j + 1])
        arriving, leaving = leaving, arriving


@kernel
def backward(x, p_stay, handover, lanes, inverse, offset, constant, scales, kept, reference, flows):
    """Add up, for every handover of bit 0, the probability of all paths through it by lane, over ``exp(reference)``.

    Parameters
    ----------
    scales, kept
        As `forward` has filled them.
    flows : float64, shape (n_handovers, lanes)
        Filled.
    """
    p_step = 1.0 - p_stay - P_SKIP - P_BAD
    n_events = x.shape[0]
    n_kmers = handover.shape[0]
    size = n_kmers * lanes
    emission = np.empty(inverse.shape[0], np.float32)
    match = np.zeros(size)  # what may follow each match state of the row below, times that row's emission
    wrong = np.zeros(size)
    onward = np.zeros(lanes)  # `match` of the row below one k-mer on
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
        _fill_emissions(x[row], inverse, offset, constant, emission)
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
                skipping[:] = 0.0
            elif handover[j + 1] > 0:
                _average(onward, handover[j + 1])
                _average(skipping, handover[j + 1])
                if handover[j + 1] == 1:
                    handovers -= 1
                    for lane in range(lanes):
                        flows[handovers, lane] += (kept[handovers, row, 0, lane] * weight_below) * (
                            onward[lane] * weight_below
                        ) + (kept[handovers, row, 1, lane] * weight) * (skipping[lane] * weight)
            for lane in range(lanes):
                at = base + lane
                same = change * match[at]
                step = change * onward[lane]
                bad = change * P_BAD * wrong[at]
                skip = skipping[lane]
                finish = ended if last else 0.0
                before[lane] = match[at]
                good = np.float64(emission[at]) * (p_stay * same + bad + p_step * step + P_SKIP * skip + finish)
                match[at] = good
                wrong[at] = bad + P_FROM_BAD * (same + step + skip) + finish
                greatest = max(greatest, max(good, wrong[at]))
                skipping[lane] = P_FROM_SKIP * step + P_SKIP_SELF * skip + finish
            onward, before = before, onward
