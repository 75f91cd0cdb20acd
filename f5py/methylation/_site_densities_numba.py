"""Jitted densities and states of cells, and memory of packs; see `f5py.methylation._site_hmm_numba`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit import simd
from f5py.jit import simd_double as wide
from f5py.jit.c_memory import address_of_data, borrow_array
from f5py.jit.kernel import inner
from f5py.methylation._hmm_numba import background

LANES = wide.LANES
#: Rows computed together.
ROWS = 4
#: Stands for the logarithm of zero.
NEVER = -1e30
#: Maximum densities stored for the backward algorithm; larger windows compute them again.
_MOST_DENSITIES = 1 << 19


class Densities(NamedTuple):
    """Densities of events in all k-mers and lanes, of all rows or of `ROWS`.

    `stay` and `step` are used with correlated noise only.
    """

    free: NDArray[np.float32]
    stay: NDArray[np.float32]
    step: NDArray[np.float32]
    is_kept: bool  # whether they are of all rows


class Arena(NamedTuple):
    """Memory allocated once for many packs, since threads would wait for each other's allocations."""

    # work: aligned to 64 bytes, like all arrays in it
    work: NDArray[np.float64]
    used: NDArray[np.int64]  # shape (1,): number of its elements in use
    memory: NDArray[np.float64]  # of both; arrays in it hold no reference


@inner
def make_arena(n):
    """Allocate `n` doubles."""
    memory = np.empty(n + 2 * LANES)
    first = -(address_of_data(memory) >> 3) & (LANES - 1)
    used = borrow_array(memory[first + n :].view(np.int64))
    used[0] = 0
    return Arena(borrow_array(memory[first : first + n]), used, memory)


@inner
def take_doubles(room, n):
    """Take an array of `n` doubles."""
    first = room.used[0]
    room.used[0] = first + (n + LANES - 1) // LANES * LANES
    return room.work[first : first + n]


@inner
def take_zeros(room, n):
    """Take an array of `n` doubles, filled with zeros."""
    array = take_doubles(room, n)
    array[:] = 0.0
    return array


