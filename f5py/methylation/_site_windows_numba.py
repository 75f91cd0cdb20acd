"""Jitted loops that score every site in windows; see `f5py.methylation.per_site` for the mathematics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.hmm import P_BAD, P_SKIP
from f5py.jit import simd
from f5py.jit import simd_double as wide
from f5py.jit.kernel import kernel
from f5py.methylation._calls_numba import CODES, METHYLATED, fill_emissions, fill_ranks
from f5py.methylation._hmm_numba import Emissions, background, stay_probability
from f5py.methylation._site_densities_numba import (
    NEVER,
    Course,
    Pack,
    empty,
    empty_floats,
    numbers,
    room_for_densities,
    room_needed,
    room_of,
    zeros,
)
from f5py.methylation._site_hmm_numba import LANES, backward, forward, greatest_of_window, next_vector

#: Bits of a state that are numbers of vectors, at most, unless the lanes have no room for the others.
_MOST_HIGH = 3
_LANE_BITS = 3


class Fits(NamedTuple):
    """Relation of the events to the model, window by window.

    A k-mer's events are about ``scale * level_mean + shift``, with ``var * level_stdv`` around that; shift in pA.
    """

    shift: NDArray[np.float32]
    scale: NDArray[np.float32]
    var: NDArray[np.float32]
    events_per_base: NDArray[np.float64]


class SiteWindows(NamedTuple):
    """Windows that have several sites, or any."""

    # codes: bases of all windows on their read's strand in forward order, see `fill_plain`; no site methylated
    codes: NDArray[np.uint8]
    # modified: where in its window the base is that a site changes: ascending within a window, and none under the first
    # k-mer
    modified: NDArray[np.int64]
    # base, n_bases: shape (n,): first element of each window in `codes`, and how many it has
    base: NDArray[np.int64]
    n_bases: NDArray[np.int64]
    # site, n_sites: shape (n,): the same in `modified`
    site: NDArray[np.int64]
    n_sites: NDArray[np.int64]
    # begin, end: shape (n,): first and last event in the order of the window's bases; `end` may be less than `begin`
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    # width: shape (n,): the most sites that share a k-mer, or, with correlated noise, k + 1 bases: a step's density is
    # that of two k-mers, so that both need the states of their sites
    width: NDArray[np.int64]
    reverse: NDArray[np.bool_]  # shape (n,): strand of the read
    fits: Fits


class PackSize(NamedTuple):
    """Size of a pack of windows."""

    width: int  # sites whose states are told apart at a time
    low: int  # of them in the lanes, see `f5py.methylation._site_hmm_numba`
    # rows, n_kmers: most events and k-mers of a window
    rows: int
    n_kmers: int


@kernel
def _lane_bits(width):
    """Return how many bits of a state are in the lanes, so that a pack of windows with many sites stays small."""
    return min(max(width - _MOST_HIGH, 0), _LANE_BITS)


@kernel
def _size_of(windows, chosen, k):
    """Count the rows and k-mers of a pack of the windows `chosen`, and at most how many slots it has."""
    rows = np.int64(0)
    n_kmers = np.int64(0)
    n_slots = np.int64(0)
    for i in range(chosen.shape[0]):
        window = chosen[i]
        rows = max(rows, abs(windows.end[window] - windows.begin[window]) + 1)
        n_kmers = max(n_kmers, windows.n_bases[window] - k + 1)
        n_slots += (windows.n_sites[window] - 1) // windows.width[window]
    return rows, n_kmers, min(n_slots, n_kmers)


@kernel
def _make_course(windows, chosen, size, k, is_correlated, room):
    """Find where the states of sites matter and where they change; return the number of emissions as well."""
    width, low, _, n_kmers = size
    vectors = 1 << (width - low)
    course = Course(
        numbers(room, n_kmers * vectors, 0), numbers(room, n_kmers, 0), numbers(room, n_kmers, 0),
        numbers(room, n_kmers, 0), numbers(room, n_kmers, 0), numbers(room, n_kmers * width, 0),
        numbers(room, n_kmers, -1),
    )  # fmt: skip
    place, onward, back, last, changes, changed, slot = course
    for i in range(chosen.shape[0]):
        window = chosen[i]
        own_kmers = windows.n_bases[window] - k + 1
        of_window = (1 << (1 << low)) - 1 << (i << low)
        last[own_kmers - 1] |= of_window
        first = windows.site[window]
        for site in range(windows.n_sites[window]):
            modified = windows.modified[first + site]
            bit = site % width
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
    n_elements = 0
    n_slots = 0
    for j in range(n_kmers):
        entered |= onward[j]
        onward[j] = entered >> low
        bits = back[j] = back[j] >> low
        for v in range(vectors):
            if v & ~bits == 0:
                place[j * vectors + v] = n_elements
                n_elements += LANES
            else:
                place[j * vectors + v] = place[j * vectors + (v & bits)]
        if slot[j] >= 0:
            slot[j] = n_slots
            n_slots += 1
    return course, n_elements, n_slots


@kernel
def _fill_kmers(window, k, powers, shape, course, first_lane, kmers):
    """Fill the ranks of the k-mers of a window, given by its codes, its sites and its ranks without methylated bases.

    A state's k-mer is that of another one where the states that the two differ in are of no site here. `powers` are the
    weights of a k-mer's bases in its rank, `shape` is a pack's width and its bits in lanes.
    """
    codes, modified, ranks = window
    width, low = shape
    vectors = 1 << (width - low)
    place, back = course.place, course.back
    changes = np.empty(width, np.int64)
    sums = np.empty(1 << width, np.int64)
    first = 0
    for j in range(ranks.shape[0]):
        while first < modified.shape[0] and modified[first] < j:
            first += 1
        changes[:] = 0  # of the rank, by the state of the site with that bit
        i = first
        while i < modified.shape[0] and modified[i] < j + k:
            changes[i % width] = (METHYLATED - np.int64(codes[modified[i]])) * powers[modified[i] - j]
            i += 1
        sums[0] = ranks[j]
        n = 1
        for bit in range(width):
            for state in range(n):
                sums[n + state] = sums[state] + changes[bit]
            n *= 2
        v = 0
        while True:
            at = place[j * vectors + v] + first_lane
            for lane in range(1 << low):
                kmers[at + lane] = sums[(v << low) + lane]
            v = next_vector(v, back[j])
            if v == 0:
                break


@kernel
def _fill_before(pack, n_kmers, vectors):
    """Copy the emissions of each k-mer to the next one's."""
    place, inverse, offset = pack.course.place, pack.inverse_before, pack.offset_before
    inverse[:] = np.float32(0.0)
    offset[:] = np.float32(0.0)
    for i in range(vectors, n_kmers * vectors):
        at, source = place[i], place[i - vectors]
        for lane in range(LANES):
            inverse[at + lane] = pack.inverse[source + lane]
            offset[at + lane] = pack.offset[source + lane]


