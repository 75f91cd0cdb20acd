"""Jitted loops of the hidden Markov model; see `f5py.methylation.hmm` for the mathematics.

Sixteen problems are solved in parallel, one per vector lane: hypotheses of site groups, of any reads, with their reads'
transition probabilities. Values are probabilities scaled by powers of two. Arrays of states, events and parameters hold
k-mer (or event) j of lane l at ``16 * j + l``.

Scales. Paths far behind the best one of a row may win in the end, when they alone explain later events. None may be
lost, however small. Therefore every `BLOCK` k-mers have their own scale, a power of two. After a row it is moved,
exactly, to make the block's largest stored value about ``2 ** LIFT``; values below ``2 ** -(126 + LIFT)`` of it are
lost.

* A block's scale is at most `HEADROOM` below that of the preceding block, so values from there do not overflow.
  Silent skips lead from every state to the end of the next block with more than ``2 ** -35``. They make better use
  of later events than states further ahead with less than that.
* Emissions below ``2 ** -126`` become zero. That is harmless wherever a path could take the event as a bad one
  instead. It cannot at the entry into the first k-mer, so the entry is computed from exponents, and the first
  block's scale is at most ``LIFT + HEADROOM`` below it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.hmm import MIN_STAY, P_BAD, P_FROM_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.jit import simd
from f5py.jit.kernel import inner
from f5py.methylation.hmm import LN_BACKGROUND_DENSITY, P_FIRST_BACKGROUND, P_MORE_BACKGROUND, P_NO_BACKGROUND

LOG2_E = math.log2(math.e)
# Background events, in base-two logarithms: none, the first one, every further one.
NO_BACKGROUND = np.float32(math.log2(P_NO_BACKGROUND))
FIRST_BACKGROUND = np.float32(math.log2(P_FIRST_BACKGROUND) + LN_BACKGROUND_DENSITY * LOG2_E)
MORE_BACKGROUND = np.float32(math.log2(P_MORE_BACKGROUND) + LN_BACKGROUND_DENSITY * LOG2_E)
#: Stands for the logarithm of zero.
NEVER = np.float32(-1e30)
#: K-mers that share a scale.
BLOCK = 8
#: Base-two logarithm of the greatest stored value of a block.
LIFT = np.float32(100.0)
#: Maximum excess of values entering a block over values in it, as base-two logarithm.
HEADROOM = np.float32(12.0)
#: Smallest exponent of a block's largest value for scaling: 2 ** (LIFT - this) is in range.
LEAST_EXPONENT = np.float32(-26.0)


@inner
def background(count):
    """Return the base-two logarithm of the probability of `count` background events."""
    if count == 0:
        return NO_BACKGROUND
    return FIRST_BACKGROUND + np.float32(count - 1) * MORE_BACKGROUND


@inner
def stay_probability(events_per_base):
    """Return the probability that the next event belongs to the same k-mer."""
    return max(1.0 - 1.0 / events_per_base, MIN_STAY) if events_per_base > 0.0 else MIN_STAY


@inner
def transitions(events_per_base, stay_weight, step_weight, work):
    """Compute the probabilities of a stay and of a step, times weights, as vectors.

    `events_per_base` (float64) has one element per lane; `work` is scratch space.
    """
    for lane in range(simd.LANES):
        p_stay = stay_probability(events_per_base[lane])
        work[lane] = np.float32(p_stay * stay_weight)
        work[simd.LANES + lane] = np.float32((1.0 - p_stay - P_SKIP - P_BAD) * step_weight)
    return simd.load(work, 0), simd.load(work, simd.LANES)


@inner
def log_sum(a, b):
    """Return ln(exp(a) + exp(b))."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + math.log1p(math.exp(b - a))


@inner
def log_score(total, best):
    """Return the natural logarithm of ``total * 2 ** best``."""
    return (math.log2(total) + best) / LOG2_E


@inner
def log_base(exponent, width):
    """Return the common term of the log-likelihoods of a window's states, from its exponent of two."""
    return exponent / LOG2_E - (width - 1) * math.log(2.0)


@inner
def log_of_share(base, share):
    """Return the log-likelihood of a site's state."""
    return base + math.log(share)


