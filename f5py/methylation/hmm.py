"""Scoring events under a sequence: the forward algorithm over the model of `f5py.core.hmm`.

The score of events 1 to n under k-mers 1 to m is the natural logarithm of the probability of all paths together. A path
enters the match state of the first k-mer with some event, and ends in any state of the last k-mer after any event. A
background explains the events before the entry and after the end. No background event has probability 1/2, the first
one 1/20, and every further one 9/10. Each has a density of exp(-3). With b(i) for the probability of i background
events::

    b(0) = 1/2
    b(i) = 1/2 * 1/10 * exp(-3) * (9/10 * exp(-3)) ** (i - 1)

    M(i, 1) = emission(i, 1) * (b(i - 1) + terms from row i - 1)
    score = ln sum over i of (M(i, m) + B(i, m) + K(i, m)) * b(n - i)

A group's log-likelihood ratio is the difference of its events' scores with all sites methylated and with none
(`f5py.methylation.calls`). Source: `src/hmm.c` of f5c.

With the correlated noise of `f5py.core.noise` states, transitions and the sum over paths are the same. The density in a
match state depends on the preceding event, so each kind of transition has its own::

    M(i, j) = stay(i, j) * p_stay * M(i - 1, j) + step(i, j) * p_step * M(i - 1, j - 1)
              + free(i, j) * (P_FROM_BAD * (B(i - 1, j) + B(i - 1, j - 1)) + P_FROM_SKIP * K(i - 1, j - 1))

where free is the density without a preceding residual.

Loops use residuals ``w = z * sqrt(log2(e) / 2)``, in which a normal density is a power of two, as for independent
noise. `NoiseTerms` has the constants of

    stay(i, j) = stay_weight * peak * q((stay_now * w(i, j) + stay_before * w(i - 1, j)) ** 2)
    step(i, j) = step_weight * peak * q((step_now * w(i, j) + step_before * w(i - 1, j - 1)) ** 2)
    free(i, j) = free_weight * peak * q(square * w(i, j) ** 2)

For Gaussian noise, ``q(v) = 2 ** -v`` and peak is the largest normal density. For Student's t, ``q(v) = (1 + v) ** -4``
and peak is the reciprocal standard deviation in units of w.

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

Densities of Student's t never become zero in single precision; those of Gaussian noise do, as those of independent one.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.hmm import LN_INVERSE_SQRT_2PI, MIN_STAY, P_BAD, P_FROM_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.core.motifs import MotifCodes
from f5py.core.noise import FREEDOM_LESS_TWO, STUDENT, STUDENT_PEAK, Noise
from f5py.jit import simd
from f5py.jit.kernel import inner, kernel

LOG2_E = math.log2(math.e)
_W = math.sqrt(0.5 * LOG2_E)
# Background events, in base-two logarithms: none, the first one, every further one.
NO_BACKGROUND = np.float32(math.log2(0.5))
FIRST_BACKGROUND = np.float32(math.log2(0.5 * 0.1) - 3.0 * LOG2_E)
MORE_BACKGROUND = np.float32(math.log2(0.9) - 3.0 * LOG2_E)
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


class NoiseTerms(NamedTuple):
    """Constants of a `Noise` for the loops."""

    stay_now: float
    stay_before: float
    step_now: float
    step_before: float
    square: float
    stay_weight: float
    step_weight: float
    free_weight: float
    is_student: bool


def noise_terms(noise: Noise | None) -> NoiseTerms | None:
    """Convert a noise for the loops; None for independent noise, computed by its own loops."""
    if noise is None or noise.is_independent:
        return None
    is_student = noise.tails == STUDENT
    unit = 1.0 / (math.sqrt(FREEDOM_LESS_TWO) * _W) if is_student else 1.0
    weight = STUDENT_PEAK / _W if is_student else 1.0
    stay, step = (1.0 / math.sqrt(1.0 - rho**2) for rho in (noise.stay, noise.step))
    return NoiseTerms(
        stay * unit, -noise.stay * stay * unit, step * unit, -noise.step * step * unit, unit * unit,
        stay * weight, step * weight, weight, is_student,
    )  # fmt: skip


def single_precision(terms: NoiseTerms) -> NDArray[np.float32]:
    """Convert the terms for a GPU, rounded like the CPU's lanes; float32, shape (9,)."""
    weight = terms.free_weight
    return np.array(
        [*terms[:5], P_FROM_BAD * weight, P_FROM_SKIP * weight, weight, float(terms.is_student)], np.float32
    )


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
def _entry_density(x, inverse, offset, constant, noise):
    """Compute the density of events `x` in the first k-mers, as a factor in [1, 2) and an exponent of two."""
    w = simd.madd(x, simd.load(inverse, 0), simd.load(offset, 0))
    one = simd.splat(np.float32(1.0))
    if noise is None:
        return one, simd.load(constant, 0) - w * w
    if noise.is_student:
        fourth = simd.reciprocal(simd.madd(w * simd.splat(np.float32(noise.square)), w, one))
        fourth = fourth * fourth
        density = simd.load(inverse, 0) * simd.splat(np.float32(noise.free_weight)) * (fourth * fourth)
        exponent = simd.exponent(density)
        return density * simd.exp2(simd.splat(np.float32(0.0)) - exponent), exponent
    return one, simd.load(constant, 0) - w * w


