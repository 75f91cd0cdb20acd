"""Packs of windows whose sites are scored: what they hold, their memory, and jitted densities of their events.

See `f5py.methylation._site_hmm_numba`.
"""

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


class Way(NamedTuple):
    """The cells of all k-mers, on the way forward or back: vectors that differ.

    Those of a k-mer are in the order of the states that they stand for.
    """

    bits: NDArray[np.int64]  # shape (n_kmers,): bits of the number of a vector in which those of a k-mer differ
    first: NDArray[np.int64]  # shape (n_kmers + 1,): first cell of each k-mer
    # source: shape (n_cells,): the cell of the k-mer before, or on the way back of the next one, with the same states;
    # `n_cells` where there is no such k-mer
    source: NDArray[np.int64]
    # pairs: shape (w * n_kmers,): for each of the w bits of a state, which bit of the number of the k-mer's cell it is;
    # -1 if it does not matter there
    pairs: NDArray[np.int64]
    # stops: k-mers at which something is done before the next ones: a stretch from one of them to the next is gone
    # through at once
    stops: NDArray[np.int64]


class Course(NamedTuple):
    """What happens to the states of a pack's sites on the way through its k-mers."""

    onward: Way
    back: Way  # with a cell for every density; those of the k-mers come one after the other here, too
    place: NDArray[np.int64]  # shape (n_cells,): where each cell on the way forward has its densities
    # across: shape (n_cells,): for each cell on the way forward, that of the next k-mer on the way back
    across: NDArray[np.int64]
    last: NDArray[np.int64]  # shape (n_kmers,): the lanes, as bits, whose last k-mer it is
    last_kmers: NDArray[np.int64]  # the k-mers that are the last one in any lane
    # changes: shape (n_kmers,): bits of the state that change from one site to another on the way into the k-mer
    changes: NDArray[np.int64]
    changed: NDArray[np.int64]  # shape (w * n_kmers,): the lanes in which each of the w bits does
    # slot: shape (n_kmers,): number of the k-mer among those into which bit 0 changes in any of the windows, or -1
    slot: NDArray[np.int64]


class Pack(NamedTuple):
    """Windows that are solved side by side."""

    width: int  # the most sites that share a k-mer in each window
    low: int  # bits of a state that are in the lanes
    course: Course
    # stay, step: shape (8,): probabilities of each lane's read
    stay: NDArray[np.float64]
    step: NDArray[np.float64]
    # events: shape (16 * rows,): means: each row's eight lanes twice; a window that has fewer repeats its last one
    events: NDArray[np.float32]
    # after: shape (8 * rows,): base-two logarithm of the probability of the events after the row as background, in each
    # lane; `NEVER` in rows that a window does not have
    after: NDArray[np.float64]
    # inverse, offset, constant: emissions as `f5py.methylation._hmm_numba.forward_lanes` has them; after a window's
    # last k-mer `inverse` is 0 and `constant` never
    inverse: NDArray[np.float32]
    offset: NDArray[np.float32]
    constant: NDArray[np.float32]
    # inverse_before, offset_before: those of the k-mer before; used with correlated noise only
    inverse_before: NDArray[np.float32]
    offset_before: NDArray[np.float32]


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
def next_vector(v, bits):
    """Return the number of the next vector of those that differ in some bits only; 0 after the last one."""
    return ((v | ~bits) + 1) & bits


@kernel
def cell_of(v, bits):
    """Return which of the cells that differ in some bits stands for vector v."""
    cell = 0
    n = 0
    while bits > 0:
        if bits & 1:
            cell |= (v & 1) << n
            n += 1
        v >>= 1
        bits >>= 1
    return cell


