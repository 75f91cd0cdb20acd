"""Jitted forward and backward algorithm with the states of sites; see `f5py.methylation.per_site` for the mathematics.

Several windows are solved side by side, a pack: eight lanes are four windows with two states of the sites under a
k-mer each, two with four or one with eight. A window with more states has several such vectors for each k-mer. The
windows of a pack have the same width w; state s of window i is in lane ``2 ** w * i + s``. State arrays hold, for k-mer
j and vector v of V, lane l at element ``8 * (V * j + v) + l``.

All is in double precision and probability space: a window's true values in a row are the stored ones times
``2 ** scale``, with a whole number, and no state that matters lies more than a few hundred orders of e below the row's
greatest, as the last k-mer can be reached from every other within a row.

With independent noise an event has one density in a k-mer and lane. With correlated noise it has three, by where the
path comes from (`f5py.methylation.correlated`); then flows that come from match states are kept apart from the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.hmm import P_BAD, P_FROM_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.jit import simd_double as wide
from f5py.jit.kernel import kernel
from f5py.methylation._site_densities_numba import entry, fill_correlated, fill_independent, zeros

LANES = wide.LANES
#: Stands for the logarithm of zero.
NEVER = -1e30


class Pack(NamedTuple):
    """Windows that are solved side by side."""

    width: int  # the most sites that share a k-mer in each window
    vectors: int  # of each k-mer
    # events: shape (16 * rows,): means: each row's eight lanes twice; a window that has fewer repeats its last one
    events: NDArray[np.float32]
    # after: shape (8 * rows,): base-two logarithm of the probability of the events after the row as background, in each
    # lane; `NEVER` in rows that a window does not have
    after: NDArray[np.float64]
    # inverse, offset, constant: emissions of all k-mers, vectors and lanes as
    # `f5py.methylation._hmm_numba.forward_lanes` has them; after a window's last k-mer `inverse` is 0 and `constant`
    # never
    inverse: NDArray[np.float32]
    offset: NDArray[np.float32]
    constant: NDArray[np.float32]
    last: NDArray[np.int64]  # shape (n_kmers,): the lanes, as bits, whose last k-mer it is
    # changes: shape (n_kmers,): the lanes in which bits of the state change from one site to another on the way into
    # the k-mer: bits 0 to 7 are the lanes of bit 0, bits 8 to 15 and 16 to 23 those of bits 1 and 2, and the number
    # above them is the distance of two vectors that differ in a further bit which changes, or 0
    changes: NDArray[np.int64]
    # slot: shape (n_kmers,): number of the k-mer among those into which bit 0 changes in any of the windows, or -1
    slot: NDArray[np.int64]


@kernel
def greatest_of_window(values, width):
    """Give all lanes of a window the greatest of their values."""
    if width >= 1:
        values = wide.maximum(values, wide.swapped_1(values))
    if width >= 2:
        values = wide.maximum(values, wide.swapped_2(values))
    if width >= 3:
        values = wide.maximum(values, wide.swapped_4(values))
    return values


@kernel
def _average(values, first, per_kmer, changes):
    """Forget the states of the sites that are left on the way into a k-mer, whose values begin at `first`.

    Both lanes of each pair that differs in such a state get the mean of the two. `changes` are those of the pack.
    """
    half = wide.splat(0.5)
    for at in range(first, first + per_kmer, LANES):
        x = wide.load(values, at)
        x = wide.select(wide.lanes_of(changes), half * (x + wide.swapped_1(x)), x)
        x = wide.select(wide.lanes_of(changes >> LANES), half * (x + wide.swapped_2(x)), x)
        x = wide.select(wide.lanes_of(changes >> (2 * LANES)), half * (x + wide.swapped_4(x)), x)
        wide.store(values, at, x)
    far = changes >> (3 * LANES)
    if far > 0:
        for v in range(per_kmer // LANES):
            other = v ^ far
            if v < other:
                mean = half * (wide.load(values, first + v * LANES) + wide.load(values, first + other * LANES))
                wide.store(values, first + v * LANES, mean)
                wide.store(values, first + other * LANES, mean)


@kernel
def _copy(source, first, to, at, n):
    for i in range(0, n, LANES):
        wide.store(to, at + i, wide.load(source, first + i))


@kernel
def forward(pack, p_stay, noise, densities, scales, ends, kept, room):
    """Fill scales and end masses of every row, and the flow out of the last k-mer before each slot.

    Parameters
    ----------
    pack : Pack
    p_stay : float
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
    step = wide.splat(1.0 - p_stay - P_SKIP - P_BAD)
    from_bad = wide.splat(P_FROM_BAD)
    from_skip = wide.splat(P_FROM_SKIP)
    skip = wide.splat(P_SKIP)
    skip_self = wide.splat(P_SKIP_SELF)
    zero = wide.splat(0.0)
    # In a loop each use of a tuple's array would change the count of its users.
    last, changes, slot = pack.last, pack.changes, pack.slot
    events, inverse, offset, constant = pack.events, pack.inverse, pack.offset, pack.constant
    n_kmers = last.shape[0]
    per_kmer = pack.vectors * LANES
    size = n_kmers * per_kmer
    rows = pack.after.shape[0] // LANES
    per_row = inverse.shape[0] if densities.free.shape[0] == rows * inverse.shape[0] else 0
    free, stay_densities, step_densities = densities.free, densities.stay, densities.step
    residuals, residuals_before = densities.w, densities.w_before
    match = zeros(room, size)
    wrong = zeros(room, size)
    arriving = zeros(room, size + per_kmer)  # at each k-mer's match state, from the k-mer before in the row before
    leaving = zeros(room, size + per_kmer)
    arriving_free = zeros(room, 0 if noise is None else size + per_kmer)  # what of it is not from match states
    leaving_free = zeros(room, 0 if noise is None else size + per_kmer)
    # to the k-mer's skip state from the k-mer before in the same row; of a single vector it stays in a register
    skips = zeros(room, per_kmer)
    skipped = zero
    is_single = per_kmer == LANES
    scale = wide.splat(NEVER)
    greatest = zero
    for row in range(rows):
        of_row = row * per_row
        if noise is None:
            fill_independent(events, inverse, offset, constant, row, free, of_row)
        else:
            fill_correlated(
                events, inverse, offset, constant, row, max(row - 1, 0), noise, free, stay_densities, step_densities,
                residuals, residuals_before, of_row,
            )  # fmt: skip
        # No site's base lies under the first k-mer, so all lanes of a window enter alike. The exponent may be far below
        # what the emissions hold, and the first event has no other way in.
        factor, entering = entry(events, inverse, offset, constant, row, noise)
        new_scale = wide.maximum(scale + wide.exponent(greatest), wide.floor(entering))
        change = wide.power2(scale - new_scale)
        scale = new_scale
        wide.store(scales, row * LANES, scale)
        entered = factor * wide.exp2(entering - scale)
        row_stay = change * wide.splat(p_stay)
        row_bad = change * wide.splat(P_BAD)
        row_from_bad = change * from_bad
        greatest = zero
        skipped = zero
        for v in range(0, per_kmer, LANES):
            wide.store(skips, v, zero)
        for j in range(n_kmers):
            for v in range(0, per_kmer, LANES):
                at = j * per_kmer + v
                match_same = wide.load(match, at)
                wrong_same = wide.load(wrong, at)
                if not is_single:
                    skipped = wide.load(skips, v)
                density = wide.widened(free, of_row + at)
                if noise is None:
                    into = wide.madd(row_from_bad, wrong_same, change * wide.load(arriving, at))
                    good = wide.madd(density, wide.madd(row_stay, match_same, into), entered)
                else:
                    into = wide.madd(row_from_bad, wrong_same, change * wide.load(arriving_free, at))
                    into = wide.madd(wide.widened(stay_densities, of_row + at), row_stay * match_same, density * into)
                    into = wide.madd(wide.widened(step_densities, of_row + at), change * wide.load(arriving, at), into)
                    good = into + entered
                bad = row_bad * (match_same + wrong_same)
                both = good + bad
                greatest = wide.maximum(greatest, both)
                wide.store(match, at, good)
                wide.store(wrong, at, bad)
                if last[j]:
                    end = row * per_kmer + v
                    is_last = wide.lanes_of(last[j])
                    wide.store(ends, end, wide.select(is_last, both + skipped, wide.load(ends, end)))
                left = from_bad * bad
                onward = wide.madd(from_skip, skipped, left)
                if noise is None:
                    wide.store(leaving, at + per_kmer, wide.madd(step, good, onward))
                else:
                    wide.store(leaving, at + per_kmer, step * good)
                    wide.store(leaving_free, at + per_kmer, onward)
                skipped = wide.madd(skip_self, skipped, wide.madd(skip, good, left))
                if not is_single:
                    wide.store(skips, v, skipped)
            entered = zero
            if j + 1 < n_kmers and changes[j + 1]:
                first = (j + 1) * per_kmer
                if is_single:
                    wide.store(skips, 0, skipped)
                if slot[j + 1] >= 0:
                    to = (slot[j + 1] * rows + row) * 3 * per_kmer
                    _copy(leaving, first, kept, to, per_kmer)
                    if noise is not None:
                        _copy(leaving_free, first, kept, to + per_kmer, per_kmer)
                    _copy(skips, 0, kept, to + 2 * per_kmer, per_kmer)
                _average(leaving, first, per_kmer, changes[j + 1])
                if noise is not None:
                    _average(leaving_free, first, per_kmer, changes[j + 1])
                _average(skips, 0, per_kmer, changes[j + 1])
                skipped = wide.load(skips, 0)
        greatest = greatest_of_window(greatest, pack.width)
        arriving, leaving = leaving, arriving
        arriving_free, leaving_free = leaving_free, arriving_free


