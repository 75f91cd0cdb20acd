"""Memory of packs of windows, and jitted densities of their events; see `f5py.methylation._site_hmm_numba`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit import simd
from f5py.jit import simd_double as wide
from f5py.jit.kernel import kernel
from f5py.methylation._hmm_numba import background

LANES = wide.LANES
#: Stands for the logarithm of zero.
NEVER = -1e30
#: Densities that are kept for the backward algorithm; of windows with more they are computed again.
_MOST_DENSITIES = 1 << 19


class Densities(NamedTuple):
    """Densities of the events in all k-mers and lanes, row by row if there is room for all rows, else of one row.

    `stay` and `step` are used with correlated noise only.
    """

    free: NDArray[np.float32]
    stay: NDArray[np.float32]
    step: NDArray[np.float32]
    is_kept: bool  # whether they are of all rows


class Room(NamedTuple):
    """Memory that is taken once for many packs: what all threads would ask the system for, they would wait for."""

    # work: begins at a multiple of 64 bytes, as all that is taken of it: no vector lies in two lines of the cache
    work: NDArray[np.float64]
    used: NDArray[np.int64]  # shape (1,): so many of its elements are taken


@kernel
def room_of(n):
    """Room for `n` doubles."""
    work = np.empty(n + LANES)
    first = -(work.ctypes.data >> 3) & (LANES - 1)
    return Room(work[first : first + n], np.zeros(1, np.int64))


@kernel
def empty(room, n):
    """Take an array of `n` doubles."""
    first = room.used[0]
    room.used[0] = first + (n + LANES - 1) // LANES * LANES
    return room.work[first : first + n]


@kernel
def zeros(room, n):
    """Take an array of `n` doubles, filled with zeros."""
    array = empty(room, n)
    array[:] = 0.0
    return array


@kernel
def empty_floats(room, n):
    """Take an array of single precision."""
    return empty(room, (n + 1) // 2).view(np.float32)[:n]


@kernel
def numbers(room, n, value):
    """Take an array of integers that are all `value`."""
    array = empty(room, n).view(np.int64)
    array[:] = value
    return array


@kernel
def room_needed(rows, n_kmers, per_kmer, n_slots):
    """Doubles that a pack of that size takes, at most."""
    size = (n_kmers + 1) * per_kmer + 2 * LANES
    densities = min(size * rows, _MOST_DENSITIES) + size
    of_pack = 2 * LANES * rows + 5 * size + 20 * n_kmers
    of_rows = rows * (LANES + per_kmer) + n_slots * rows * 3 * per_kmer
    return of_pack + of_rows + 2 * densities + 14 * size + (n_slots + 1) * per_kmer + 60 * LANES


@kernel
def room_for_densities(room, size, rows, noise):
    """Arrays for the densities of all rows, or of one: `size` of them in a row."""
    is_kept = size * rows <= _MOST_DENSITIES
    n = size * rows if is_kept else size
    some = 0 if noise is None else n
    return Densities(empty_floats(room, n), empty_floats(room, some), empty_floats(room, some), is_kept)


@kernel
def _fourth_power(value):
    square = value * value
    return square * square


@kernel
def fill_independent(events, inverse, offset, constant, row, free, first):
    """Fill the densities of the events of `row` with independent noise, from `first` on."""
    event = simd.load(events, row * simd.LANES)
    for at in range(0, inverse.shape[0], simd.LANES):
        z = simd.madd(event, simd.load(inverse, at), simd.load(offset, at))
        simd.store(free, first + at, simd.exp2(simd.load(constant, at) - z * z))


@kernel
def fill_correlated(
    events, inverse, offset, constant, inverse_before, offset_before, row, before, noise, free, stay, step, first
):
    """Fill the densities of the events of `row`, after those of the row `before`, from `first` on."""
    event = simd.load(events, row * simd.LANES)
    event_before = simd.load(events, before * simd.LANES)
    one = simd.splat(np.float32(1.0))
    stay_now = simd.splat(np.float32(noise.stay_now))
    stay_before = simd.splat(np.float32(noise.stay_before))
    step_now = simd.splat(np.float32(noise.step_now))
    step_before = simd.splat(np.float32(noise.step_before))
    square = simd.splat(np.float32(noise.square))
    for at in range(0, inverse.shape[0], simd.LANES):
        slope, shift = simd.load(inverse, at), simd.load(offset, at)
        z = simd.madd(event, slope, shift)
        # residuals of the event before, in this k-mer and in the one before
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


@kernel
def entry(events, inverse, offset, constant, row, noise):
    """Compute the density of the events of `row` at the entry, of any exponent, times the background before.

    Return a factor and the base-two logarithm of the rest.
    """
    slope = wide.widened(inverse, 0)
    w = wide.madd(wide.widened(events, row * simd.LANES), slope, wide.widened(offset, 0))
    before = wide.splat(np.float64(background(row)))
    one = wide.splat(1.0)
    if noise is None:
        return one, wide.widened(constant, 0) - w * w + before
    weight = wide.splat(np.float64(noise.free_weight))
    if noise.is_student:
        fourth = one / wide.madd(w * wide.splat(np.float64(noise.square)), w, one)
        fourth = fourth * fourth
        density = slope * weight * (fourth * fourth)
        exponent = wide.exponent(density)
        return density * wide.power2(wide.splat(0.0) - exponent), exponent + before
    return weight, wide.widened(constant, 0) - w * w + before
