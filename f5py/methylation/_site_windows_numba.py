"""Jitted loops that score every site in the windows of a read; see `f5py.methylation.per_site` for the mathematics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit import simd
from f5py.jit import simd_double as wide
from f5py.jit.kernel import kernel
from f5py.methylation._calls_numba import CODES, METHYLATED, fill_emissions, fill_ranks, same_fit
from f5py.methylation._groups_numba import sites_per_kmer, sort_pass
from f5py.methylation._hmm_numba import Emissions, background, log_base, log_of_share, stay_probability
from f5py.methylation._site_densities_numba import (
    empty,
    empty_floats,
    numbers,
    room_for_densities,
    room_needed,
    room_of,
    zeros,
)
from f5py.methylation._site_hmm_numba import LANES, NEVER, Pack, backward, forward, greatest_of_window


class SiteWindows(NamedTuple):
    """The windows of one read that have several sites, or any."""

    # codes: bases of all windows on the read's strand in forward order, see `fill_plain`; no site methylated
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


class PackSize(NamedTuple):
    """Size of a pack of windows."""

    width: int  # sites whose states are told apart at a time; a window takes 2 ** width lanes
    # rows, n_kmers: most events and k-mers of a window
    rows: int
    n_kmers: int


class WindowCodes(NamedTuple):
    """A window's bases."""

    codes: NDArray[np.uint8]  # shape (n_bases,)
    modified: NDArray[np.int64]  # shape (n_sites,): places of its sites
    width: int  # see `PackSize`
    ranks: NDArray[np.int64]  # shape (n_kmers,): of the k-mers without methylated bases


@kernel
def _fill_kmers(window, k, powers, changes, per_kmer, first_lane, kmers):
    """Fill the ranks of a window's k-mers in its lanes: bit ``i % width`` of their number is the state of site i.

    A lane's k-mer is that of another one where the states that the two differ in are of no site here. `powers` are the
    weights of a k-mer's bases in its rank; `changes`, of `width` elements, is overwritten.
    """
    codes, modified, width, ranks = window
    first = 0
    for j in range(ranks.shape[0]):
        while first < modified.shape[0] and modified[first] < j:
            first += 1
        changes[:width] = 0  # of the rank, by the state of the site with that bit
        i = first
        while i < modified.shape[0] and modified[i] < j + k:
            changes[i % width] = (METHYLATED - np.int64(codes[modified[i]])) * powers[modified[i] - j]
            i += 1
        at = j * per_kmer + first_lane
        kmers[at] = ranks[j]
        n = 1
        for bit in range(width):
            for lane in range(at, at + n):
                kmers[lane + n] = kmers[lane] + changes[bit]
            n *= 2


@kernel
def _fill_changes(modified, width, k, first_lane, pack):
    """Find where on its way a window's state bits change from one site to another."""
    of_window = (1 << min(1 << width, LANES)) - 1 << first_lane
    for i in range(width, modified.shape[0]):
        j = modified[i] - k + 1
        bit = i % width
        pack.changes[j] |= of_window << (bit * LANES) if bit < 3 else 1 << (3 * LANES + bit - 3)
        if bit == 0:
            pack.slot[j] = 0


@kernel
def _size_of(windows, chosen, width, k):
    """Count the rows and k-mers of a pack of the windows `chosen`, and at most how many slots it has."""
    rows = np.int64(0)
    n_kmers = np.int64(0)
    n_slots = np.int64(0)
    for i in range(chosen.shape[0]):
        rows = max(rows, abs(windows.end[chosen[i]] - windows.begin[chosen[i]]) + 1)
        n_kmers = max(n_kmers, windows.n_bases[chosen[i]] - k + 1)
        n_slots += (windows.n_sites[chosen[i]] - 1) // width
    return rows, n_kmers, n_slots