@kernel
def _way(bits, shape, stops, room):
    """Count the cells of each k-mer, whose vectors differ in `bits`; sources are left out."""
    width, low = shape
    n_kmers = bits.shape[0]
    first, pairs = numbers(room, n_kmers + 1, 0), numbers(room, n_kmers * width, -1)
    for j in range(n_kmers):
        n = 0
        for bit in range(low, width):
            if bits[j] >> (bit - low) & 1:
                pairs[j * width + bit] = n
                n += 1
        first[j + 1] = first[j] + (1 << n)
    return Way(bits, first, numbers(room, first[n_kmers], first[n_kmers]), pairs, stops)


@kernel
def make_course(windows, chosen, size, k, is_correlated, room):
    """Find where the states of sites matter and where they change, in a pack of the windows `chosen`.

    Return the number of slots as well. `windows` are `f5py.methylation._site_windows_numba.SiteWindows`, and `size` is
    the width, its bits in lanes and the most k-mers.
    """
    width, low, n_kmers = size
    onward, back = numbers(room, n_kmers, 0), numbers(room, n_kmers, 0)
    last, changes, changed = numbers(room, n_kmers, 0), numbers(room, n_kmers, 0), numbers(room, n_kmers * width, 0)
    slot = numbers(room, n_kmers, -1)
    for i in range(chosen.shape[0]):
        window = chosen[i]
        own_kmers = windows.n_bases[window] - k + 1
        of_window = (1 << (1 << low)) - 1 << (i << low)
        last[own_kmers - 1] |= of_window
        first = windows.site[window]
        bit = -1
        for site in range(windows.n_sites[window]):
            bit = bit + 1 if bit + 1 < width else 0
            modified = windows.modified[first + site]
            enters = modified - k + 1
            for j in range(enters, min(modified + 1, own_kmers)):
                back[j] |= 1 << bit
            onward[enters] |= 1 << bit
            if site >= width:
                changes[enters] |= 1 << bit
                changed[enters * width + bit] |= of_window
                if bit == 0:
                    slot[enters] = 0
    if is_correlated:  # the density of a step is that of two k-mers
        for j in range(n_kmers - 1, 0, -1):
            back[j] |= back[j - 1]
    entered = 0
    n_slots = 0
    n_stops, n_last, n_stops_back = 0, 0, 0
    stops, last_kmers, stops_back = numbers(room, n_kmers, 0), numbers(room, n_kmers, 0), numbers(room, n_kmers, 0)
    for j in range(n_kmers):
        entered |= onward[j]
        onward[j] = entered >> low
        back[j] >>= low
        if slot[j] >= 0:
            slot[j] = n_slots
            n_slots += 1
        if last[j]:
            last_kmers[n_last] = j
            n_last += 1
        if j == 1 or changes[j]:  # only the first k-mer is entered
            stops[n_stops] = j
            n_stops += 1
    stops[n_stops] = n_kmers
    for j in range(n_kmers - 1, -1, -1):
        if changes[j] or last[j] or (j > 0 and last[j - 1]):
            stops_back[n_stops_back] = j
            n_stops_back += 1
        if slot[j] == 0:
            break
    shape = width, low
    way, way_back = (
        _way(onward, shape, stops[: n_stops + 1], room), _way(back, shape, stops_back[:n_stops_back], room)
    )  # fmt: skip
    place, across = numbers(room, way.source.shape[0], 0), numbers(room, way.source.shape[0], 0)
    cell = 0
    cell_back = 0
    for j in range(n_kmers):
        v = 0
        while True:
            if j > 0:
                way.source[cell] = way.first[j - 1] + cell_of(v, onward[j - 1])
            place[cell] = (way_back.first[j] + cell_of(v, back[j])) * LANES
            if j + 1 < n_kmers:
                across[cell] = way_back.first[j + 1] + cell_of(v, back[j + 1])
            cell += 1
            v = next_vector(v, onward[j])
            if v == 0:
                break
        while j + 1 < n_kmers:
            way_back.source[cell_back] = way_back.first[j + 1] + cell_of(v, back[j + 1])
            cell_back += 1
            v = next_vector(v, back[j])
            if v == 0:
                break
    return Course(way, way_back, place, across, last, last_kmers[:n_last], changes, changed, slot), n_slots


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
