"""Jitted scoring of every site in windows; see `f5py.methylation.per_site` for the mathematics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.hmm import P_BAD, P_SKIP
from f5py.jit import simd
from f5py.jit import simd_double as wide
from f5py.jit.kernel import inner
from f5py.methylation._calls_numba import CODES, fill_emissions
from f5py.methylation._hmm_numba import (
    FIRST_BACKGROUND,
    MORE_BACKGROUND,
    NO_BACKGROUND,
    Emissions,
    stay_probability,
)
from f5py.methylation._site_densities_numba import (
    NEVER,
    ROWS,
    arena_size,
    make_arena,
    take_densities,
    take_doubles,
    take_floats,
    take_integers,
    take_zeros,
)
from f5py.methylation._site_hmm_numba import LANES, backward, forward, greatest_of_window
from f5py.methylation._site_layout_numba import (
    WindowPack,
    are_alike,
    cell_of,
    fill_kmers,
    fill_lane_ranks,
    lane_bits,
    lay_out_pack,
    list_changes,
    next_vector,
)


class WindowScalings(NamedTuple):
    """Relation of the events to the model, window by window.

    Events of a k-mer have mean ``scale * level_mean + shift`` in pA and standard deviation ``var * level_stdv``.
    """

    shift: NDArray[np.float32]
    scale: NDArray[np.float32]
    var: NDArray[np.float32]
    events_per_base: NDArray[np.float64]


class SiteWindows(NamedTuple):
    """Windows of groups with any number of sites."""

    codes: NDArray[np.uint8]  # unmethylated bases of all windows, see `fill_plain`
    # modified: position of each site's modified base, ascending within a window, none under the first k-mer
    modified: NDArray[np.int64]
    # base, n_bases: shape (n,): first element and number of elements of each window in `codes`
    base: NDArray[np.int64]
    n_bases: NDArray[np.int64]
    # site, n_sites: shape (n,): the same in `modified`
    site: NDArray[np.int64]
    n_sites: NDArray[np.int64]
    # begin, end: shape (n,): first and last event in the order of the bases; `end` may be less than `begin`
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    # width: shape (n,): the most sites in k bases, or with correlated noise k + 1: a step's density depends on two
    # k-mers
    width: NDArray[np.int64]
    reverse: NDArray[np.bool_]  # shape (n,): strand of the read
    fits: WindowScalings


class PackSize(NamedTuple):
    """Size of a pack of windows."""

    width: int  # sites with distinguished states at a k-mer
    low: int  # of them in the lanes, see `f5py.methylation._site_hmm_numba`
    # rows, n_kmers: most events and k-mers of a window
    rows: int
    n_kmers: int


@inner
def _size_of(windows, chosen, k):
    """Return the rows and k-mers of a pack of the windows `chosen`, and its maximum number of slots."""
    begins, ends, n_bases, n_sites, widths = (
        windows.begin, windows.end, windows.n_bases, windows.n_sites, windows.width
    )  # fmt: skip
    rows = np.int64(0)
    n_kmers = np.int64(0)
    n_slots = np.int64(0)
    for i in range(chosen.shape[0]):
        window = chosen[i]
        rows = max(rows, abs(ends[window] - begins[window]) + 1)
        n_kmers = max(n_kmers, n_bases[window] - k + 1)
        n_slots += (n_sites[window] - 1) // widths[window]
    return (rows + ROWS - 1) // ROWS * ROWS, n_kmers, min(n_slots, n_kmers)


@inner
def _fill_before(pack):
    """Copy the emissions of each k-mer to the next one."""
    bits, first = pack.course.back.bits, pack.course.back.first
    inverse, offset = pack.inverse_before, pack.offset_before
    inverse[:] = np.float32(0.0)
    offset[:] = np.float32(0.0)
    for j in range(1, bits.shape[0]):
        v = 0
        for cell in range(first[j], first[j + 1]):
            source = (first[j - 1] + cell_of(v, bits[j - 1])) * LANES
            for lane in range(LANES):
                inverse[cell * LANES + lane] = pack.inverse[source + lane]
                offset[cell * LANES + lane] = pack.offset[source + lane]
            v = next_vector(v, bits[j])


@inner
def _fill_rows(windows, chosen, low, event_mean, pack, room):
    """Fill the events of all lanes and the background after them."""
    rows = pack.events.shape[0] // LANES
    events, begins, ends = pack.events, windows.begin, windows.end
    last_rows = take_floats(room, simd.LANES)
    for i in range(chosen.shape[0]):
        begin, end = begins[chosen[i]], ends[chosen[i]]
        stride = 1 if begin < end else -1
        own_rows = abs(end - begin) + 1
        for lane in range(i << low, (i + 1) << low):
            at = lane
            for event in range(begin, end + stride, stride):
                events[at] = event_mean[event]
                at += LANES
            for _ in range(own_rows, rows):
                events[at] = event_mean[end]
                at += LANES
            last_rows[lane] = last_rows[LANES + lane] = np.float32(own_rows - 1)
    one, zero, never = simd.splat(np.float32(1.0)), simd.splat(np.float32(0.0)), simd.splat(np.float32(NEVER))
    none, first = simd.splat(NO_BACKGROUND), simd.splat(FIRST_BACKGROUND)
    more = simd.splat(MORE_BACKGROUND)
    count = simd.load(last_rows, 0)  # of background events
    for row in range(rows):
        several = simd.madd(count - one, more, first)
        after = simd.select(simd.ge(count, one), several, none)
        simd.store(pack.after, row * simd.LANES, simd.select(simd.ge(count, zero), after, never))
        count = count - one


@inner
def _make_pack(windows, chosen, size, course, event_mean, model, noise, room):
    """Make the pack of the windows `chosen`, perhaps repeated, for one or more lanes each."""
    width, low, rows, n_kmers = size
    k = model.k
    n_elements = (course.back.source.shape[0] * LANES + simd.LANES - 1) // simd.LANES * simd.LANES
    of_before = 0 if noise is None else n_elements
    pack = WindowPack(
        width, low, course, take_doubles(room, LANES), take_doubles(room, LANES), take_floats(room, rows * LANES),
        take_floats(room, rows * simd.LANES), take_floats(room, n_elements), take_floats(room, n_elements),
        take_floats(room, n_elements), take_floats(room, of_before), take_floats(room, of_before),
    )  # fmt: skip
    codes_of_lanes, powers = take_zeros(room, (n_kmers + k - 1) * LANES), take_doubles(room, k * LANES)
    ranks, changes = take_doubles(room, n_kmers * LANES), take_zeros(room, n_kmers * width * LANES)
    fits = take_floats(room, 4 * simd.LANES)
    all_codes, base, n_bases, reverses = windows.codes, windows.base, windows.n_bases, windows.reverse
    all_modified, site, n_sites = windows.modified, windows.site, windows.n_sites
    shifts, scales, variances, per_base = windows.fits
    stay, step = pack.stay, pack.step
    for i in range(chosen.shape[0]):
        window = chosen[i]
        codes = all_codes[base[window] : base[window] + n_bases[window]]
        reverse = reverses[window]
        var, p_stay = variances[window], stay_probability(per_base[window])
        ln_var = np.float32(np.log(var))
        for lane in range(i << low, (i + 1) << low):
            at = lane
            for place in range(codes.shape[0]):
                codes_of_lanes[at] = np.float64(codes[place])
                at += LANES
            power = 1.0
            for place in range(k):
                powers[(place if reverse else k - 1 - place) * LANES + lane] = power
                power *= CODES
            for at in range(lane, simd.LANES, LANES):
                fits[at], fits[simd.LANES + at] = shifts[window], scales[window]
                fits[2 * simd.LANES + at], fits[3 * simd.LANES + at] = var, ln_var
            stay[lane], step[lane] = p_stay, 1.0 - p_stay - P_SKIP - P_BAD
    fill_lane_ranks(codes_of_lanes, powers, ranks)
    for i in range(chosen.shape[0]):
        window = chosen[i]
        codes = all_codes[base[window] : base[window] + n_bases[window]]
        modified = all_modified[site[window] : site[window] + n_sites[window]]
        own_kmers = codes.shape[0] - k + 1
        lanes = range(i << low, (i + 1) << low)
        for lane in lanes:
            for j in range(own_kmers, n_kmers):
                ranks[j * LANES + lane] = -1.0
        list_changes((codes, modified, own_kmers), powers, (width, low), lanes, ranks, changes)
    kmers_of_cells = take_doubles(room, n_elements)
    fill_kmers(ranks, changes, (width, low), course.back, kmers_of_cells)
    n = course.back.source.shape[0] * LANES
    kmers = take_integers(room, n_elements, -1)
    for at in range(n):
        kmers[at] = np.int64(kmers_of_cells[at])
    _fill_rows(windows, chosen, low, event_mean, pack, room)
    of_lanes = (
        simd.load(fits, 0), simd.load(fits, simd.LANES), simd.load(fits, 2 * simd.LANES),
        simd.load(fits, 3 * simd.LANES),
    )  # fmt: skip
    fill_emissions(kmers, model, of_lanes, Emissions(pack.inverse, pack.offset, pack.constant))
    if noise is not None:
        _fill_before(pack)
    return pack


@inner
def _score_pack(pack, n_slots, noise, reference, room):
    """Score a pack and fill `reference`, float64 of shape (8,).

    Return the probability of the events by the states of sites, by slot, vector and lane. The last slot has that of the
    last sites.
    """
    rows = pack.events.shape[0] // LANES
    per_kmer = LANES << (pack.width - pack.low)
    kept = take_doubles(room, n_slots * rows * (2 if noise is None else 3) * per_kmer)
    scales = take_doubles(room, rows * LANES)
    # all are stored if all lanes end with the last k-mer and it has a cell for every vector
    first, last = pack.course.onward.first, pack.course.last
    n_kmers, n_ends = last.shape[0], rows * per_kmer
    of_last = (first[n_kmers] - first[n_kmers - 1]) * LANES
    are_all = of_last == per_kmer and last[n_kmers - 1] == (1 << LANES) - 1
    ends = take_doubles(room, n_ends) if are_all else take_zeros(room, n_ends)
    densities = take_densities(room, pack.inverse.shape[0], rows, noise)
    forward(pack, noise, densities, scales, ends, kept, room)

    best = wide.splat(NEVER)
    for row in range(rows):
        greatest = wide.load(ends, row * per_kmer)
        for v in range(LANES, per_kmer, LANES):
            greatest = wide.maximum(greatest, wide.load(ends, row * per_kmer + v))
        greatest = wide.exponent(greatest_of_window(greatest, pack.low))
        after = wide.floor(wide.widened(pack.after, row * simd.LANES))
        best = wide.maximum(best, wide.load(scales, row * LANES) + after + greatest)
    wide.store(reference, 0, best)
    masses = take_zeros(room, (n_slots + 1) * per_kmer)
    for row in range(rows):
        after = wide.widened(pack.after, row * simd.LANES)
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


class StateLikelihoods(NamedTuple):
    """Probabilities of the events of windows by the states of each site."""

    # shape (n_sites, 2): with the site methylated and unmethylated, over two to the power of its window's exponent
    sites: NDArray[np.float64]
    exponents: NDArray[np.float64]  # shape (n,)


@inner
def _share(masses, first, shape, bit, state):
    """Add up a window's states, from `first` on, with `bit` equal to `state`."""
    width, low = shape
    total = 0.0
    for one in range(1 << width):
        if (one >> bit & 1 != 0) == state:
            total += masses[first + (one >> low) * LANES + (one & (1 << low) - 1)]
    return total


