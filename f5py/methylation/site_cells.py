"""Cells of a pack of windows: layout, densities, states and memory; see `f5py.methylation.site_hmm`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit import simd
from f5py.jit import simd_double as wide
from f5py.jit.c_memory import address_of_data, borrow_array
from f5py.jit.kernel import inner
from f5py.methylation.group_scores import METHYLATED
from f5py.methylation.hmm import background

LANES = wide.LANES
#: Rows computed together.
ROWS = 4
#: Stands for the logarithm of zero.
NEVER = -1e30
#: Maximum densities stored for the backward algorithm; larger windows compute them again.
_MOST_DENSITIES = 1 << 19
#: Maximum bits of a state in the vector number while lanes have space for the others, to keep packs small.
_MOST_HIGH = 3
_LANE_BITS = 3


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
    """Fill densities of `ROWS` rows from `row` on, repeating the last row, from index `first` on.

    `emissions` are the five arrays of `WindowPack`, in its order.
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

    Densities of the cell are at `at`. `chances` are probabilities of a stay in the preceding row, of a bad event and
    from one; then of a step, from bad events and skips, of a skip and of a further one. `came` are flows from the
    preceding k-mer in the preceding row, with correlated noise from match states and from others; `skipped` is the one
    in this row, and `entered` that from outside. `same` are match and bad-event state in the preceding row.
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

    Densities of the cell are at `at`. `chances` are probabilities of a stay and of a step, from bad events and skips,
    of a bad event, of a skip and of a further one. `same` are values of the match and bad-event state in the row below.
    `after` are those of the next k-mer there, preceded by a match state or another one; `skipped` is its value in this
    row, and `finish` the probability of the end.
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
    # inverse, offset, constant: as in `f5py.methylation.hmm.Emissions`; `inverse` is 0 and `constant` `NEVER`
    # after a window's last k-mer
    inverse: NDArray[np.float32]
    offset: NDArray[np.float32]
    constant: NDArray[np.float32]
    # inverse_before, offset_before: of the preceding k-mer, for correlated noise
    inverse_before: NDArray[np.float32]
    offset_before: NDArray[np.float32]


@inner
def lane_bits(width):
    """Return the number of bits of a state in the lanes; without them packs have more windows."""
    return min(max(width - _MOST_HIGH, 0), _LANE_BITS)


@inner
def next_vector(v, bits):
    """Return the next vector number of those that differ in `bits` only; 0 after the last one."""
    return ((v | ~bits) + 1) & bits


@inner
def cell_of(v, bits):
    """Return the cell of vector v among cells that differ in `bits`."""
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

    `windows` are `f5py.methylation.site_hmm.SiteWindows`. `size` is the width, its bits in lanes and the
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

    Changes by sites with states in the lanes are added to `ranks`. `window` has codes, sites and number of k-mers,
    `powers` the weights of a k-mer's bases in its rank, lane by lane, `shape` the pack's width and its bits in lanes.
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
    """Sum out the sites left before a k-mer: states that differ in them only get their mean.

    `cells` are the index of the first cell's vector, number of cells, elements between cells, and vectors of each;
    `shape` is the pack's width and its bits in lanes. `change` has the bits that change. `pairs` and `changed` are
    those of the layouts, from the index of the k-mer of the cells and of the k-mer on.
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