@kernel
def _make_pack(windows, chosen, size, events, reverse, model, room):
    """Make the pack of the windows `chosen`; a window may be in it several times.

    Return it with the number of its slots.
    """
    width, rows, n_kmers = size
    event_mean, fit = events
    k = model.k
    vectors = max((1 << width) // LANES, 1)
    per_kmer = vectors * LANES
    size = (n_kmers * per_kmer + simd.LANES - 1) // simd.LANES * simd.LANES
    pack = Pack(
        width, vectors, empty_floats(room, rows * simd.LANES), empty(room, rows * LANES), empty_floats(room, size),
        empty_floats(room, size), empty_floats(room, size), numbers(room, n_kmers, 0), numbers(room, n_kmers, 0),
        numbers(room, n_kmers, -1),
    )  # fmt: skip
    kmers = numbers(room, size, -1)
    ranks = np.empty(n_kmers, np.int64)
    changes = np.empty(width, np.int64)
    powers = np.empty(k, np.int64)
    power = np.int64(1)
    for i in range(k):
        powers[i if reverse else k - 1 - i] = power
        power *= CODES
    lanes = min(1 << width, LANES)
    for i in range(chosen.shape[0]):
        window = chosen[i]
        codes = windows.codes[windows.base[window] : windows.base[window] + windows.n_bases[window]]
        modified = windows.modified[windows.site[window] : windows.site[window] + windows.n_sites[window]]
        own_kmers = codes.shape[0] - k + 1
        fill_ranks(codes, k, reverse, own_kmers, ranks)
        of_window = WindowCodes(codes, modified, width, ranks[:own_kmers])
        _fill_kmers(of_window, k, powers, changes, per_kmer, i * lanes, kmers)
        _fill_changes(modified, width, k, i * lanes, pack)
        pack.last[own_kmers - 1] |= (1 << lanes) - 1 << (i * lanes)
        stride = 1 if windows.begin[window] < windows.end[window] else -1
        own_rows = abs(windows.end[window] - windows.begin[window]) + 1
        own_lanes = np.int64(((1 << lanes) - 1) << (i * lanes))
        for row in range(rows):
            x = simd.splat(event_mean[windows.begin[window] + stride * min(row, own_rows - 1)])
            after = wide.splat(np.float64(background(own_rows - 1 - row)) if row < own_rows else NEVER)
            if i > 0:
                x = simd.select(
                    simd.lanes_of(own_lanes | own_lanes << LANES), x, simd.load(pack.events, row * simd.LANES)
                )
                after = wide.select(wide.lanes_of(own_lanes), after, wide.load(pack.after, row * LANES))
            simd.store(pack.events, row * simd.LANES, x)
            wide.store(pack.after, row * LANES, after)
    fill_emissions(kmers, model, same_fit(fit), Emissions(pack.inverse, pack.offset, pack.constant))
    n_slots = 0
    for j in range(n_kmers):
        if pack.slot[j] >= 0:
            pack.slot[j] = n_slots
            n_slots += 1
    return pack, n_slots


@kernel
def _score_pack(pack, n_slots, p_stay, noise, reference, room):
    """Solve a pack; fill `reference`, float64 of shape (8,).

    Return the probability of the events by the states of sites, by slot and lane: at last that of the last sites.
    """
    rows = pack.after.shape[0] // LANES
    per_kmer = pack.vectors * LANES
    kept = empty(room, n_slots * rows * 3 * per_kmer)
    scales = empty(room, rows * LANES)
    ends = zeros(room, rows * per_kmer)
    densities = room_for_densities(room, pack.inverse.shape[0], rows, pack.vectors, noise)
    forward(pack, p_stay, noise, densities, scales, ends, kept, room)

    best = wide.splat(NEVER)
    for row in range(rows):
        greatest = wide.load(ends, row * per_kmer)
        for v in range(LANES, per_kmer, LANES):
            greatest = wide.maximum(greatest, wide.load(ends, row * per_kmer + v))
        greatest = wide.exponent(greatest_of_window(greatest, pack.width))
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
            mass = wide.load(ends, row * per_kmer + v) * factor * other
            wide.store(masses, at, wide.load(masses, at) + mass)
    if n_slots > 0:
        backward(pack, p_stay, noise, densities, scales, kept, reference, masses, room)
    return masses


@kernel
def _share(masses, first, lanes, bit, state):
    """Add up a window's lanes, from `first` on, in which `bit` has that state."""
    total = 0.0
    for lane in range(lanes):
        if (lane & bit != 0) == state:
            total += masses[first + lane]
    return total


class Flows(NamedTuple):
    """Probabilities of states by slot and lane; see `_score_pack`."""

    slots: NDArray[np.int64]  # shape (n_kmers,): slot of each k-mer, or -1
    n_slots: int
    masses: NDArray[np.float64]


class Shares(NamedTuple):
    """Probabilities of the events of windows by the states of each site."""

    # shape (n_sites, 2): with the site methylated and with it unmethylated, over two to the power of its window's
    # exponent
    sites: NDArray[np.float64]
    exponents: NDArray[np.float64]  # shape (n,)
    widths: NDArray[np.int64]  # shape (n,): the most sites that share a k-mer


@kernel
def _finish_window(windows, window, k, flows, first_lane, exponent, shares):
    """Fill a window's shares, but not its width."""
    slots, n_slots, masses = flows
    width = shares.widths[window]
    lanes = 1 << width
    per_kmer = max(lanes, LANES)
    first = windows.site[window]
    n_sites = windows.n_sites[window]
    shares.exponents[window] = exponent
    for i in range(n_sites):
        # The flow into the k-mer that the next block of sites begins with tells the states of this one's.
        block = (i // width + 1) * width
        slot = n_slots if block >= n_sites else slots[windows.modified[first + block] - k + 1]
        at = slot * per_kmer + first_lane
        bit = 1 << (i % width)
        shares.sites[first + i, 0] = _share(masses, at, lanes, bit, True)
        shares.sites[first + i, 1] = _share(masses, at, lanes, bit, False)


@kernel
def _ordered(windows, count, k, span, widths):
    """Sort windows by width, need of slots, number of k-mers and of events; return their order, and fill the widths.

    `span` is the number of bases that the states of a k-mer's densities depend on.
    """
    columns = np.int64(0)
    widest = np.int64(0)
    longest = np.int64(0)
    for i in range(count):
        widths[i] = sites_per_kmer(windows.modified[windows.site[i] : windows.site[i] + windows.n_sites[i]], span)
        columns = max(columns, windows.n_bases[i] - k + 2)
        widest = max(widest, widths[i])
        longest = max(longest, abs(windows.end[i] - windows.begin[i]) + 1)
    keys = np.empty(count, np.int64)
    orders = np.empty((3, count), np.int64)
    for i in range(count):
        rows = abs(windows.end[i] - windows.begin[i]) + 1
        kind = 2 * widths[i] + (1 if windows.n_sites[i] > widths[i] else 0)  # with slots, or without
        keys[i] = ((kind * columns + windows.n_bases[i] - k + 1) << 32) + rows
        orders[0, i] = i
    sort_pass(keys, np.int64(0), longest + 1, orders[0], orders[1])
    sort_pass(keys, np.int64(32), (2 * widest + 2) * columns, orders[1], orders[2])
    return orders[2]


@kernel
def find_shares(windows, count, events, reverse, model, noise, shares):
    """Find the probability of each window's events with each of its sites methylated or not, whatever the others are.

    Parameters
    ----------
    windows : SiteWindows
    count : int
    events : f5py.methylation._calls_numba.ReadEvents
    reverse : bool
    model : f5py.pore_model.model.Levels
        Over the alphabet ACGMT.
    noise : f5py.methylation.correlated.Terms or None
    shares : Shares
        Filled, those of sites at the places that they have in `windows.modified`.
    """
    fit = events.fit
    # A step's density with correlated noise is that of two k-mers, so that both need the states of their sites.
    widths = shares.widths
    order = _ordered(windows, count, model.k, model.k if noise is None else model.k + 1, widths)
    p_stay = stay_probability(fit.events_per_base)
    reference = np.empty(LANES)
    several = np.empty(LANES, np.int64)
    room = room_of(0)
    mode = simd.flush_denormals()
    first = 0
    while first < count:
        width = widths[order[first]]
        lanes = min(1 << width, LANES)
        n = 1
        while n < LANES // lanes and first + n < count and widths[order[first + n]] == width:
            n += 1
        chosen = several[: LANES // lanes]
        for i in range(chosen.shape[0]):
            chosen[i] = order[first + min(i, n - 1)]
        rows, n_kmers, most_slots = _size_of(windows, chosen, width, model.k)
        needed = room_needed(rows, n_kmers, max(1 << width, LANES), most_slots)
        if needed > room.work.shape[0]:
            room = room_of(needed + needed // 2)
        room.used[0] = 0
        pack, n_slots = _make_pack(windows, chosen, PackSize(width, rows, n_kmers), events, reverse, model, room)
        masses = _score_pack(pack, n_slots, p_stay, noise, reference, room)
        for i in range(n):
            flows = Flows(pack.slot, n_slots, masses)
            _finish_window(windows, chosen[i], model.k, flows, i * lanes, reference[i * lanes], shares)
        first += n
    simd.restore_mode(mode)


@kernel
def score_windows(windows, count, events, reverse, model, noise, scores):
    """Log-likelihood of each window's events with each of its sites methylated or not, whatever the others are.

    Parameters
    ----------
    scores : f5py.methylation._calls_numba.Scores
        Filled at the places that the sites have in `windows.modified`.
    others
        Those of `find_shares`.
    """
    shares = Shares(np.empty((windows.modified.shape[0], 2)), np.empty(count), np.empty(count, np.int64))
    find_shares(windows, count, events, reverse, model, noise, shares)
    for window in range(count):
        base = log_base(shares.exponents[window], shares.widths[window])
        for site in range(windows.site[window], windows.site[window] + windows.n_sites[window]):
            scores.methylated[site] = log_of_share(base, shares.sites[site, 0])
            scores.unmethylated[site] = log_of_share(base, shares.sites[site, 1])
