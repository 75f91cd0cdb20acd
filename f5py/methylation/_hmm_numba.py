"""Jitted loops of the hidden Markov model; see `f5py.methylation.hmm` for the mathematics.

Sixteen problems are solved side by side, one per vector lane: the hypotheses of the site groups of one read, which
share its transition probabilities. Everything is in probability space with powers of two as scales. The state
arrays hold, for k-mer j and lane l, element ``16 * j + l``; event and parameter arrays likewise.

Scales. A row's true values are the stored ones times ``2 ** scale``. After a row its greatest exponent moves into
the scale of the next one, exactly. Emissions below 2 ** -126 become zero, which is harmless wherever a path could
take the event as a bad one instead; the one place where it cannot is the entry into the first k-mer, so the entry
is computed from exponents and, where it exceeds all earlier mass, becomes what the row is scaled to.
"""

from __future__ import annotations

import math

import numpy as np

from f5py.core.hmm import MIN_STAY, P_BAD, P_FROM_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.jit import simd
from f5py.jit.kernel import kernel
from f5py.methylation.hmm import LN_BACKGROUND_DENSITY, P_FIRST_BACKGROUND, P_MORE_BACKGROUND, P_NO_BACKGROUND

_LOG2_E = math.log2(math.e)
# Background events, in base-two logarithms: none, the first one, every further one.
NO_BACKGROUND = np.float32(math.log2(P_NO_BACKGROUND))
FIRST_BACKGROUND = np.float32(math.log2(P_FIRST_BACKGROUND) + LN_BACKGROUND_DENSITY * _LOG2_E)
MORE_BACKGROUND = np.float32(math.log2(P_MORE_BACKGROUND) + LN_BACKGROUND_DENSITY * _LOG2_E)
_ENTRY_HEADROOM = np.float32(60.0)
_NEVER = np.float32(-1e30)
# A last k-mer that never holds 2 ** this of its row's greatest mass may have lost paths to underflow.
LOWEST_END = np.float32(-80.0)


@kernel
def background(count):
    """Base-two logarithm of the probability of that many background events before the entry or after the end."""
    if count == 0:
        return NO_BACKGROUND
    return FIRST_BACKGROUND + np.float32(count - 1) * MORE_BACKGROUND


@kernel
def stay_probability(events_per_base):
    """Probability that the next event belongs to the same k-mer."""
    return max(1.0 - 1.0 / events_per_base, MIN_STAY) if events_per_base > 0.0 else MIN_STAY