@inner
def take_floats(room, n):
    """Take an array of `n` single-precision floats."""
    return take_doubles(room, (n + 1) // 2).view(np.float32)[:n]


@inner
def take_integers(room, n, value):
    """Take an array of `n` integers equal to `value`."""
    array = take_doubles(room, n).view(np.int64)
    array[:] = value
    return array


@inner
def arena_size(rows, n_kmers, width, per_kmer, n_slots, is_correlated):
    """Return the maximum number of doubles for a pack, kept low as each thread has that memory."""
    n_out, n_densities = (3, 3) if is_correlated else (2, 1)
    size = (n_kmers + 1) * per_kmer + 2 * LANES
    densities = n_densities * min(size * rows, max(_MOST_DENSITIES, ROWS * size)) // 2 + LANES
    of_pack = (2 * LANES + 1) * rows + 5 * size + (28 + LANES * (width + 1)) * n_kmers + 30 * LANES
    of_rows = rows * (LANES + per_kmer) + n_slots * rows * n_out * per_kmer
    edges = 2 * (6 * ROWS + 2) * (per_kmer + LANES)
    of_states = (n_out + 3) * size
    return of_pack + of_rows + densities + of_states + edges + (n_slots + 1) * per_kmer + 60 * LANES


@inner
def take_densities(room, size, rows, noise):
    """Take arrays for `size` densities per row, of all rows or of `ROWS`."""
    is_kept = size * rows <= _MOST_DENSITIES
    n = size * rows if is_kept else ROWS * size
    some = 0 if noise is None else n
    return Densities(take_floats(room, n), take_floats(room, some), take_floats(room, some), is_kept)


@inner
def _fourth_power(value):
    square = value * value
    return square * square


@inner
def _fill_independent(events, emissions, row, other, free, first):
    inverse, offset, constant, _, _ = emissions
    event_a, event_b = simd.load_twice(events, row * LANES), simd.load_twice(events, other * LANES)
    n = inverse.shape[0]
    for at in range(0, n, simd.LANES):
        slope, shift, top = simd.load(inverse, at), simd.load(offset, at), simd.load(constant, at)
        z_a, z_b = simd.madd(event_a, slope, shift), simd.madd(event_b, slope, shift)
        simd.store(free, first + at, simd.exp2(top - z_a * z_a))
        simd.store(free, first + n + at, simd.exp2(top - z_b * z_b))


@inner
def _fill_correlated(events, emissions, noise, row, before, densities, first):
    free, stay, step, _ = densities
    inverse, offset, constant, inverse_before, offset_before = emissions
    event = simd.load_twice(events, row * LANES)
    event_before = simd.load_twice(events, before * LANES)
    one = simd.splat(np.float32(1.0))
    stay_now = simd.splat(np.float32(noise.stay_now))
    stay_before = simd.splat(np.float32(noise.stay_before))
    step_now = simd.splat(np.float32(noise.step_now))
    step_before = simd.splat(np.float32(noise.step_before))
    square = simd.splat(np.float32(noise.square))
    for at in range(0, inverse.shape[0], simd.LANES):
        slope, shift = simd.load(inverse, at), simd.load(offset, at)
        z = simd.madd(event, slope, shift)
        # residuals of the preceding event, in this k-mer and in the preceding one
        same = simd.madd(event_before, slope, shift)
        last = simd.madd(event_before, simd.load(inverse_before, at), simd.load(offset_before, at))
        u_stay = simd.madd(same, stay_before, z * stay_now)
        u_step = simd.madd(last, step_before, z * step_now)
        if noise.is_student:
            of_stay = slope * _fourth_power(simd.reciprocal(simd.madd(u_stay, u_stay, one)))
            of_step = slope * _fourth_power(simd.reciprocal(simd.madd(u_step, u_step, one)))
            of_free = slope * _fourth_power(simd.reciprocal(simd.madd(z * square, z, one)))
        else:
            top = simd.load(constant, at)
            of_stay = simd.exp2(top - u_stay * u_stay)
            of_step = simd.exp2(top - u_step * u_step)
            of_free = simd.exp2(top - z * z)
        simd.store(stay, first + at, of_stay * simd.splat(np.float32(noise.stay_weight)))
        simd.store(step, first + at, of_step * simd.splat(np.float32(noise.step_weight)))
        simd.store(free, first + at, of_free * simd.splat(np.float32(noise.free_weight)))


@inner
def fill_rows(events, emissions, noise, row, densities, first):
    """Fill the densities of the events of `ROWS` rows from `row` on, repeating the last row.

    Parameters
    ----------
    events : float32
    emissions : tuple of five arrays
        Those of `f5py.methylation._site_layout_numba.WindowPack`, in its order.
    noise : f5py.methylation.correlated.NoiseTerms or None
    row : int
    densities : Densities
        Filled from `first` on.
    first : int
    """
    per_row = emissions[0].shape[0]
    if noise is None:
        for i in range(0, ROWS, 2):
            _fill_independent(events, emissions, row + i, row + i + 1, densities.free, first + i * per_row)
    else:
        most = events.shape[0] // LANES - 1
        for i in range(ROWS):
            now, before = min(row + i, most), max(row + i - 1, 0)
            _fill_correlated(events, emissions, noise, now, before, densities, first + i * per_row)


@inner
def entry(events, emission, row, noise):
    """Compute the density of a row's events at the entry, times the earlier background.

    Return a factor and the base-two logarithm of the rest, so that any exponent is possible.
    """
    slope, shift, constant = emission
    w = wide.madd(wide.widened(events, row * LANES), slope, shift)
    before = wide.splat(np.float64(background(row)))
    one = wide.splat(1.0)
    if noise is None:
        return one, constant - w * w + before
    weight = wide.splat(np.float64(noise.free_weight))
    if noise.is_student:
        fourth = one / wide.madd(w * wide.splat(np.float64(noise.square)), w, one)
        fourth = fourth * fourth
        density = slope * weight * (fourth * fourth)
        exponent = wide.exponent(density)
        return density * wide.power2(wide.splat(0.0) - exponent), exponent + before
    return weight, constant - w * w + before


@inner
def next_states(noise, densities, at, chances, came, same, skipped, entered):
    """Compute the next states of a cell and the flows from them.

    Return the match and bad-event state, the flows to the next k-mer's match state in the next row, and the flow to its
    skip state in the same row. With correlated noise, flows from match states are separate from others.

    Parameters
    ----------
    densities : Densities
        Those of the cell are at `at`.
    chances : tuple of vectors
        Probabilities of a stay in the preceding row, of a bad event and from one; then of a step, from bad events and
        skips, of a skip and of a further one.
    came : pair of vectors
        Flows from the preceding k-mer in the preceding row; with correlated noise from match states and from others.
    same : pair of vectors
        Match and bad-event state in the preceding row.
    skipped
        Flow from the preceding k-mer in this row.
    entered
        Flow from outside.
    """
    stay, bad, left_bad, step, from_bad, from_skip, skip, skip_self = chances
    density = wide.widened(densities.free, at)
    if noise is None:
        into = wide.madd(stay, same[0], wide.madd(left_bad, same[1], came[0]))
        good = wide.madd(density, into, entered)
    else:
        into = density * wide.madd(left_bad, same[1], came[1])
        into = wide.madd(wide.widened(densities.stay, at), stay * same[0], into)
        good = wide.madd(wide.widened(densities.step, at), came[0], into) + entered
    wrong = bad * (same[0] + same[1])
    left = from_bad * wrong
    others = wide.madd(from_skip, skipped, left)
    out = wide.madd(step, good, others) if noise is None else step * good
    return good, wrong, out, others, wide.madd(skip_self, skipped, wide.madd(skip, good, left))


@inner
def states_before(noise, densities, at, chances, same, after, skipped, finish):
    """Compute the backward values of a cell's states, and the flows back from them.

    Return the values of the match and bad-event state, as in `backward`. For the preceding k-mer return the values
    after a match state in this row, preceded by a match state or another one, and the value after a skip.

    Parameters
    ----------
    densities : Densities
        Those of the cell are at `at`.
    chances : tuple of vectors
        Probabilities of a stay and of a step, from bad events and skips, of a bad event, of a skip and of a further
        one.
    same : pair of vectors
        Values of the match and bad-event state in the row below.
    after : pair of vectors
        Values of the next k-mer in the row below, preceded by a match state or another one.
    skipped
        Value of the next k-mer in this row.
    finish
        Probability of the end.
    """
    stay, step, from_bad, from_skip, bad, skip, skip_self = chances
    match, wrong = same
    density = wide.widened(densities.free, at)
    finished = wide.madd(bad, wrong, finish)
    into = wide.madd(step, after[0], wide.madd(skip, skipped, finished))
    if noise is None:
        good = density * wide.madd(stay, match, into)
        any_match = match + after[1]
        on = on_free = match
    else:
        good = wide.madd(stay, match * wide.widened(densities.stay, at), into)
        any_match = wide.madd(match, density, after[1])
        on, on_free = match * wide.widened(densities.step, at), match * density
    wrong = wide.madd(from_bad, any_match + skipped, finished)
    return good, wrong, on, on_free, wide.madd(skip_self, skipped, wide.madd(from_skip, after[1], finish))


@inner
def entered(factor_and_exponent, scale):
    """Return the entering flow over ``2 ** scale``."""
    factor, exponent = factor_and_exponent
    whole = wide.floor(exponent)
    return factor * wide.exp2(exponent - whole) * wide.power2(whole - scale)


@inner
def ended(end, scale):
    """Return the probability of the end after a row, over ``2 ** scale``; 0 for padding rows."""
    whole = wide.floor(end)
    ended = wide.exp2(end - whole) * wide.power2(whole - scale)
    return wide.select(wide.ge(end, wide.splat(0.5 * NEVER)), ended, wide.splat(0.0))