@kernel
def _fill_rows(windows, chosen, low, event_mean, pack):
    """Fill the events of all lanes, and what the background after them has."""
    rows = pack.after.shape[0] // LANES
    events, background_after = pack.events, pack.after
    for i in range(chosen.shape[0]):
        begin, end = windows.begin[chosen[i]], windows.end[chosen[i]]
        stride = 1 if begin < end else -1
        own_rows = abs(end - begin) + 1
        for row in range(rows):
            x = event_mean[begin + stride * min(row, own_rows - 1)]
            after = np.float64(background(own_rows - 1 - row)) if row < own_rows else NEVER
            for lane in range(i << low, (i + 1) << low):
                events[row * simd.LANES + lane] = x
                events[row * simd.LANES + LANES + lane] = x
                background_after[row * LANES + lane] = after


@kernel
def _make_pack(windows, chosen, size, event_mean, model, noise, room):
    """Make the pack of the windows `chosen`, one for each lane or lanes; a window may be in it several times.

    Return it with the number of its slots.
    """
    width, low, rows, n_kmers = size
    k = model.k
    vectors = 1 << (width - low)
    course, n_elements, n_slots = _make_course(windows, chosen, size, k, noise is not None, room)
    n_elements = (n_elements + simd.LANES - 1) // simd.LANES * simd.LANES
    of_before = 0 if noise is None else n_elements
    pack = Pack(
        width, low, course, empty(room, LANES), empty(room, LANES), empty_floats(room, rows * simd.LANES),
        empty(room, rows * LANES), empty_floats(room, n_elements), empty_floats(room, n_elements),
        empty_floats(room, n_elements), empty_floats(room, of_before), empty_floats(room, of_before),
    )  # fmt: skip
    kmers = numbers(room, n_elements, -1)
    ranks = np.empty(n_kmers, np.int64)
    powers = np.empty(k, np.int64)
    fits = np.empty(4 * simd.LANES, np.float32)
    for i in range(chosen.shape[0]):
        window = chosen[i]
        codes = windows.codes[windows.base[window] : windows.base[window] + windows.n_bases[window]]
        modified = windows.modified[windows.site[window] : windows.site[window] + windows.n_sites[window]]
        own_kmers = codes.shape[0] - k + 1
        reverse = windows.reverse[window]
        power = np.int64(1)
        for base in range(k):
            powers[base if reverse else k - 1 - base] = power
            power *= CODES
        fill_ranks(codes, k, reverse, own_kmers, ranks)
        _fill_kmers((codes, modified, ranks[:own_kmers]), k, powers, (width, low), course, i << low, kmers)
        var, p_stay = windows.fits.var[window], stay_probability(windows.fits.events_per_base[window])
        ln_var = np.float32(np.log(var))
        for lane in range(i << low, (i + 1) << low):
            for at in range(lane, simd.LANES, LANES):
                fits[at], fits[simd.LANES + at] = windows.fits.shift[window], windows.fits.scale[window]
                fits[2 * simd.LANES + at], fits[3 * simd.LANES + at] = var, ln_var
            pack.stay[lane], pack.step[lane] = p_stay, 1.0 - p_stay - P_SKIP - P_BAD
    _fill_rows(windows, chosen, low, event_mean, pack)
    of_lanes = (
        simd.load(fits, 0), simd.load(fits, simd.LANES), simd.load(fits, 2 * simd.LANES),
        simd.load(fits, 3 * simd.LANES),
    )  # fmt: skip
    fill_emissions(kmers, model, of_lanes, Emissions(pack.inverse, pack.offset, pack.constant))
    if noise is not None:
        _fill_before(pack, n_kmers, vectors)
    return pack, n_slots