@inner
def forward_lanes(events, emissions, n_events, n_kmers, events_per_base, noise, scratch, scores):
    """Compute natural log-likelihoods of sixteen event sequences under sixteen k-mer sequences.

    `events` are means, padded after a lane's last event with finite values. With correlated noise, `inverse` of the
    emissions must be 0 after a lane's last k-mer.
    """
    inverse, offset, constant = emissions
    work, ends, scales = scratch
    bad = simd.splat(np.float32(P_BAD))
    from_bad = simd.splat(np.float32(P_FROM_BAD))
    skip = simd.splat(np.float32(P_SKIP))
    skip_self = simd.splat(np.float32(P_SKIP_SELF))
    zero = simd.splat(np.float32(0.0))
    one = simd.splat(np.float32(1.0))
    lift = simd.splat(LIFT)
    headroom = simd.splat(HEADROOM)
    least_exponent = simd.splat(LEAST_EXPONENT)
    if noise is None:
        stay, step = transitions(events_per_base, 1.0, 1.0, work)
        free_from_bad, free_from_skip = from_bad, simd.splat(np.float32(P_FROM_SKIP))
    else:
        stay, step = transitions(events_per_base, noise.stay_weight, noise.step_weight, work)
        free_from_bad = simd.splat(np.float32(P_FROM_BAD * noise.free_weight))
        free_from_skip = simd.splat(np.float32(P_FROM_SKIP * noise.free_weight))
        stay_now = simd.splat(np.float32(noise.stay_now))
        stay_before = simd.splat(np.float32(noise.stay_before))
        step_now = simd.splat(np.float32(noise.step_now))
        step_before = simd.splat(np.float32(noise.step_before))
        square = simd.splat(np.float32(noise.square))
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
        arriving = zero  # the same from other states; with independent noise from all
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
                match_same = simd.load(match, at)
                wrong_same = simd.load(wrong, at)
                skipped_same = simd.load(skipped, at)
                if noise is None:
                    emission = simd.exp2(simd.load(constant, at) - w * w)
                    into_match = simd.madd(row_stay, match_same, simd.madd(row_from_bad, wrong_same, arriving))
                    arriving = simd.madd(row_from_bad, wrong_same, row_from_skip * skipped_same)
                    arriving = simd.madd(row_step, match_same, arriving)
                    match_left = simd.madd(emission, into_match, entered)
                else:
                    w_same = simd.madd(before, slope, shift)
                    u_stay = simd.madd(w_same, stay_before, w * stay_now)
                    u_step = simd.madd(w_before, step_before, w * step_now)
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
                    w_before = w_same
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
        before = x

    score_ends(n_events, rows, work, ends, scales, scores)


@kernel
def numbers_of_reads(events_per_base, var, stay_weight, step_weight, numbers):
    """Fill each read's stay and step probability, times the weights, and ln(var).

    Weights differ from 1 only with correlated noise.

    Parameters
    ----------
    numbers : float32, shape (n, 3)
    """
    for i in range(var.shape[0]):
        p_stay = stay_probability(events_per_base[i])
        numbers[i, 0] = p_stay * stay_weight
        numbers[i, 1] = (1.0 - p_stay - P_SKIP - P_BAD) * step_weight
        numbers[i, 2] = np.log(var[i])


# Inputs of the GPU kernel; see ``kernels/hmm.cu``.

#: Offsets of bits, complement and masks in a motif's table, after the codes, and its size.
_BITS, _COMPLEMENT, _MASKS, _SIZE = 256, 512, 520, 552
#: Problems per warp of a GPU.
LANES = 32
#: Maximum length of a motif.
MAX_MOTIF = _SIZE - _MASKS


def motif_table(motifs: tuple[MotifCodes, MotifCodes]) -> NDArray[np.uint8]:
    """Encode a motif of the forward and the reverse strand."""
    table = np.zeros((2, _SIZE), np.uint8)
    for row, motif in zip(table, motifs, strict=True):
        row[:_BITS] = motif.letter_codes
        row[_BITS:_COMPLEMENT] = motif.letter_bits
        row[_COMPLEMENT : _COMPLEMENT + len(motif.complement)] = motif.complement
        row[_MASKS : _MASKS + len(motif.masks)] = motif.masks
    return table.reshape(-1)


def constants() -> NDArray[np.float32]:
    """Return the model's constants in single precision, as in the CPU's lanes."""
    return np.array(
        [
            P_BAD, P_FROM_BAD, P_SKIP, P_SKIP_SELF, P_FROM_SKIP, NO_BACKGROUND, FIRST_BACKGROUND, MORE_BACKGROUND,
            np.sqrt(0.5 * LOG2_E), LN_INVERSE_SQRT_2PI, LOG2_E,
        ],
        np.float32,
    )  # fmt: skip
