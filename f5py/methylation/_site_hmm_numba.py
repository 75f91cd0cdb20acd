"""Jitted forward and backward algorithm with the states of sites; see `f5py.methylation.per_site` for the mathematics.

Several windows are solved side by side, a pack. Each has a lane, and each state of the sites under a k-mer a vector.
With many sites under a k-mer that would be much memory; then the lowest bits of a state are in the lanes, and a window
has as many lanes side by side as these bits have states. The windows of a pack have the same width w; state s of window
i is in vector ``s >> low`` and lane ``2 ** low * i + s % 2 ** low``. State arrays hold, for k-mer j and vector v of V,
lane l at element ``8 * (V * j + v) + l``.

Vectors that cannot differ are computed once. Before a site of any of the windows comes under the k-mer, its bit of the
state makes no difference, and on the way back none where no such site is under it. Of vectors that differ in such bits
only, the one in which they are 0 stands for all: vector v is read at ``v & bits``, where `bits` are those that
matter at the k-mer that is read.

All is in double precision and probability space: a window's true values in a row are the stored ones times
``2 ** scale``, with a whole number, and no state that matters lies more than a few hundred orders of e below the row's
greatest, as the last k-mer can be reached from every other within a row.

With independent noise an event has one density in a k-mer and lane. With correlated noise it has three, by where the
path comes from (`f5py.methylation.correlated`); then flows that come from match states are kept apart from the others.
"""

from __future__ import annotations

import numpy as np

from f5py.core.hmm import P_BAD, P_FROM_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.jit import simd_double as wide
from f5py.jit.kernel import kernel
from f5py.methylation._site_densities_numba import NEVER, entry, fill_correlated, fill_independent, zeros

LANES = wide.LANES


@kernel
def next_vector(v, bits):
    """Return the number of the next vector of those that differ in some bits only; 0 after the last one."""
    return ((v | ~bits) + 1) & bits


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
def _forget(values, j, bits, shape, change, changed):
    """Forget the states of the sites that are left on the way into k-mer j, whose vectors differ in `bits`.

    Of states that differ in such a site only, both get the mean. `shape` is a pack's width and its bits in lanes,
    `change` is the k-mer's of its changes.
    """
    half = wide.splat(0.5)
    width, low = shape
    first = (j << (width - low)) * LANES
    for bit in range(width):
        if change >> bit & 1 == 0:
            continue
        lanes = wide.lanes_of(changed[j * width + bit])
        if bit < low:
            v = 0
            while True:
                at = first + v * LANES
                x = wide.load(values, at)
                wide.store(values, at, wide.select(lanes, half * (x + _swapped(x, bit)), x))
                v = next_vector(v, bits)
                if v == 0:
                    break
            continue
        far = 1 << (bit - low)
        if bits & far == 0:
            continue
        v = 0
        while True:
            at, other = first + v * LANES, first + (v + far) * LANES
            x, y = wide.load(values, at), wide.load(values, other)
            mean = half * (x + y)
            wide.store(values, at, wide.select(lanes, mean, x))
            wide.store(values, other, wide.select(lanes, mean, y))
            v = next_vector(v, bits & ~far)
            if v == 0:
                break


