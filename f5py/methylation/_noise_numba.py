"""Jitted forward algorithm with correlated noise; see `f5py.methylation.correlated`.

Lanes, arrays and scales are those of `f5py.methylation._hmm_numba`. Densities of Student's t never become zero in
single precision; those of Gaussian noise do, as there.
"""

import numpy as np

from f5py.core.hmm import P_BAD, P_FROM_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.jit import simd
from f5py.jit.kernel import inner
from f5py.methylation._hmm_numba import (
    BLOCK,
    HEADROOM,
    LEAST_EXPONENT,
    LIFT,
    background,
    empty_states,
    end_lanes,
    score_ends,
    size_of_problem,
    transitions,
    two_powers,
)


@inner
def _entry_density(x, inverse, offset, constant, noise):
    """Compute the density of events `x` in the first k-mers, as a factor in [1, 2) and an exponent of two."""
    w = simd.madd(x, simd.load(inverse, 0), simd.load(offset, 0))
    if noise.is_student:
        one = simd.splat(np.float32(1.0))
        fourth = simd.reciprocal(simd.madd(w * simd.splat(np.float32(noise.square)), w, one))
        fourth = fourth * fourth
        density = simd.load(inverse, 0) * simd.splat(np.float32(noise.free_weight)) * (fourth * fourth)
        exponent = simd.exponent(density)
        return density * simd.exp2(simd.splat(np.float32(0.0)) - exponent), exponent
    exponent = simd.load(constant, 0) - w * w
    return simd.splat(np.float32(1.0)), exponent


@inner
def forward_correlated(events, emissions, n_events, n_kmers, events_per_base, noise, scratch, scores):
    """Compute log-likelihoods of sixteen event sequences with correlated noise.

    Parameters
    ----------
    emissions : Emissions
        After a lane's last k-mer `inverse` must be 0.
    noise : f5py.methylation.correlated.NoiseTerms
    others
        Those of `f5py.methylation._hmm_numba.forward_lanes`.
    """
    inverse, offset, constant = emissions
    work, ends, scales = scratch
    stay, step = transitions(events_per_base, noise.stay_weight, noise.step_weight, work)
    free_from_bad = simd.splat(np.float32(P_FROM_BAD * noise.free_weight))
    free_from_skip = simd.splat(np.float32(P_FROM_SKIP * noise.free_weight))
    bad = simd.splat(np.float32(P_BAD))
    from_bad = simd.splat(np.float32(P_FROM_BAD))
    skip = simd.splat(np.float32(P_SKIP))
    skip_self = simd.splat(np.float32(P_SKIP_SELF))
    stay_now = simd.splat(np.float32(noise.stay_now))
    stay_before = simd.splat(np.float32(noise.stay_before))
    step_now = simd.splat(np.float32(noise.step_now))
    step_before = simd.splat(np.float32(noise.step_before))
    square = simd.splat(np.float32(noise.square))
    zero = simd.splat(np.float32(0.0))
    one = simd.splat(np.float32(1.0))
    lift = simd.splat(LIFT)
    headroom = simd.splat(HEADROOM)
    least_exponent = simd.splat(LEAST_EXPONENT)
    is_student = noise.is_student
    has_step = noise.step_before != 0.0

    rows, columns, n_blocks, same_length = size_of_problem(n_events, n_kmers)
    match, wrong, skipped, held, wanted = empty_states(work, columns, n_blocks)

    before = simd.load(events, 0)
    for row in range(rows):
        x = simd.load(events, row * simd.LANES)
        mantissa, entry = _entry_density(x, inverse, offset, constant, noise)
        entry = entry + simd.splat(np.float32(background(row)))
        scale_before = simd.floor(entry) - lift
        stepping = zero  # at the next k-mer's match state, from the preceding row's match state
        arriving = zero  # the same from other states
        w_before = zero  # residual of the preceding event in this k-mer
        skipping = zero  # at the next k-mer's skip state, from this row
        for block in range(n_blocks):
            at = block * simd.LANES
            scale = simd.maximum(simd.load(wanted, at), scale_before - headroom)
            rescale = simd.power2(simd.load(held, at) - scale)
            simd.store(held, at, scale)
            row_stay = stay * rescale
            row_step = step * rescale
            row_bad = bad * rescale
            row_from_bad = free_from_bad * rescale
            row_from_skip = free_from_skip * rescale
            entered = zero
            if block == 0:
                entered = mantissa * simd.exp2(entry - scale)
            else:  # one factor could overflow if the next block is far ahead
                part, rest = two_powers(scale_before - scale)
                stepping = stepping * part * rest
                arriving = arriving * part * rest
                skipping = skipping * part * rest
            scale_before = scale
            greatest = zero
            for j in range(block * BLOCK, min((block + 1) * BLOCK, columns)):
                at = j * simd.LANES
                slope = simd.load(inverse, at)
                shift = simd.load(offset, at)
                w = simd.madd(x, slope, shift)
                w_same = simd.madd(before, slope, shift)
                u_stay = simd.madd(w_same, stay_before, w * stay_now)
                u_step = simd.madd(w_before, step_before, w * step_now)
                match_same = simd.load(match, at)
                wrong_same = simd.load(wrong, at)
                skipped_same = simd.load(skipped, at)
                free = simd.madd(row_from_bad, wrong_same, arriving)
                if is_student:  # three reciprocals by one
                    d_stay = simd.madd(u_stay, u_stay, one)
                    d_step = simd.madd(u_step, u_step, one)
                    d_free = simd.madd(w * square, w, one)
                    both = d_stay * d_step
                    reciprocal = simd.reciprocal(both * d_free)
                    q_free = reciprocal * both
                    reciprocal = reciprocal * d_free
                    q_stay = reciprocal * d_step
                    q_step = reciprocal * d_stay
                    q_free = q_free * q_free
                    q_stay = q_stay * q_stay
                    q_step = q_step * q_step
                    q_free = q_free * q_free
                    q_stay = q_stay * q_stay
                    q_step = q_step * q_step
                    peak = slope
                else:
                    top = simd.load(constant, at)
                    q_stay = simd.exp2(top - u_stay * u_stay)
                    q_free = simd.exp2(top - w * w)
                    q_step = q_free
                    if has_step:  # else equal to the last bit
                        q_step = simd.exp2(top - u_step * u_step)
                    peak = one
                into_match = simd.madd(q_step, stepping, q_free * free)
                into_match = simd.madd(q_stay, row_stay * match_same, into_match)
                stepping = row_step * match_same
                arriving = simd.madd(row_from_bad, wrong_same, row_from_skip * skipped_same)
                match_left = simd.madd(peak, into_match, entered)
                wrong_left = row_bad * (match_same + wrong_same)
                simd.store(match, at, match_left)
                simd.store(wrong, at, wrong_left)
                simd.store(skipped, at, skipping)
                greatest = simd.maximum(greatest, match_left + wrong_left + skipping)
                into_skipped = simd.madd(skip, match_left, from_bad * wrong_left)
                skipping = simd.madd(skip_self, skipping, into_skipped)
                w_before = w_same
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
        before = x

    score_ends(n_events, rows, work, ends, scales, scores)