@kernel
def _halves(exponent):
    """Two powers of two whose product is that of `exponent`, which may be out of range."""
    half = wide.floor(wide.splat(0.5) * exponent)
    return wide.power2(half), wide.power2(exponent - half)


@kernel
def backward(pack, p_stay, noise, densities, scales, kept, reference, flows, room):
    """Add up, for every slot, the probability of all paths through it by lane, over ``2 ** reference``.

    Parameters
    ----------
    pack, p_stay, noise
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
    stay = wide.splat(p_stay)
    step = wide.splat(1.0 - p_stay - P_SKIP - P_BAD)
    from_bad = wide.splat(P_FROM_BAD)
    from_skip = wide.splat(P_FROM_SKIP)
    skip = wide.splat(P_SKIP)
    skip_self = wide.splat(P_SKIP_SELF)
    zero = wide.splat(0.0)
    last, changes, slot, after = pack.last, pack.changes, pack.slot, pack.after
    events, inverse, offset, constant = pack.events, pack.inverse, pack.offset, pack.constant
    n_kmers = last.shape[0]
    per_kmer = pack.vectors * LANES
    size = n_kmers * per_kmer
    rows = pack.after.shape[0] // LANES
    first_slot = np.int64(0)  # no k-mer before it matters
    while slot[first_slot] < 0:
        first_slot += 1
    per_row = inverse.shape[0] if densities.free.shape[0] == rows * inverse.shape[0] else 0
    free, stay_densities, step_densities = densities.free, densities.stay, densities.step
    residuals, residuals_before = densities.w, densities.w_before
    match = zeros(room, size)  # what may follow each match state of the row below, times that row's density
    wrong = zeros(room, size)
    onward = zeros(room, per_kmer)  # `match` of the row below one k-mer on
    onward_free = zeros(room, per_kmer)  # the same after a bad event or a skip
    skips = zeros(room, per_kmer)  # what may follow the skip state one k-mer on in the same row
    skipped = before = before_free = zero  # of a single vector those three stay in registers
    is_single = per_kmer == LANES
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
                    events, inverse, offset, constant, dense, row, noise, free, stay_densities, step_densities,
                    residuals, residuals_before, 0,
                )  # fmt: skip
        # The product of two scales may be out of range where that of the two masses is not: a half for each of them.
        ahead = wide.load(scales, row * LANES) - wide.load(reference, 0)
        below_1, below_2 = _halves(ahead + below)
        same_1, same_2 = _halves(ahead + scale)
        of_dense = dense * per_row
        greatest = zero
        skipped = before = before_free = zero
        for v in range(0, per_kmer, LANES):
            wide.store(onward, v, zero)
            wide.store(onward_free, v, zero)
            wide.store(skips, v, zero)
        for j in range(n_kmers - 1, first_slot - 2, -1):
            if j + 1 < n_kmers and changes[j + 1]:
                if is_single:
                    wide.store(onward, 0, before)
                    wide.store(onward_free, 0, before_free)
                    wide.store(skips, 0, skipped)
                _average(onward, 0, per_kmer, changes[j + 1])
                if noise is not None:
                    _average(onward_free, 0, per_kmer, changes[j + 1])
                _average(skips, 0, per_kmer, changes[j + 1])
                if slot[j + 1] >= 0:
                    first = (slot[j + 1] * rows + row) * 3 * per_kmer
                    for v in range(0, per_kmer, LANES):
                        to = slot[j + 1] * per_kmer + v
                        at = first + v
                        flow = (wide.load(kept, at) * below_1) * (wide.load(onward, v) * below_2)
                        if noise is not None:
                            at += per_kmer
                            flow = flow + (wide.load(kept, at) * below_1) * (wide.load(onward_free, v) * below_2)
                        at = first + 2 * per_kmer + v
                        flow = flow + (wide.load(kept, at) * same_1) * (wide.load(skips, v) * same_2)
                        wide.store(flows, to, wide.load(flows, to) + flow)
                before = wide.load(onward, 0)
                before_free = wide.load(onward_free, 0)
                skipped = wide.load(skips, 0)
            if j < first_slot:
                break
            finish = zero
            if last[j]:
                finish = wide.select(wide.lanes_of(last[j]), ended, zero)
            for v in range(0, per_kmer, LANES):
                at = j * per_kmer + v
                match_below = wide.load(match, at)
                if not is_single:
                    before = wide.load(onward, v)
                    before_free = wide.load(onward_free, v)
                    skipped = wide.load(skips, v)
                bad = wide.madd(row_bad, wide.load(wrong, at), finish)
                density = wide.widened(free, of_dense + at)
                onto = wide.madd(step, change * before, wide.madd(skip, skipped, bad))
                same = change * match_below
                if noise is None:
                    good = density * wide.madd(stay, same, onto)
                    on = change * before
                    before = match_below
                else:
                    good = wide.madd(stay, same * wide.widened(stay_densities, of_dense + at), onto)
                    on = change * before_free
                    before = match_below * wide.widened(step_densities, of_dense + at)
                    before_free = match_below * density
                    same = same * density
                wrong_now = wide.madd(from_bad, same + on + skipped, bad)
                skipped = wide.madd(skip_self, skipped, wide.madd(from_skip, on, finish))
                wide.store(match, at, good)
                wide.store(wrong, at, wrong_now)
                greatest = wide.maximum(greatest, wide.maximum(good, wrong_now))
                if not is_single:
                    wide.store(onward, v, before)
                    wide.store(onward_free, v, before_free)
                    wide.store(skips, v, skipped)
        greatest = greatest_of_window(greatest, pack.width)