@kernel
def log_sum(a, b):
    """ln(exp(a) + exp(b))."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + math.log1p(math.exp(b - a))


@kernel
def log2_density(x, inverse, offset, constant, at):
    """Base-two logarithm of the density of event mean `x`, in double precision, where its exponent may be any."""
    z = np.float64(x) * np.float64(inverse[at]) + np.float64(offset[at])
    return np.float64(constant[at]) - z * z


@kernel
def forward_exact(events, inverse, offset, constant, lane, n_events, n_kmers, p_stay):
    """The score of one lane in double precision.

    A few times slower; for problems whose last k-mer is only ever reached with odds that single precision cannot hold
    beside the row's best, such as a dozen events under a hundred k-mers. Doubles can: skips lead from every state to
    the last k-mer of the longest window with more than e ** -270.
    """
    p_step = 1.0 - p_stay - P_SKIP - P_BAD
    match = np.zeros(n_kmers)
    wrong = np.zeros(n_kmers)
    skipped = np.zeros(n_kmers)
    score = -np.inf
    scale = 0.0  # a row's true values are the stored ones times e ** scale
    greatest = 0.0
    for row in range(n_events):
        x = events[row * simd.LANES + lane]
        entry = (log2_density(x, inverse, offset, constant, lane) + background(row)) / _LOG2_E
        scale_before = scale
        scale = entry if row == 0 else max(scale + math.log(greatest), entry)
        change = 0.0 if row == 0 else math.exp(scale_before - scale)
        entered = math.exp(entry - scale)
        match_before, wrong_before, skipped_before = 0.0, 0.0, 0.0
        match_left, wrong_left, skipped_left = 0.0, 0.0, 0.0
        greatest = 0.0
        for j in range(n_kmers):
            emission = math.exp(log2_density(x, inverse, offset, constant, j * simd.LANES + lane) / _LOG2_E)
            into_match = p_stay * match[j] + p_step * match_before + P_FROM_BAD * (wrong[j] + wrong_before)
            into_match += P_FROM_SKIP * skipped_before
            skipped_left = P_SKIP * match_left + P_FROM_BAD * wrong_left + P_SKIP_SELF * skipped_left
            match_left = emission * change * into_match + entered
            wrong_left = P_BAD * change * (match[j] + wrong[j])
            greatest = max(greatest, match_left + wrong_left)
            match_before, wrong_before, skipped_before = match[j], wrong[j], skipped[j]
            match[j], wrong[j], skipped[j] = match_left, wrong_left, skipped_left
            entered = 0.0
        end = math.log(match_left + wrong_left + skipped_left) + scale
        score = log_sum(score, end + background(n_events - 1 - row) / _LOG2_E)
    return np.float32(score)


@kernel
def log_score(total, best):
    """Natural logarithm of ``total * 2 ** best``."""
    return (math.log2(total) + best) / _LOG2_E


@kernel
def forward_lanes(events, inverse, offset, constant, n_events, n_kmers, events_per_base, work, ends, scales, scores):
    """Log-likelihood of sixteen event sequences under sixteen k-mer sequences.

    Parameters
    ----------
    events : float32, shape (>= 16 * max(n_events),)
        Event means; what lies after a lane's last event must be finite.
    inverse, offset, constant : float32, shape (>= 16 * max(n_kmers),)
        Event mean x under k-mer j has emission ``2 ** (constant - (x * inverse + offset) ** 2)``.
    n_events, n_kmers : int64, shape (16,)
    events_per_base : float
    work : float32, shape (>= 48 * max(n_kmers),)
    ends, scales : float32, shape (>= 16 * max(n_events),)
        Scratch space.
    scores : float32, shape (16,)
        Filled with natural logarithms.
    """
    p_stay = stay_probability(events_per_base)
    stay = simd.splat(np.float32(p_stay))
    step = simd.splat(np.float32(1.0 - p_stay - P_SKIP - P_BAD))
    bad = simd.splat(np.float32(P_BAD))
    from_bad = simd.splat(np.float32(P_FROM_BAD))
    skip = simd.splat(np.float32(P_SKIP))
    skip_self = simd.splat(np.float32(P_SKIP_SELF))
    from_skip = simd.splat(np.float32(P_FROM_SKIP))
    zero = simd.splat(np.float32(0.0))
    headroom = simd.splat(_ENTRY_HEADROOM)

    rows = 0
    columns = 0
    same_length = True
    for lane in range(simd.LANES):
        rows = max(rows, n_events[lane])
        columns = max(columns, n_kmers[lane])
        same_length = same_length and n_kmers[lane] == n_kmers[0]
    size = columns * simd.LANES
    match = work[:size]
    wrong = work[size : 2 * size]
    skipped = work[2 * size : 3 * size]
    match[:] = np.float32(0.0)
    wrong[:] = np.float32(0.0)
    skipped[:] = np.float32(0.0)

    first_inverse = simd.load(inverse, 0)
    first_offset = simd.load(offset, 0)
    first_constant = simd.load(constant, 0)
    rescale = simd.splat(np.float32(1.0))
    scale = zero
    for row in range(rows):
        x = simd.load(events, row * simd.LANES)
        z = simd.madd(x, first_inverse, first_offset)
        entry = first_constant - z * z + simd.splat(np.float32(background(row)))
        if row == 0:
            scale = simd.floor(entry)
        above = entry - scale - headroom
        if simd.bits(simd.gt(above, zero)):
            lift = simd.maximum(simd.floor(above), zero)
            rescale = rescale * simd.exp2(zero - lift)
            scale = scale + lift
        row_stay = stay * rescale
        row_step = step * rescale
        row_bad = bad * rescale
        row_from_bad = from_bad * rescale
        row_from_skip = from_skip * rescale

        entered = simd.exp2(entry - scale)
        match_before = zero  # the previous row's states of the k-mer before
        wrong_before = zero
        skipped_before = zero
        match_left = zero  # this row's states of the k-mer before
        wrong_left = zero
        skipped_left = zero
        greatest = zero
        for j in range(columns):
            at = j * simd.LANES
            z = simd.madd(x, simd.load(inverse, at), simd.load(offset, at))
            emission = simd.exp2(simd.load(constant, at) - z * z)
            match_same = simd.load(match, at)
            wrong_same = simd.load(wrong, at)
            skipped_same = simd.load(skipped, at)
            into_match = simd.madd(row_stay, match_same, row_step * match_before)
            into_match = simd.madd(row_from_bad, wrong_same + wrong_before, into_match)
            into_match = simd.madd(row_from_skip, skipped_before, into_match)
            into_skipped = simd.madd(skip, match_left, from_bad * wrong_left)
            match_left = simd.madd(emission, into_match, entered)
            skipped_left = simd.madd(skip_self, skipped_left, into_skipped)
            wrong_left = row_bad * (match_same + wrong_same)
            simd.store(match, at, match_left)
            simd.store(wrong, at, wrong_left)
            simd.store(skipped, at, skipped_left)
            greatest = simd.maximum(greatest, match_left + wrong_left)
            match_before = match_same
            wrong_before = wrong_same
            skipped_before = skipped_same
            entered = zero

        if same_length:
            at = (columns - 1) * simd.LANES
            total = simd.load(match, at) + simd.load(wrong, at) + simd.load(skipped, at)
            simd.store(ends, row * simd.LANES, total)
        else:
            for lane in range(simd.LANES):
                at = (n_kmers[lane] - 1) * simd.LANES + lane
                ends[row * simd.LANES + lane] = match[at] + wrong[at] + skipped[at]
        simd.store(scales, row * simd.LANES, scale)
        moved = simd.exponent(greatest)
        rescale = simd.exp2(zero - moved)
        scale = scale + moved

    # The likelihood is the sum over the last aligned event of the end state's mass and the background after it.
    best = simd.splat(_NEVER)
    counts = work[: simd.LANES]
    for lane in range(simd.LANES):
        counts[lane] = np.float32(n_events[lane])
    count = simd.load(counts, 0)
    one = simd.splat(np.float32(1.0))
    more = simd.splat(MORE_BACKGROUND)
    first = simd.splat(FIRST_BACKGROUND)
    none = simd.splat(NO_BACKGROUND)
    for row in range(rows):
        left = count - simd.splat(np.float32(row + 1))
        after = simd.madd(left - one, more, first)
        after = simd.select(simd.gt(left, zero), after, none)
        after = simd.select(simd.ge(left, zero), after, simd.splat(_NEVER))
        after = after + simd.load(scales, row * simd.LANES)
        simd.store(scales, row * simd.LANES, after)
        best = simd.maximum(best, after + simd.exponent(simd.load(ends, row * simd.LANES)))
    total = zero
    highest_end = simd.splat(_NEVER)
    for row in range(rows):
        after = simd.load(scales, row * simd.LANES)
        end = simd.load(ends, row * simd.LANES)
        total = simd.madd(simd.exp2(after - best), end, total)
        aligned = simd.gt(after, simd.splat(np.float32(0.5) * _NEVER))
        highest_end = simd.maximum(highest_end, simd.select(aligned, simd.exponent(end), highest_end))
    simd.store(scores, 0, total)
    simd.store(counts, 0, best)
    simd.store(scales, 0, highest_end)
    for lane in range(simd.LANES):
        if scales[lane] < LOWEST_END:
            scores[lane] = forward_exact(events, inverse, offset, constant, lane, n_events[lane], n_kmers[lane], p_stay)
        else:
            scores[lane] = log_score(scores[lane], counts[lane])