@kernel
def _score_pack(pack, n_slots, noise, reference, room):
    """Solve a pack; fill `reference`, float64 of shape (8,).

    Return the probability of the events by the states of sites, by slot, vector and lane: at last that of the last
    sites.
    """
    rows = pack.after.shape[0] // LANES
    per_kmer = LANES << (pack.width - pack.low)
    kept = empty(room, n_slots * rows * 3 * per_kmer)
    scales = empty(room, rows * LANES)
    ends = zeros(room, rows * per_kmer)
    densities = room_for_densities(room, pack.inverse.shape[0], rows, noise)
    forward(pack, noise, densities, scales, ends, kept, room)

    best = wide.splat(NEVER)
    for row in range(rows):
        greatest = wide.load(ends, row * per_kmer)
        for v in range(LANES, per_kmer, LANES):
            greatest = wide.maximum(greatest, wide.load(ends, row * per_kmer + v))
        greatest = wide.exponent(greatest_of_window(greatest, pack.low))
        after = wide.floor(wide.load(pack.after, row * LANES))
        best = wide.maximum(best, wide.load(scales, row * LANES) + after + greatest)
    wide.store(reference, 0, best)
    masses = zeros(room, (n_slots + 1) * per_kmer)
    for row in range(rows):
        after = wide.load(pack.after, row * LANES)
        whole = wide.floor(after)
        exponent = wide.load(scales, row * LANES) + whole - best
        half = wide.floor(wide.splat(0.5) * exponent)
        factor, other = wide.power2(half), wide.power2(exponent - half) * wide.exp2(after - whole)
        for v in range(0, per_kmer, LANES):
            at = n_slots * per_kmer + v
            mass = wide.load(ends, row * per_kmer + v) * factor
            wide.store(masses, at, wide.madd(mass, other, wide.load(masses, at)))
    if n_slots > 0:
        backward(pack, noise, densities, scales, kept, reference, masses, room)
    return masses