@kernel
def _copy(source, first, bits, to, at):
    """Copy the vectors of a k-mer."""
    v = 0
    while True:
        wide.store(to, at + v * LANES, wide.load(source, first + v * LANES))
        v = next_vector(v, bits)
        if v == 0:
            break


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
    kept : float64, shape (n_slots * rows * 3 * V * 8,)
        Flow towards the match state in the next row, from match states and from others, and towards the skip state in
        the same row. With independent noise all of the first two is in the first.
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
    place, of_kmer, _, last, changes, changed, slot = pack.course
    events, inverse, offset, constant = pack.events, pack.inverse, pack.offset, pack.constant
    inverse_before, offset_before = pack.inverse_before, pack.offset_before
    shape = pack.width, pack.low
    n_kmers = last.shape[0]
    vectors = 1 << (pack.width - pack.low)
    per_kmer = vectors * LANES
    size = n_kmers * per_kmer
    rows = pack.after.shape[0] // LANES
    per_row = inverse.shape[0] if densities.is_kept else 0
    free, stay_densities, step_densities = densities.free, densities.stay, densities.step
    match = zeros(room, size)
    wrong = zeros(room, size)
    arriving = zeros(room, size + per_kmer)  # at each k-mer's match state, from the k-mer before in the row before
    leaving = zeros(room, size + per_kmer)
    arriving_free = zeros(room, 0 if noise is None else size + per_kmer)  # what of it is not from match states
    leaving_free = zeros(room, 0 if noise is None else size + per_kmer)
    skips = zeros(room, size + per_kmer)  # at each k-mer's skip state, from the k-mer before in the same row
    scale = wide.splat(NEVER)
    greatest = zero
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
        new_scale = wide.maximum(scale + wide.exponent(greatest), wide.floor(entering))
        change = wide.power2(scale - new_scale)
        scale = new_scale
        wide.store(scales, row * LANES, scale)
        entered = factor * wide.exp2(entering - scale)
        row_stay = change * p_stay
        row_bad = change * wide.splat(P_BAD)
        row_from_bad = change * from_bad
        greatest = zero
        before = 0
        for j in range(n_kmers):
            bits = of_kmer[j]
            first = j * per_kmer
            v = 0
            while True:
                at = first + v * LANES
                source = first + (v & before) * LANES
                density_at = of_row + place[j * vectors + v]
                match_same = wide.load(match, at)
                wrong_same = wide.load(wrong, at)
                skipped = wide.load(skips, source)
                density = wide.widened(free, density_at)
                if noise is None:
                    into = wide.madd(row_from_bad, wrong_same, change * wide.load(arriving, source))
                    good = wide.madd(density, wide.madd(row_stay, match_same, into), entered)
                else:
                    into = wide.madd(row_from_bad, wrong_same, change * wide.load(arriving_free, source))
                    into = wide.madd(wide.widened(stay_densities, density_at), row_stay * match_same, density * into)
                    stepping = change * wide.load(arriving, source)
                    into = wide.madd(wide.widened(step_densities, density_at), stepping, into)
                    good = into + entered
                bad = row_bad * (match_same + wrong_same)
                both = good + bad
                greatest = wide.maximum(greatest, both)
                wide.store(match, at, good)
                wide.store(wrong, at, bad)
                if last[j]:
                    end = row * per_kmer + v * LANES
                    is_last = wide.lanes_of(last[j])
                    wide.store(ends, end, wide.select(is_last, both + skipped, wide.load(ends, end)))
                left = from_bad * bad
                onward = wide.madd(from_skip, skipped, left)
                if noise is None:
                    wide.store(leaving, at + per_kmer, wide.madd(step, good, onward))
                else:
                    wide.store(leaving, at + per_kmer, step * good)
                    wide.store(leaving_free, at + per_kmer, onward)
                wide.store(skips, at + per_kmer, wide.madd(skip_self, skipped, wide.madd(skip, good, left)))
                v = next_vector(v, bits)
                if v == 0:
                    break
            entered = zero
            before = bits
            if j + 1 < n_kmers and changes[j + 1]:
                first = (j + 1) * per_kmer
                if slot[j + 1] >= 0:
                    to = (slot[j + 1] * rows + row) * 3 * per_kmer
                    _copy(leaving, first, bits, kept, to)
                    if noise is not None:
                        _copy(leaving_free, first, bits, kept, to + per_kmer)
                    _copy(skips, first, bits, kept, to + 2 * per_kmer)
                _forget(leaving, j + 1, bits, shape, changes[j + 1], changed)
                if noise is not None:
                    _forget(leaving_free, j + 1, bits, shape, changes[j + 1], changed)
                _forget(skips, j + 1, bits, shape, changes[j + 1], changed)
        greatest = greatest_of_window(greatest, pack.low)
        arriving, leaving = leaving, arriving
        arriving_free, leaving_free = leaving_free, arriving_free


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
    place, of_kmer_onward, of_kmer, last, changes, changed, slot = pack.course
    after, events, inverse, offset, constant = pack.after, pack.events, pack.inverse, pack.offset, pack.constant
    inverse_before, offset_before = pack.inverse_before, pack.offset_before
    shape = pack.width, pack.low
    n_kmers = last.shape[0]
    vectors = 1 << (pack.width - pack.low)
    per_kmer = vectors * LANES
    size = (n_kmers + 1) * per_kmer
    rows = pack.after.shape[0] // LANES
    first_slot = np.int64(0)  # no k-mer before it matters
    while slot[first_slot] < 0:
        first_slot += 1
    per_row = inverse.shape[0] if densities.is_kept else 0
    free, stay_densities, step_densities = densities.free, densities.stay, densities.step
    # What may follow each match state of the row below, times that row's density. After the last k-mer nothing does.
    match, match_now = zeros(room, size), zeros(room, size)
    wrong = zeros(room, size)
    # With correlated noise the match state one k-mer on counts with the density of a step, or, after a bad event or a
    # skip, with that of neither.
    stepped = zeros(room, 0 if noise is None else size)
    stepped_free = zeros(room, 0 if noise is None else size)
    skips = zeros(room, size)  # what may follow each skip state in the same row
    scale = wide.splat(NEVER)
    greatest = zero
    for row in range(rows - 1, -1, -1):
        end = wide.load(after, row * LANES)
        below = scale
        scale = wide.maximum(below + wide.exponent(greatest), wide.floor(end))
        change = wide.power2(below - scale)
        is_row = wide.ge(end, wide.splat(0.5 * NEVER))
        ended = wide.select(is_row, wide.exp2(end - scale), zero)
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
        behind = 0
        for j in range(n_kmers - 1, first_slot - 2, -1):
            on = (j + 1) * per_kmer
            if j + 1 < n_kmers and changes[j + 1]:
                if noise is None:
                    _forget(match, j + 1, behind, shape, changes[j + 1], changed)
                else:
                    _forget(stepped, j + 1, behind, shape, changes[j + 1], changed)
                    _forget(stepped_free, j + 1, behind, shape, changes[j + 1], changed)
                _forget(skips, j + 1, behind, shape, changes[j + 1], changed)
                if slot[j + 1] >= 0:
                    first = (slot[j + 1] * rows + row) * 3 * per_kmer
                    v = 0
                    while True:
                        to = slot[j + 1] * per_kmer + v * LANES
                        at, source = first + v * LANES, on + (v & behind) * LANES
                        from_match = wide.load(kept, at) * below_1
                        skipping = wide.load(kept, at + 2 * per_kmer) * same_1
                        into_skips = wide.load(skips, source) * same_2
                        if noise is None:
                            flow = wide.madd(from_match, wide.load(match, source) * below_2, skipping * into_skips)
                        else:
                            from_others = wide.load(kept, at + per_kmer) * below_1
                            flow = from_others * (wide.load(stepped_free, source) * below_2)
                            flow = wide.madd(from_match, wide.load(stepped, source) * below_2, flow)
                            flow = wide.madd(skipping, into_skips, flow)
                        wide.store(flows, to, wide.load(flows, to) + flow)
                        v = next_vector(v, of_kmer_onward[j])
                        if v == 0:
                            break
            if j < first_slot:
                break
            bits = of_kmer[j]
            finish = zero
            if last[j]:
                finish = wide.select(wide.lanes_of(last[j]), ended, zero)
            v = 0
            while True:
                at = j * per_kmer + v * LANES
                source = on + (v & behind) * LANES
                density_at = of_dense + place[j * vectors + v]
                match_below = wide.load(match, at)
                skipped = wide.load(skips, source)
                bad = wide.madd(row_bad, wide.load(wrong, at), finish)
                density = wide.widened(free, density_at)
                same = change * match_below
                if noise is None:
                    onto_free = change * wide.load(match, source)
                    onto = wide.madd(step, onto_free, wide.madd(skip, skipped, bad))
                    good = density * wide.madd(stay, same, onto)
                    any_match = same + onto_free
                else:
                    onto = wide.madd(step, change * wide.load(stepped, source), wide.madd(skip, skipped, bad))
                    good = wide.madd(stay, same * wide.widened(stay_densities, density_at), onto)
                    onto_free = change * wide.load(stepped_free, source)
                    wide.store(stepped, at, match_below * wide.widened(step_densities, density_at))
                    wide.store(stepped_free, at, match_below * density)
                    any_match = wide.madd(same, density, onto_free)
                wrong_now = wide.madd(from_bad, any_match + skipped, bad)
                wide.store(match_now, at, good)
                wide.store(wrong, at, wrong_now)
                wide.store(skips, at, wide.madd(skip_self, skipped, wide.madd(from_skip, onto_free, finish)))
                greatest = wide.maximum(greatest, wide.maximum(good, wrong_now))
                v = next_vector(v, bits)
                if v == 0:
                    break
            behind = bits
        greatest = greatest_of_window(greatest, pack.low)
        match, match_now = match_now, match
