"""Jitted layout of the states of a pack's sites by k-mer; see `f5py.methylation._site_hmm_numba`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit import simd_double as wide
from f5py.jit.bits import count_bits
from f5py.jit.kernel import inner
from f5py.methylation._calls_numba import METHYLATED
from f5py.methylation._site_densities_numba import LANES, take_integers

#: Maximum bits of a state in the vector number while lanes have space for the others, to keep packs small.
_MOST_HIGH = 3
_LANE_BITS = 3
#: Cost of a row besides its cells, forward or backward, in cells.
_CELLS_OF_ROW = 35


class CellLayout(NamedTuple):
    """Cells (distinct vectors) of all k-mers in one direction, in the order of their states."""

    bits: NDArray[np.int64]  # shape (n_kmers,): bits of the vector number that matter at a k-mer
    first: NDArray[np.int64]  # shape (n_kmers + 1,): first cell of each k-mer
    # source: shape (n_cells,): the preceding (backward: next) k-mer's cell of the same states; `n_cells` for none
    source: NDArray[np.int64]
    # pairs: shape (w * n_kmers,): bit of the k-mer's cell number for each of the w bits of a state; -1 for none
    pairs: NDArray[np.int64]
    # stops: k-mers with other cells or an action before them (backward: after them); loops run from stop to stop
    stops: NDArray[np.int64]


class PackLayout(NamedTuple):
    """Layout of the states of a pack's sites along its k-mers."""

    onward: CellLayout
    back: CellLayout  # with a cell for every density
    place: NDArray[np.int64]  # shape (n_cells,): index of each forward cell's densities
    # across: shape (n_cells,): for each forward cell, the next k-mer's backward cell
    across: NDArray[np.int64]
    last: NDArray[np.int64]  # shape (n_kmers,): bits of the lanes that end with the k-mer
    # changes: shape (n_kmers,): bits of the state that pass from one site to another before the k-mer
    changes: NDArray[np.int64]
    changed: NDArray[np.int64]  # shape (w * n_kmers,): the lanes for each of the w bits
    # slot: shape (n_kmers,): index among the k-mers at which bit 0 changes in any window, or -1
    slot: NDArray[np.int64]


class WindowPack(NamedTuple):
    """Windows solved in parallel."""

    width: int  # the most sites that share a k-mer in each window
    low: int  # bits of a state in the lanes
    course: PackLayout
    # stay, step: shape (8,): probabilities of each lane's read
    stay: NDArray[np.float64]
    step: NDArray[np.float64]
    # events: shape (8 * rows,): means, padded with a window's last one
    events: NDArray[np.float32]
    # after: shape (16 * rows,): base-two logarithm of the probability of the later events as background, each row's
    # eight lanes twice; `NEVER` after a window's rows
    after: NDArray[np.float32]
    # inverse, offset, constant: as in `f5py.methylation._hmm_numba.Emissions`; `inverse` is 0 and `constant` `NEVER`
    # after a window's last k-mer
    inverse: NDArray[np.float32]
    offset: NDArray[np.float32]
    constant: NDArray[np.float32]
    # inverse_before, offset_before: of the preceding k-mer, for correlated noise
    inverse_before: NDArray[np.float32]
    offset_before: NDArray[np.float32]


@inner
def are_alike(windows, like, first, n):
    """Return whether the sites of `n` windows are at the same positions as those of `like`.

    All windows have the same number of bases.
    """
    # outside the loop, as each use changes the array's reference count
    n_bases, n_sites, site, modified = windows.n_bases, windows.n_sites, windows.site, windows.modified
    sites, places = n_sites[like], site[like]
    same = True
    for window in range(first, first + n):
        if n_bases[window] != n_bases[like] or n_sites[window] != sites:
            return False
        for i in range(sites):
            if modified[site[window] + i] != modified[places + i]:
                same = False
    return same


@inner
def _cells_of(windows, first, n, low, k, bits):
    """Count the cells of all rows of a pack of `n` windows from `first` on; `bits` is scratch space."""
    width = windows.width[first]
    begins, ends, sites = windows.begin, windows.end, windows.site
    all_sites, all_modified = windows.n_sites, windows.modified
    n_kmers = windows.n_bases[first : first + n].max() - k + 1
    under, entered = bits[0, :n_kmers], bits[1, :n_kmers]
    under[:] = 0
    entered[:] = 0
    rows = np.int64(0)
    first_slot = n_kmers
    for window in range(first, first + n):
        rows = max(rows, abs(ends[window] - begins[window]) + 1)
        bit = -1
        for site in range(all_sites[window]):
            bit = bit + 1 if bit + 1 < width else 0
            modified = all_modified[sites[window] + site]
            enters = modified - k + 1
            for j in range(enters, min(modified + 1, n_kmers)):
                under[j] |= 1 << bit
            entered[enters] |= 1 << bit
            if site == width:
                first_slot = min(first_slot, enters)
    cells = 2 * _CELLS_OF_ROW if first_slot < n_kmers else _CELLS_OF_ROW
    now = 0
    for j in range(n_kmers):
        now |= entered[j]
        cells += 1 << count_bits(np.uint64(now >> low))
        if j >= first_slot:
            cells += 1 << count_bits(np.uint64(under[j] >> low))
    return rows * cells


