"""Jitted forward and backward algorithm with the states of sites; see `f5py.methylation.per_site` for the mathematics.

Several windows are solved side by side, a pack. Each has a lane, and each state of the sites under a k-mer a vector.
With many sites under a k-mer that would be much memory; then the lowest bits of a state are in the lanes, and a window
has as many lanes side by side as these bits have states. The windows of a pack have the same width w; state s of window
i is in vector ``s >> low`` and lane ``2 ** low * i + s % 2 ** low``.

Vectors that cannot differ are computed once, as a cell. Before a site of any of the windows comes under the k-mer, its
bit of the state makes no difference, and on the way back none where no such site is under it. The cells of all k-mers
are gone through one after the other, see `f5py.methylation._site_course_numba.Way`.

All is in double precision and probability space: a window's true values in a row are the stored ones times
``2 ** scale``, with a whole number, and no state that matters lies more than a few hundred orders of e below the row's
greatest, as the last k-mer can be reached from every other within a row. The scale is that of the greatest value two
rows before, or of what has entered since: a row need not wait for the end of the one before it. Scales change no digit
of what is stored.

With independent noise an event has one density in a k-mer and lane. With correlated noise it has three, by where the
path comes from (`f5py.methylation.correlated`); then flows that come from match states are kept apart from the others.
"""

from __future__ import annotations

from f5py.core.hmm import P_BAD, P_FROM_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.jit import simd_double as wide
from f5py.jit.kernel import kernel
from f5py.methylation._site_densities_numba import NEVER, entry, fill_correlated, fill_independent, zeros

LANES = wide.LANES


@kernel
def greatest_of_window(values, low):
    """Give all lanes of a window the greatest of their values."""
    if low >= 1:
        values = wide.maximum(values, wide.swapped_1(values))
    if low >= 2:
        values = wide.maximum(values, wide.swapped_2(values))
    if low >= 3:
        values = wide.maximum(values, wide.swapped_4(values))
    return values


@kernel
def _swapped(values, bit):
    """Exchange the lanes that differ in a bit."""
    if bit == 0:
        return wide.swapped_1(values)
    return wide.swapped_2(values) if bit == 1 else wide.swapped_4(values)