@inner
def work_size(columns):
    """Return the elements of scratch space that `forward_lanes` needs for that many k-mers."""
    return simd.LANES * (3 * columns + 2 * ((columns + BLOCK - 1) // BLOCK))


@inner
def score_ends(n_events, rows, work, ends, scales, scores):
    """Fill `scores` with the sum, over the last aligned event, of end states times later background.

    `ends` and `scales` are those of the rows; `work` is scratch space.
    """
    zero = simd.splat(np.float32(0.0))
    best = simd.splat(NEVER)
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
        after = simd.select(simd.ge(left, zero), after, simd.splat(NEVER))
        after = after + simd.load(scales, row * simd.LANES)
        simd.store(scales, row * simd.LANES, after)
        best = simd.maximum(best, after + simd.exponent(simd.load(ends, row * simd.LANES)))
    total = zero
    for row in range(rows):
        after = simd.load(scales, row * simd.LANES)
        total = simd.madd(simd.exp2(after - best), simd.load(ends, row * simd.LANES), total)
    simd.store(scores, 0, total)
    simd.store(counts, 0, best)
    for lane in range(simd.LANES):
        scores[lane] = log_score(scores[lane], counts[lane])


class Emissions(NamedTuple):
    """Emissions of sixteen k-mer sequences, lane by lane."""

    # inverse, offset, constant: shape (>= 16 * max(n_kmers),): event mean x under k-mer j has emission ``2 ** (constant
    # - (x * inverse + offset) ** 2)``. After a lane's last k-mer the constant must be `NEVER` or less and the others
    # finite.
    inverse: NDArray[np.float32]
    offset: NDArray[np.float32]
    constant: NDArray[np.float32]


class ForwardScratch(NamedTuple):
    """Scratch space of the forward algorithm."""

    work: NDArray[np.float32]  # shape (>= work_size(max(n_kmers)),)
    ends: NDArray[np.float32]  # shape (>= 16 * max(n_events),)
    scales: NDArray[np.float32]  # shape (>= 16 * max(n_events),)


@inner
def size_of_problem(n_events, n_kmers):
    """Return the most events, k-mers and blocks of a lane, and whether all have equal numbers of k-mers."""
    rows = 0
    columns = 0
    same_length = True
    for lane in range(simd.LANES):
        rows = max(rows, n_events[lane])
        columns = max(columns, n_kmers[lane])
        same_length = same_length and n_kmers[lane] == n_kmers[0]
    return rows, columns, (columns + BLOCK - 1) // BLOCK, same_length


@inner
def empty_states(work, columns, n_blocks):
    """Lay out match, bad-event and skip states, their scales, and the next row's scales."""
    size = columns * simd.LANES
    scales = n_blocks * simd.LANES  # in base-two logarithms
    match = work[:size]
    wrong = work[size : 2 * size]
    skipped = work[2 * size : 3 * size]
    held = work[3 * size : 3 * size + scales]
    wanted = work[3 * size + scales : 3 * size + 2 * scales]
    match[:] = np.float32(0.0)
    wrong[:] = np.float32(0.0)
    skipped[:] = np.float32(0.0)
    held[:] = NEVER
    wanted[:] = NEVER
    return match, wrong, skipped, held, wanted


@inner
def two_powers(exponent):
    """Split a power of two, possibly below the range, into two factors."""
    part = simd.maximum(exponent, simd.splat(np.float32(-126.0)))
    return simd.power2(part), simd.power2(exponent - part)


@inner
def end_lanes(row, n_kmers, states, ends, scales):
    """Fill a row's end states and scale for lanes with different numbers of k-mers."""
    match, wrong, skipped, held = states
    for lane in range(simd.LANES):
        at = (n_kmers[lane] - 1) * simd.LANES + lane
        ends[row * simd.LANES + lane] = match[at] + wrong[at] + skipped[at]
        at = (n_kmers[lane] - 1) // BLOCK * simd.LANES + lane
        scales[row * simd.LANES + lane] = held[at]


@inner
def forward_lanes(events, emissions, n_events, n_kmers, events_per_base, scratch, scores):
    """Compute log-likelihoods of sixteen event sequences under sixteen k-mer sequences.

    Parameters
    ----------
    events : float32, shape (>= 16 * max(n_events),)
        Event means, padded after a lane's last event with finite values.
    emissions : Emissions
    n_events, n_kmers : int64, shape (16,)
    events_per_base : float64, shape (16,)
    scratch : ForwardScratch
    scores : float32, shape (16,)
        Filled with natural logarithms.
    """
    inverse, offset, constant = emissions
    work, ends, scales = scratch
    stay, step = transitions(events_per_base, 1.0, 1.0, work)
    bad = simd.splat(np.float32(P_BAD))
    from_bad = simd.splat(np.float32(P_FROM_BAD))
    skip = simd.splat(np.float32(P_SKIP))
    skip_self = simd.splat(np.float32(P_SKIP_SELF))
    from_skip = simd.splat(np.float32(P_FROM_SKIP))
    zero = simd.splat(np.float32(0.0))
    lift = simd.splat(LIFT)
    headroom = simd.splat(HEADROOM)
    least_exponent = simd.splat(LEAST_EXPONENT)

    rows, columns, n_blocks, same_length = size_of_problem(n_events, n_kmers)
    match, wrong, skipped, held, wanted = empty_states(work, columns, n_blocks)

    first_inverse = simd.load(inverse, 0)
    first_offset = simd.load(offset, 0)
    first_constant = simd.load(constant, 0)
    for row in range(rows):
        x = simd.load(events, row * simd.LANES)
        z = simd.madd(x, first_inverse, first_offset)
        entry = first_constant - z * z + simd.splat(np.float32(background(row)))
        scale_before = simd.floor(entry) - lift
        arriving = zero  # at the next k-mer's match state, from the preceding row
        skipping = zero  # at the next k-mer's skip state, from this row
        for block in range(n_blocks):
            at = block * simd.LANES
            scale = simd.maximum(simd.load(wanted, at), scale_before - headroom)
            rescale = simd.power2(simd.load(held, at) - scale)
            simd.store(held, at, scale)
            row_stay = stay * rescale
            row_step = step * rescale
            row_bad = bad * rescale
            row_from_bad = from_bad * rescale
            row_from_skip = from_skip * rescale
            entered = zero
            if block == 0:
                entered = simd.exp2(entry - scale)
            else:  # one factor could overflow if the next block is far ahead
                part, rest = two_powers(scale_before - scale)
                arriving = arriving * part * rest
                skipping = skipping * part * rest
            scale_before = scale
            greatest = zero
            for j in range(block * BLOCK, min((block + 1) * BLOCK, columns)):
                at = j * simd.LANES
                z = simd.madd(x, simd.load(inverse, at), simd.load(offset, at))
                emission = simd.exp2(simd.load(constant, at) - z * z)
                match_same = simd.load(match, at)
                wrong_same = simd.load(wrong, at)
                skipped_same = simd.load(skipped, at)
                into_match = simd.madd(row_stay, match_same, simd.madd(row_from_bad, wrong_same, arriving))
                arriving = simd.madd(row_from_bad, wrong_same, row_from_skip * skipped_same)
                arriving = simd.madd(row_step, match_same, arriving)
                match_left = simd.madd(emission, into_match, entered)
                wrong_left = row_bad * (match_same + wrong_same)
                simd.store(match, at, match_left)
                simd.store(wrong, at, wrong_left)
                simd.store(skipped, at, skipping)
                greatest = simd.maximum(greatest, match_left + wrong_left + skipping)
                into_skipped = simd.madd(skip, match_left, from_bad * wrong_left)
                skipping = simd.madd(skip_self, skipping, into_skipped)
                entered = zero
            at = block * simd.LANES
            simd.store(wanted, at, scale + simd.maximum(simd.exponent(greatest), least_exponent) - lift)

        if same_length:
            at = (columns - 1) * simd.LANES
            total = simd.load(match, at) + simd.load(wrong, at) + simd.load(skipped, at)
            simd.store(ends, row * simd.LANES, total)
            simd.store(scales, row * simd.LANES, scale_before)
        else:
            end_lanes(row, n_kmers, (match, wrong, skipped, held), ends, scales)

    score_ends(n_events, rows, work, ends, scales, scores)