@inner
def lane_bits(windows, first, n, k, is_alike):
    """Choose the number of bits of a state in the lanes of the next pack, of up to `n` windows.

    Fewer bits give packs of more windows, with wasted work unless the windows are alike (`is_alike`).
    """
    width = windows.width[first]
    least = min(max(width - _MOST_HIGH, 0), _LANE_BITS)
    if n == 1:
        return min(width, _LANE_BITS)
    if is_alike and n == LANES:
        return least
    bits = np.empty((2, windows.n_bases[first : first + n].max()), np.int64)
    best = least
    least_cells = np.inf
    for low in range(least, min(width, _LANE_BITS) + 1):
        together = min(n, LANES >> low)
        cells = _cells_of(windows, first, together, low, k, bits) / together
        if cells < least_cells:
            best, least_cells = low, cells
    return best


@inner
def next_vector(v, bits):
    """Return the next vector number of those that differ in `bits` only; 0 after the last one."""
    return ((v | ~bits) + 1) & bits


@inner
def cell_of(v, bits):
    """Return the cell that stands for vector v among cells that differ in `bits`."""
    cell = 0
    n = 0
    while bits > 0:
        if bits & 1:
            cell |= (v & 1) << n
            n += 1
        v >>= 1
        bits >>= 1
    return cell


@inner
def _lay_out_cells(bits, shape, stops, room):
    """Lay out the cells of k-mers with vectors that differ in `bits`, without sources."""
    width, low = shape
    n_kmers = bits.shape[0]
    first, pairs = take_integers(room, n_kmers + 1, 0), take_integers(room, n_kmers * width, -1)
    for j in range(n_kmers):
        n = 0
        for bit in range(low, width):
            if bits[j] >> (bit - low) & 1:
                pairs[j * width + bit] = n
                n += 1
        first[j + 1] = first[j] + (1 << n)
    return CellLayout(bits, first, take_integers(room, first[n_kmers], first[n_kmers]), pairs, stops)


@inner
def lay_out_pack(windows, chosen, size, k, is_correlated, room):
    """Lay out the states of sites in a pack of the windows `chosen`; return the number of slots too.

    `windows` are `f5py.methylation._site_windows_numba.SiteWindows`. `size` is the width, its bits in lanes and the
    most k-mers.
    """
    width, low, n_kmers = size
    n_bases, n_sites, sites, all_modified = windows.n_bases, windows.n_sites, windows.site, windows.modified
    onward, back = take_integers(room, n_kmers, 0), take_integers(room, n_kmers, 0)
    last, changes, changed = (
        take_integers(room, n_kmers, 0),
        take_integers(room, n_kmers, 0),
        take_integers(room, n_kmers * width, 0),
    )
    slot = take_integers(room, n_kmers, -1)
    for i in range(chosen.shape[0]):
        window = chosen[i]
        own_kmers = n_bases[window] - k + 1
        of_window = (1 << (1 << low)) - 1 << (i << low)
        last[own_kmers - 1] |= of_window
        first = sites[window]
        bit = -1
        for site in range(n_sites[window]):
            bit = bit + 1 if bit + 1 < width else 0
            modified = all_modified[first + site]
            enters = modified - k + 1
            for j in range(enters, min(modified + 1, own_kmers)):
                back[j] |= 1 << bit
            onward[enters] |= 1 << bit
            if site >= width:
                changes[enters] |= 1 << bit
                changed[enters * width + bit] |= of_window
                if bit == 0:
                    slot[enters] = 0
    if is_correlated:  # a step's density depends on two k-mers
        for j in range(n_kmers - 1, 0, -1):
            back[j] |= back[j - 1]
    entered = 0
    n_slots = 0
    n_stops, n_stops_back = 0, 0
    stops, stops_back = take_integers(room, n_kmers, 0), take_integers(room, n_kmers, 0)
    for j in range(n_kmers):
        entered |= onward[j]
        onward[j] = entered >> low
        back[j] >>= low
        if j > 0 and (j == 1 or changes[j] or last[j - 1] or onward[j] != onward[j - 1]):  # entry is at the first only
            stops[n_stops] = j
            n_stops += 1
        if slot[j] >= 0:
            slot[j] = n_slots
            n_slots += 1
    stops[n_stops] = n_kmers
    for j in range(n_kmers - 1, -1, -1):
        if changes[j] or last[j] or (j > 0 and (last[j - 1] or back[j] != back[j - 1])):
            stops_back[n_stops_back] = j
            n_stops_back += 1
        if slot[j] == 0:
            break
    shape = width, low
    way, way_back = (
        _lay_out_cells(onward, shape, stops[: n_stops + 1], room),
        _lay_out_cells(back, shape, stops_back[:n_stops_back], room),
    )  # fmt: skip
    place, across = take_integers(room, way.source.shape[0], 0), take_integers(room, way.source.shape[0], 0)
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
    return PackLayout(way, way_back, place, across, last, changes, changed, slot), n_slots