@kernel
def _forget(values, cells, shape, change, pairs, first_pair, changed, first_changed):
    """Forget the states of the sites that are left on the way into a k-mer.

    Of states that differ in such a site only, both get the mean.

    Parameters
    ----------
    values : float64
    cells : tuple of four ints
        Element of the first cell's vector, number of cells, elements from one to the next, and vectors of each.
    shape : tuple of two ints
        A pack's width and its bits in lanes.
    change : int
        Bits that change.
    pairs, first_pair
        See `Way`, and the element of the k-mer that the cells are of.
    changed, first_changed
        See `Course`, and the element of the k-mer.
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


@kernel
def forward(pack, noise, densities, scales, ends, kept, room):
    """Fill scales and end masses of every row, and the flow out of the last k-mer before each slot.

    Parameters
    ----------
    pack : Pack
    noise : Terms or None
    densities : Densities
        Filled.
    scales : float64, shape (8 * rows,)
    ends : float64, shape (8 * V * rows,)
    kept : float64, shape (n_slots * rows * V * 8 * 2,), or 3 with correlated noise
        Of each vector the flow towards the match state in the next row, from match states and, with correlated noise,
        from others, and the flow towards the skip state in the same row.
    room : Room
        For what is forgotten afterwards.
    """
    p_stay, step = wide.load(pack.stay, 0), wide.load(pack.step, 0)
    from_bad = wide.splat(P_FROM_BAD)
    from_skip = wide.splat(P_FROM_SKIP)
    skip = wide.splat(P_SKIP)
    skip_self = wide.splat(P_SKIP_SELF)
    zero = wide.splat(0.0)
    # In a loop each use of a tuple's array would change the count of its users.
    (_, first, source, pairs, stops), _, place, _, last, last_kmers, changes, changed, slot = pack.course
    events, inverse, offset, constant = pack.events, pack.inverse, pack.offset, pack.constant
    inverse_before, offset_before = pack.inverse_before, pack.offset_before
    shape = pack.width, pack.low
    width = pack.width
    n_kmers = last.shape[0]
    n_cells = source.shape[0]
    vectors = 1 << (pack.width - pack.low)
    rows = pack.after.shape[0] // LANES
    per_row = inverse.shape[0] if densities.is_kept else 0
    free, stay_densities, step_densities = densities.free, densities.stay, densities.step
    n_out = 2 if noise is None else 3
    stride = n_out * LANES
    states = zeros(room, n_cells * 2 * LANES)  # of each cell the match state and that of bad events
    # Out of each cell, in the row before and in this one: to the match state of the next k-mer in the next row, with
    # correlated noise from match states and from others, and to its skip state in the same row. At last one of zeros.
    out_before = zeros(room, (n_cells + 1) * stride)
    out = zeros(room, (n_cells + 1) * stride)
    scale = whole = top = new_top = wide.splat(NEVER)
    for row in range(rows):
        of_row = row * per_row
        if noise is None:
            fill_independent(events, inverse, offset, constant, row, free, of_row)
        else:
            fill_correlated(
                events, inverse, offset, constant, inverse_before, offset_before, row, max(row - 1, 0), noise, free,
                stay_densities, step_densities, of_row,
            )  # fmt: skip
        # No site's base lies under the first k-mer, so all lanes of a window enter alike. The exponent may be far below
        # what the emissions hold, and the first event has no other way in.
        factor, entering = entry(events, inverse, offset, constant, row, noise)
        new_whole = wide.floor(entering)
        new_scale = wide.maximum(wide.maximum(top, whole), new_whole)
        change = wide.power2(scale - new_scale)
        scale, whole = new_scale, new_whole
        wide.store(scales, row * LANES, scale)
        entered = factor * wide.exp2(entering - whole) * wide.power2(whole - scale)
        row_stay = change * p_stay
        row_bad = change * wide.splat(P_BAD)
        row_from_bad = change * from_bad
        greatest = zero
        begin = 0
        for stretch in range(stops.shape[0]):
            kmer = stops[stretch]
            end = first[kmer]
            for cell in range(begin, end):
                at = cell * 2 * LANES
                to = cell * stride
                came = source[cell] * stride
                density_at = of_row + place[cell]
                match_same = wide.load(states, at)
                wrong_same = wide.load(states, at + LANES)
                skipped = wide.load(out, came + stride - LANES)
                density = wide.widened(free, density_at)
                if noise is None:
                    into = wide.madd(row_from_bad, wrong_same, change * wide.load(out_before, came))
                    good = wide.madd(density, wide.madd(row_stay, match_same, into), entered)
                else:
                    into = wide.madd(row_from_bad, wrong_same, change * wide.load(out_before, came + LANES))
                    into = wide.madd(wide.widened(stay_densities, density_at), row_stay * match_same, density * into)
                    stepping = change * wide.load(out_before, came)
                    into = wide.madd(wide.widened(step_densities, density_at), stepping, into)
                    good = into + entered
                bad = row_bad * (match_same + wrong_same)
                greatest = wide.maximum(greatest, good + bad)
                wide.store(states, at, good)
                wide.store(states, at + LANES, bad)
                left = from_bad * bad
                onward = wide.madd(from_skip, skipped, left)
                if noise is None:
                    wide.store(out, to, wide.madd(step, good, onward))
                else:
                    wide.store(out, to, step * good)
                    wide.store(out, to + LANES, onward)
                wide.store(out, to + stride - LANES, wide.madd(skip_self, skipped, wide.madd(skip, good, left)))
            begin = end
            entered = zero
            if kmer < n_kmers and changes[kmer]:
                at = first[kmer - 1] * stride
                n = end - first[kmer - 1]
                if slot[kmer] >= 0:
                    to = (slot[kmer] * rows + row) * vectors * stride
                    for i in range(0, n * stride, LANES):
                        wide.store(kept, to + i, wide.load(out, at + i))
                to = kmer * width
                _forget(out, (at, n, stride, n_out), shape, changes[kmer], pairs, to - width, changed, to)
        for i in range(last_kmers.shape[0]):
            kmer = last_kmers[i]
            is_last = wide.lanes_of(last[kmer])
            end = row * vectors * LANES
            for cell in range(first[kmer], first[kmer + 1]):
                both = wide.load(states, cell * 2 * LANES) + wide.load(states, cell * 2 * LANES + LANES)
                mass = both + wide.load(out, source[cell] * stride + stride - LANES)
                wide.store(ends, end, wide.select(is_last, mass, wide.load(ends, end)))
                end += LANES
        top, new_top = new_top, scale + wide.exponent(greatest_of_window(greatest, pack.low))
        out_before, out = out, out_before


@kernel
def _halves(exponent):
    """Two powers of two whose product is that of `exponent`, which may be out of range."""
    half = wide.floor(wide.splat(0.5) * exponent)
    return wide.power2(half), wide.power2(exponent - half)


@kernel
def backward(pack, noise, densities, scales, kept, reference, flows, room):
    """Add up, for every slot, the probability of all paths through it by state, over ``2 ** reference``.

    Parameters
    ----------
    pack, noise
        As for `forward`.
    densities, scales, kept
        As `forward` has filled them.
    reference : float64, shape (8,)
        Whole numbers.
    flows : float64, shape (>= n_slots * V * 8,)
        Zeros, which are filled.
    room : Room
        As for `forward`.
    """
    stay, step = wide.load(pack.stay, 0), wide.load(pack.step, 0)
    from_bad = wide.splat(P_FROM_BAD)
    from_skip = wide.splat(P_FROM_SKIP)
    skip = wide.splat(P_SKIP)
    skip_self = wide.splat(P_SKIP_SELF)
    zero = wide.splat(0.0)
    onward, (_, first, source, pairs, stops), _, across, last, _, changes, changed, slot = pack.course
    first_onward = onward.first
    after, events, inverse, offset, constant = pack.after, pack.events, pack.inverse, pack.offset, pack.constant
    inverse_before, offset_before = pack.inverse_before, pack.offset_before
    shape = pack.width, pack.low
    width = pack.width
    n_cells = source.shape[0]
    vectors = 1 << (pack.width - pack.low)
    rows = pack.after.shape[0] // LANES
    per_row = inverse.shape[0] if densities.is_kept else 0
    free, stay_densities, step_densities = densities.free, densities.stay, densities.step
    n_out = 2 if noise is None else 3
    size = (n_cells + 1) * LANES  # at last a cell of zeros
    # What may follow each match state of the row below, times that row's density.
    match, match_now = zeros(room, size), zeros(room, size)
    # With correlated noise the match state one k-mer on counts with the density of a step, or, after a bad event or a
    # skip, with that of neither.
    stepped = zeros(room, 0 if noise is None else 2 * size)
    states = zeros(room, 2 * size)  # what may follow each bad event of the row below, and each skip of this one
    scale = whole = top = new_top = wide.splat(NEVER)
    for row in range(rows - 1, -1, -1):
        end = wide.load(after, row * LANES)
        below = scale
        new_whole = wide.floor(end)
        scale = wide.maximum(wide.maximum(top, whole), new_whole)
        whole = new_whole
        change = wide.power2(below - scale)
        is_row = wide.ge(end, wide.splat(0.5 * NEVER))
        ended = wide.select(is_row, wide.exp2(end - whole) * wide.power2(whole - scale), zero)
        row_bad = change * wide.splat(P_BAD)
        # With correlated noise those of the row below, which `match` is without.
        dense = row if noise is None else min(row + 1, rows - 1)
        if per_row == 0:
            if noise is None:
                fill_independent(events, inverse, offset, constant, dense, free, 0)
            else:
                fill_correlated(
                    events, inverse, offset, constant, inverse_before, offset_before, dense, row, noise, free,
                    stay_densities, step_densities, 0,
                )  # fmt: skip
        # The product of two scales may be out of range where that of the two masses is not: a half for each of them.
        ahead = wide.load(scales, row * LANES) - wide.load(reference, 0)
        below_1, below_2 = _halves(ahead + below)
        same_1, same_2 = _halves(ahead + scale)
        of_dense = dense * per_row
        greatest = zero
        begin = n_cells
        for stretch in range(stops.shape[0]):
            kmer = stops[stretch]
            finish = zero
            if last[kmer]:
                finish = wide.select(wide.lanes_of(last[kmer]), ended, zero)
            for cell in range(begin - 1, first[kmer] - 1, -1):
                at = cell * LANES
                came = source[cell] * LANES
                match_below = wide.load(match, at)
                skipped = wide.load(states, 2 * came + LANES)
                bad = wide.madd(row_bad, wide.load(states, 2 * at), finish)
                density = wide.widened(free, of_dense + at)
                same = change * match_below
                if noise is None:
                    onto_free = change * wide.load(match, came)
                    onto = wide.madd(step, onto_free, wide.madd(skip, skipped, bad))
                    good = density * wide.madd(stay, same, onto)
                    any_match = same + onto_free
                else:
                    onto = wide.madd(step, change * wide.load(stepped, 2 * came), wide.madd(skip, skipped, bad))
                    good = wide.madd(stay, same * wide.widened(stay_densities, of_dense + at), onto)
                    onto_free = change * wide.load(stepped, 2 * came + LANES)
                    wide.store(stepped, 2 * at, match_below * wide.widened(step_densities, of_dense + at))
                    wide.store(stepped, 2 * at + LANES, match_below * density)
                    any_match = wide.madd(same, density, onto_free)
                wrong_now = wide.madd(from_bad, any_match + skipped, bad)
                wide.store(match_now, at, good)
                wide.store(states, 2 * at, wrong_now)
                wide.store(
                    states, 2 * at + LANES, wide.madd(skip_self, skipped, wide.madd(from_skip, onto_free, finish))
                )
                greatest = wide.maximum(greatest, wide.maximum(good, wrong_now))
            begin = first[kmer]
            if changes[kmer] == 0:
                continue
            n = first[kmer + 1] - begin
            to = kmer * width
            at = begin * LANES
            if noise is None:
                _forget(match, (at, n, LANES, 1), shape, changes[kmer], pairs, to, changed, to)
            else:
                _forget(stepped, (2 * at, n, 2 * LANES, 2), shape, changes[kmer], pairs, to, changed, to)
            _forget(states, (2 * at + LANES, n, 2 * LANES, 1), shape, changes[kmer], pairs, to, changed, to)
            if slot[kmer] < 0:
                continue
            at = (slot[kmer] * rows + row) * vectors * n_out * LANES
            to = slot[kmer] * vectors * LANES
            for cell in range(first_onward[kmer - 1], first_onward[kmer]):
                came = across[cell] * LANES
                from_match = wide.load(kept, at) * below_1
                skipping = wide.load(kept, at + (n_out - 1) * LANES) * same_1
                into_skips = wide.load(states, 2 * came + LANES) * same_2
                if noise is None:
                    flow = wide.madd(from_match, wide.load(match, came) * below_2, skipping * into_skips)
                else:
                    from_others = wide.load(kept, at + LANES) * below_1
                    flow = from_others * (wide.load(stepped, 2 * came + LANES) * below_2)
                    flow = wide.madd(from_match, wide.load(stepped, 2 * came) * below_2, flow)
                    flow = wide.madd(skipping, into_skips, flow)
                wide.store(flows, to, wide.load(flows, to) + flow)
                at += n_out * LANES
                to += LANES
        top, new_top = new_top, scale + wide.exponent(greatest_of_window(greatest, pack.low))
        match, match_now = match_now, match