@inner
def _finish_windows(windows, which, k, pack, masses, shares):
    """Fill the shares of the sites of windows, given by the first one and their number."""
    width, low, slot, of_sites = pack.width, pack.low, pack.course.slot, shares.sites
    sites, all_sites, modified = windows.site, windows.n_sites, windows.modified
    shape = width, low
    per_kmer = LANES << (width - low)
    n_slots = masses.shape[0] // per_kmer - 1
    for lane in range(which[1]):
        window = which[0] + lane
        first, n_sites = sites[window], all_sites[window]
        for i in range(n_sites):
            # the flow into the first k-mer of the next block of sites gives this block's states
            block = (i // width + 1) * width
            of_block = n_slots if block >= n_sites else slot[modified[first + block] - k + 1]
            at = of_block * per_kmer + (lane << low)
            of_sites[first + i, 0] = _share(masses, at, shape, i % width, True)
            of_sites[first + i, 1] = _share(masses, at, shape, i % width, False)


@inner
def score_windows(windows, event_mean, model, noise, room, shares):
    """Find the probability of each window's events by each site's state, summed over the other sites.

    Similar windows should be adjacent. Return the scratch memory, perhaps enlarged.

    Parameters
    ----------
    windows : SiteWindows
    event_mean : float32
        In pA.
    model : f5py.pore_model.model.Levels
        Over the alphabet ACGMT.
    noise : f5py.methylation.correlated.NoiseTerms or None
    room : f5py.methylation._site_densities_numba.Arena
    shares : StateLikelihoods
        Filled; sites have the indices of `windows.modified`.
    """
    count, widths, exponents = windows.width.shape[0], windows.width, shares.exponents
    reference = np.empty(LANES)
    several = np.empty(LANES, np.int64)
    mode = simd.flush_denormals()
    first = 0
    like = low_before = -1  # window similar to the whole preceding pack, and that pack's bits in lanes
    while first < count:
        width = widths[first]
        n = 1
        while n < LANES and first + n < count and widths[first + n] == width:
            n += 1
        is_alike = are_alike(windows, first, first + 1, n - 1)
        low = lane_bits(windows, first, n, model.k, is_alike)
        chosen = several[: LANES >> low]
        if n > chosen.shape[0]:
            n = chosen.shape[0]
            is_alike = are_alike(windows, first, first + 1, n - 1)
        for i in range(chosen.shape[0]):
            chosen[i] = first + min(i, n - 1)
        rows, n_kmers, most_slots = _size_of(windows, chosen, model.k)
        needed = arena_size(rows, n_kmers, width, LANES << (width - low), most_slots, noise is not None)
        if needed > room.work.shape[0]:
            room = make_arena(needed + needed // 4)
            like = -1
        is_known = is_alike and like >= 0 and low == low_before and widths[like] == width
        if not (is_known and are_alike(windows, like, first, 1)):
            room.used[0] = 0
            of_pack = width, low, n_kmers
            course, n_slots = lay_out_pack(windows, chosen, of_pack, model.k, noise is not None, room)
            of_course = room.used[0]
            like, low_before = first if is_alike else -1, low
        room.used[0] = of_course
        size = PackSize(width, low, rows, n_kmers)
        pack = _make_pack(windows, chosen, size, course, event_mean, model, noise, room)
        masses = _score_pack(pack, n_slots, noise, reference, room)
        for i in range(n):
            exponents[first + i] = reference[i << low]
        _finish_windows(windows, (first, n), model.k, pack, masses, shares)
        first += n
    simd.restore_mode(mode)
    return room