@inner
def fill_lane_ranks(codes, powers, ranks):
    """Fill the ranks of the k-mers of all lanes, as whole numbers in doubles."""
    k = powers.shape[0] // LANES
    for at in range(0, ranks.shape[0], LANES):
        rank = wide.load(codes, at) * wide.load(powers, 0)
        for place in range(LANES, k * LANES, LANES):
            rank = wide.madd(wide.load(codes, at + place), wide.load(powers, place), rank)
        wide.store(ranks, at, rank)


@inner
def list_changes(window, powers, shape, lanes, ranks, changes):
    """List the changes of k-mer ranks by a window's methylated sites.

    Changes by sites with states in the lanes are added to `ranks`.

    Parameters
    ----------
    window : tuple
        Codes, sites and number of k-mers.
    powers : float64
        Weights of a k-mer's bases in its rank, lane by lane.
    shape : tuple of two ints
        A pack's width and its bits in lanes.
    lanes : range
        Those of the window.
    ranks, changes : float64
    """
    codes, modified, own_kmers = window
    width, low = shape
    k = powers.shape[0] // LANES
    bit = -1
    for site in range(modified.shape[0]):
        bit = bit + 1 if bit + 1 < width else 0
        place = modified[site]
        change = METHYLATED - np.float64(codes[place])  # of the rank, over the weight of the place
        for lane in lanes:
            for j in range(max(place - k + 1, 0), min(place + 1, own_kmers)):
                added = change * powers[(place - j) * LANES + lane]
                if bit >= low:
                    changes[(j * width + bit) * LANES + lane] = added
                elif lane - lanes.start >> bit & 1:
                    ranks[j * LANES + lane] += added


@inner
def fill_kmers(ranks, changes, shape, back, kmers):
    """Fill the ranks of all cells, from unmethylated ranks and each site's changes, as whole doubles."""
    width, low = shape
    bits = back.bits
    at = 0
    for j in range(bits.shape[0]):
        wide.store(kmers, at, wide.load(ranks, j * LANES))
        n = LANES
        for bit in range(low, width):
            if bits[j] >> (bit - low) & 1:
                change = wide.load(changes, (j * width + bit) * LANES)
                for source in range(at, at + n, LANES):
                    wide.store(kmers, source + n, wide.load(kmers, source) + change)
                n *= 2
        at += n


@inner
def _swapped(values, bit):
    """Exchange the lanes that differ in `bit`."""
    if bit == 0:
        return wide.swapped_1(values)
    return wide.swapped_2(values) if bit == 1 else wide.swapped_4(values)


@inner
def sum_out_sites(values, cells, shape, change, pairs, first_pair, changed, first_changed):
    """Sum out the states of the sites left before a k-mer.

    States that differ in such a site only get their mean.

    Parameters
    ----------
    values : float64
    cells : tuple of four ints
        Index of the first cell's vector, number of cells, elements between cells, and vectors of each.
    shape : tuple of two ints
        A pack's width and its bits in lanes.
    change : int
        Bits that change.
    pairs, first_pair
        See `CellLayout`; index of the k-mer of the cells.
    changed, first_changed
        See `PackLayout`; index of the k-mer.
    """
    half = wide.splat(0.5)
    width, low = shape
    first, n, stride, n_vectors = cells
    for bit in range(width):
        pair = pairs[first_pair + bit]
        if change >> bit & 1 == 0 or (bit >= low and pair < 0):
            continue
        lanes = wide.lanes_of(changed[first_changed + bit])
        other = 0 if bit < low else 1 << pair
        for i in range(n):
            if i & other:
                continue
            for at in range(first + i * stride, first + i * stride + n_vectors * LANES, LANES):
                x = wide.load(values, at)
                if bit < low:
                    wide.store(values, at, wide.select(lanes, half * (x + _swapped(x, bit)), x))
                    continue
                to = at + other * stride
                y = wide.load(values, to)
                mean = half * (x + y)
                wide.store(values, at, wide.select(lanes, mean, x))
                wide.store(values, to, wide.select(lanes, mean, y))