class Shares(NamedTuple):
    """Probabilities of the events of windows by the states of each site."""

    # shape (n_sites, 2): with the site methylated and with it unmethylated, over two to the power of its window's
    # exponent
    sites: NDArray[np.float64]
    exponents: NDArray[np.float64]  # shape (n,)


@kernel
def _share(masses, first, shape, bit, state):
    """Add up a window's states, from `first` on, in which `bit` has that state."""
    width, low = shape
    total = 0.0
    for one in range(1 << width):
        if (one >> bit & 1 != 0) == state:
            total += masses[first + (one >> low) * LANES + (one & (1 << low) - 1)]
    return total


@kernel
def _finish_window(windows, window, k, pack, masses, first_lane, shares):
    """Fill the shares of a window's sites."""
    width, slot = pack.width, pack.course.slot
    shape = width, pack.low
    per_kmer = LANES << (width - pack.low)
    n_slots = masses.shape[0] // per_kmer - 1
    first = windows.site[window]
    n_sites = windows.n_sites[window]
    for i in range(n_sites):
        # The flow into the k-mer that the next block of sites begins with tells the states of this one's.
        block = (i // width + 1) * width
        of_block = n_slots if block >= n_sites else slot[windows.modified[first + block] - k + 1]
        at = of_block * per_kmer + first_lane
        shares.sites[first + i, 0] = _share(masses, at, shape, i % width, True)
        shares.sites[first + i, 1] = _share(masses, at, shape, i % width, False)


@kernel
def find_shares(windows, event_mean, model, noise, room, shares):
    """Find the probability of each window's events with each of its sites methylated or not, whatever the others are.

    Windows that are alike should come one after the other. Return the room, which may be a larger one.

    Parameters
    ----------
    windows : SiteWindows
    event_mean : float32
        In pA.
    model : f5py.pore_model.model.Levels
        Over the alphabet ACGMT.
    noise : f5py.methylation.correlated.Terms or None
    room : f5py.methylation._site_densities_numba.Room
    shares : Shares
        Filled, those of sites at the places that they have in `windows.modified`.
    """
    count = windows.width.shape[0]
    reference = np.empty(LANES)
    several = np.empty(LANES, np.int64)
    mode = simd.flush_denormals()
    first = 0
    while first < count:
        width = windows.width[first]
        low = _lane_bits(width)
        chosen = several[: LANES >> low]
        n = 1
        while n < chosen.shape[0] and first + n < count and windows.width[first + n] == width:
            n += 1
        for i in range(chosen.shape[0]):
            chosen[i] = first + min(i, n - 1)
        rows, n_kmers, most_slots = _size_of(windows, chosen, model.k)
        needed = room_needed(rows, n_kmers, LANES << (width - low), most_slots)
        if needed > room.work.shape[0]:
            room = room_of(needed + needed // 2)
        room.used[0] = 0
        size = PackSize(width, low, rows, n_kmers)
        pack, n_slots = _make_pack(windows, chosen, size, event_mean, model, noise, room)
        masses = _score_pack(pack, n_slots, noise, reference, room)
        for i in range(n):
            shares.exponents[first + i] = reference[i << low]
            _finish_window(windows, first + i, model.k, pack, masses, i << low, shares)
        first += n
    simd.restore_mode(mode)
    return room
