"""Jitted forward and backward algorithm with states of sites; see `f5py.methylation.per_site`.

Several windows, a pack, are solved in parallel. Each window has a lane, and each state of the sites under a k-mer a
vector. For many sites under a k-mer, to save memory, the lowest bits of a state are in the lanes, and a window has
adjacent lanes for them. The windows of a pack have the same width w. State s of window i is in vector ``s >> low`` and
lane ``2 ** low * i + s % 2 ** low``.

Equal vectors are computed once, as a cell. Before a site of any window comes under the k-mer, its bit of the state
makes no difference. In the backward pass a bit matters only where its site is under the k-mer. The cells of all k-mers
are consecutive, see `f5py.methylation._site_layout_numba.CellLayout`.

Values are probabilities in double precision. A window's true values in a row are the stored ones times ``2 ** scale``,
with a whole number, so scaling is exact. The last k-mer can be reached from every other within a row, so relevant
states are at most a few hundred orders of e below the row's largest.

Four rows are computed together, k-mer by k-mer, with flows between them in registers. A loop runs over k-mers with the
same cells, for the cells of one state each; edges are the flows between loops. Four rows have one scale. It is that of
the largest value in the row before the last four, or of later entries, so they need not wait for the end of the
preceding four.

With independent noise an event has one density in a k-mer and lane. With correlated noise it has three, by the
preceding state (`f5py.methylation.correlated`), so flows from match states are separate from others.
"""

from __future__ import annotations

from f5py.core.hmm import P_BAD, P_FROM_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.jit import simd
from f5py.jit import simd_double as wide
from f5py.jit.kernel import inner
from f5py.methylation._site_densities_numba import (
    NEVER,
    ROWS,
    ended,
    entered,
    entry,
    fill_rows,
    next_states,
    states_before,
    take_zeros,
)
from f5py.methylation._site_layout_numba import sum_out_sites

LANES = wide.LANES


@inner
def greatest_of_window(values, low):
    """Return the largest value of each window in all of its lanes."""
    if low >= 1:
        values = wide.maximum(values, wide.swapped_1(values))
    if low >= 2:
        values = wide.maximum(values, wide.swapped_2(values))
    if low >= 3:
        values = wide.maximum(values, wide.swapped_4(values))
    return values


@inner
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
        For each vector the flow to the match state in the next row, from match states and, with correlated noise, from
        others, and the flow to the skip state in the same row.
    room : Room
        For temporary arrays.
    """
    step = wide.load(pack.step, 0)
    p_stay, p_bad = wide.load(pack.stay, 0), wide.splat(P_BAD)
    from_bad = wide.splat(P_FROM_BAD)
    further = step, from_bad, wide.splat(P_FROM_SKIP), wide.splat(P_SKIP), wide.splat(P_SKIP_SELF)
    later = p_stay, p_bad, from_bad, *further
    zero = wide.splat(0.0)
    # outside the loop, as each use changes the array's reference count
    (_, first, source, pairs, stops), _, place, _, last, changes, changed, slot = pack.course
    shape = pack.width, pack.low
    width = pack.width
    n_kmers = last.shape[0]
    vectors = 1 << (pack.width - pack.low)
    rows = pack.events.shape[0] // LANES
    events, emissions = pack.events, (pack.inverse, pack.offset, pack.constant, pack.inverse_before, pack.offset_before)
    first_emission = wide.widened(pack.inverse, 0), wide.widened(pack.offset, 0), wide.widened(pack.constant, 0)
    per_row = pack.inverse.shape[0]
    n_out = 2 if noise is None else 3
    stride = n_out * LANES
    onto = stride - LANES  # elements of the flow to the next k-mer's match state in the next row
    # for each cell: match and bad-event state of the preceding row, and the flow to the next row
    size = 2 * LANES + onto
    states = take_zeros(room, source.shape[0] * size)
    # for each last cell of a loop: flow from the preceding row to the first one; for each row the flows to the next
    # row and to the next k-mer's skip state; finally a cell of zeros
    of_edge = onto + ROWS * stride
    edges_before = take_zeros(room, (vectors + 1) * of_edge)
    edges = take_zeros(room, (vectors + 1) * of_edge)
    scale = whole = top = new_top = wide.splat(NEVER)
    for row in range(0, rows, ROWS):
        of_a = row * per_row if densities.is_kept else 0
        fill_rows(events, emissions, noise, row, densities, of_a)
        of_b, of_c, of_d = of_a + per_row, of_a + 2 * per_row, of_a + 3 * per_row
        # No site's base is under the first k-mer, so all lanes of a window enter alike. The exponent may be out of the
        # emissions' range, and the first event has no other entry.
        entry_a, entry_b = entry(events, first_emission, row, noise), entry(events, first_emission, row + 1, noise)
        entry_c, entry_d = entry(events, first_emission, row + 2, noise), entry(events, first_emission, row + 3, noise)
        new_whole = wide.maximum(wide.maximum(entry_a[1], entry_b[1]), wide.maximum(entry_c[1], entry_d[1]))
        new_whole = wide.floor(new_whole)
        new_scale = wide.maximum(wide.maximum(top, whole), new_whole)
        change = wide.power2(scale - new_scale)
        scale, whole = new_scale, new_whole
        for i in range(ROWS):
            wide.store(scales, (row + i) * LANES, scale)
        entered_a, entered_b = entered(entry_a, scale), entered(entry_b, scale)
        entered_c, entered_d = entered(entry_c, scale), entered(entry_d, scale)
        now = change * p_stay, change * p_bad, change * from_bad, *further
        greatest = zero
        kmer = 0
        for stretch in range(stops.shape[0]):
            begin, kmer = kmer, stops[stretch]
            n = first[begin + 1] - first[begin]
            end = first[kmer]
            for v in range(n):
                cell = first[begin] + v
                at = vectors if begin == 0 else source[cell] - first[begin - 1]
                at *= of_edge
                old, old_free = wide.load(edges_before, at), wide.load(edges_before, at + onto - LANES)
                at += onto
                out_a, free_a = wide.load(edges_before, at), wide.load(edges_before, at + onto - LANES)
                skip_a = wide.load(edges_before, at + onto)
                at += stride
                out_b, free_b = wide.load(edges_before, at), wide.load(edges_before, at + onto - LANES)
                skip_b = wide.load(edges_before, at + onto)
                at += stride
                out_c, free_c = wide.load(edges_before, at), wide.load(edges_before, at + onto - LANES)
                skip_c = wide.load(edges_before, at + onto)
                skip_d = wide.load(edges_before, at + stride + onto)
                was_a = was_b = was_c = was_d = good_a = good_b = good_c = good_d = zero
                wrong_a = wrong_b = wrong_c = wrong_d = out_d = free_d = zero
                while cell < end:
                    at = cell * size
                    density = place[cell]
                    was_a, was_b, was_c, was_d = skip_a, skip_b, skip_c, skip_d
                    same = wide.load(states, at), wide.load(states, at + LANES)
                    before, old = (change * old, change * old_free), wide.load(states, at + 2 * LANES)
                    old_free = wide.load(states, at + LANES + onto)
                    came = out_a, free_a
                    good_a, wrong_a, out_a, free_a, skip_a = next_states(
                        noise, densities, of_a + density, now, before, same, was_a, entered_a
                    )
                    before, same = (out_b, free_b), (good_a, wrong_a)
                    good_b, wrong_b, out_b, free_b, skip_b = next_states(
                        noise, densities, of_b + density, later, came, same, was_b, entered_b
                    )
                    came, same = (out_c, free_c), (good_b, wrong_b)
                    good_c, wrong_c, out_c, free_c, skip_c = next_states(
                        noise, densities, of_c + density, later, before, same, was_c, entered_c
                    )
                    same = good_c, wrong_c
                    good_d, wrong_d, out_d, free_d, skip_d = next_states(
                        noise, densities, of_d + density, later, came, same, was_d, entered_d
                    )
                    greatest = wide.maximum(greatest, good_d + wrong_d)
                    wide.store(states, at, good_d)
                    wide.store(states, at + LANES, wrong_d)
                    wide.store(states, at + 2 * LANES, out_d)
                    if noise is not None:
                        wide.store(states, at + 3 * LANES, free_d)
                    cell += n
                at = v * of_edge
                wide.store(edges, at + onto - LANES, old_free)
                wide.store(edges, at, old)
                _store_edge(edges, at + onto, onto, out_a, free_a, skip_a)
                _store_edge(edges, at + onto + stride, onto, out_b, free_b, skip_b)
                _store_edge(edges, at + onto + 2 * stride, onto, out_c, free_c, skip_c)
                _store_edge(edges, at + onto + 3 * stride, onto, out_d, free_d, skip_d)
                if last[kmer - 1]:
                    at = (row * vectors + v) * LANES
                    lanes = wide.lanes_of(last[kmer - 1])
                    _store_some(ends, at, lanes, good_a + wrong_a + was_a)
                    _store_some(ends, at + vectors * LANES, lanes, good_b + wrong_b + was_b)
                    _store_some(ends, at + 2 * vectors * LANES, lanes, good_c + wrong_c + was_c)
                    _store_some(ends, at + 3 * vectors * LANES, lanes, good_d + wrong_d + was_d)
            entered_a = entered_b = entered_c = entered_d = zero
            if kmer < n_kmers and changes[kmer]:
                if slot[kmer] >= 0:
                    to = (slot[kmer] * rows + row) * vectors * stride
                    for v in range(n):
                        for i in range(ROWS):
                            for x in range(0, stride, LANES):
                                out = wide.load(edges, v * of_edge + onto + i * stride + x)
                                wide.store(kept, to + (i * vectors + v) * stride + x, out)
                to = kmer * width
                sum_out_sites(
                    edges, (onto, n, of_edge, ROWS * n_out), shape, changes[kmer], pairs, to - width, changed, to
                )
                for v in range(n):
                    for x in range(0, onto, LANES):
                        out = wide.load(edges, (v + 1) * of_edge - stride + x)
                        wide.store(states, (end - n + v) * size + 2 * LANES + x, out)
            edges_before, edges = edges, edges_before
        top, new_top = new_top, scale + wide.exponent(greatest_of_window(greatest, pack.low))


@inner
def _store_edge(edges, at, onto, out, free, skips):
    wide.store(edges, at + onto - LANES, free)
    wide.store(edges, at, out)
    wide.store(edges, at + onto, skips)


@inner
def _store_some(array, at, lanes, values):
    wide.store(array, at, wide.select(lanes, values, wide.load(array, at)))


@inner
def _halves(exponent):
    """Return two powers of two with the product ``2 ** exponent``, itself possibly out of range."""
    half = wide.floor(wide.splat(0.5) * exponent)
    return wide.power2(half), wide.power2(exponent - half)


@inner
def _flow(noise, kept, at, edges, came, halves):
    """Return the probability of a row's paths through a slot.

    `at` and `came` are the indices of the stored forward flows and of the backward edges.
    """
    half, other = halves
    from_match = wide.load(kept, at) * half
    if noise is None:
        skipping = wide.load(kept, at + LANES) * half
        into_skips = wide.load(edges, came + LANES) * other
        return wide.madd(from_match, wide.load(edges, came) * other, skipping * into_skips)
    skipping = wide.load(kept, at + 2 * LANES) * half
    into_skips = wide.load(edges, came + 2 * LANES) * other
    flow = wide.load(kept, at + LANES) * half * (wide.load(edges, came + LANES) * other)
    flow = wide.madd(from_match, wide.load(edges, came) * other, flow)
    return wide.madd(skipping, into_skips, flow)


@inner
def backward(pack, noise, densities, scales, kept, reference, flows, room):
    """Add up, for every slot, the probability of all paths through it by state, over ``2 ** reference``.

    Parameters
    ----------
    pack, noise
        As for `forward`.
    densities, scales, kept
        Filled by `forward`.
    reference : float64, shape (8,)
        Whole numbers.
    flows : float64, shape (>= n_slots * V * 8,)
        Zeros, to be filled.
    room : Room
        As for `forward`.
    """
    p_bad = wide.splat(P_BAD)
    most = wide.load(pack.stay, 0), wide.load(pack.step, 0), wide.splat(P_FROM_BAD), wide.splat(P_FROM_SKIP)
    skips = wide.splat(P_SKIP), wide.splat(P_SKIP_SELF)
    chances = *most, p_bad, *skips
    zero = wide.splat(0.0)
    onward, (_, first, source, pairs, stops), _, across, last, changes, changed, slot = pack.course
    first_onward = onward.first
    shape = pack.width, pack.low
    width = pack.width
    n_kmers = last.shape[0]
    vectors = 1 << (pack.width - pack.low)
    after = pack.after
    rows = pack.events.shape[0] // LANES
    events, emissions = pack.events, (pack.inverse, pack.offset, pack.constant, pack.inverse_before, pack.offset_before)
    per_row = pack.inverse.shape[0]
    n_out = 2 if noise is None else 3
    stride = n_out * LANES
    onto = stride - LANES
    # backward values of the row below: match states, with independent noise times their density, and bad events
    states = take_zeros(room, source.shape[0] * 2 * LANES)
    # for each last cell of a loop, for the row below and each row but the last: values after a match state, with the
    # density of a step or, with correlated noise, also with the free one; then after a skip in the row above; finally
    # a cell of zeros
    of_edge = ROWS * stride
    edges_before = take_zeros(room, (vectors + 1) * of_edge)
    edges = take_zeros(room, (vectors + 1) * of_edge)
    scale = whole = top = new_top = wide.splat(NEVER)
    for row in range(rows - ROWS, -1, -ROWS):  # rows from a, the lowest, to d
        at = row * simd.LANES
        end_d, end_c = wide.widened(after, at), wide.widened(after, at + simd.LANES)
        end_b, end_a = wide.widened(after, at + 2 * simd.LANES), wide.widened(after, at + 3 * simd.LANES)
        below = scale
        new_whole = wide.floor(wide.maximum(wide.maximum(end_a, end_b), wide.maximum(end_c, end_d)))
        scale = wide.maximum(wide.maximum(top, whole), new_whole)
        whole = new_whole
        change = wide.power2(below - scale)
        ended_a, ended_b = ended(end_a, scale), ended(end_b, scale)
        ended_c, ended_d = ended(end_c, scale), ended(end_d, scale)
        now = *most, change * p_bad, *skips
        # with correlated noise those of the row below, not in `states`
        dense = row if noise is None else row + 1
        if not densities.is_kept:
            fill_rows(events, emissions, noise, dense, densities, 0)
        of_d = dense * per_row if densities.is_kept else 0
        of_c, of_b, of_a = of_d + per_row, of_d + 2 * per_row, of_d + 3 * per_row
        if densities.is_kept and dense + 3 == rows:  # nothing follows, whatever the density
            of_a = of_b
        # half for each mass: the product of both scales may be out of range
        ahead = wide.load(scales, row * LANES) - wide.load(reference, 0)
        halves = _halves(ahead + scale)
        greatest = zero
        kmer = n_kmers
        for stretch in range(stops.shape[0]):
            begin, kmer = kmer, stops[stretch]
            n = first[begin] - first[begin - 1]
            end = first[kmer]
            finish_a = finish_b = finish_c = finish_d = zero
            if last[kmer]:
                lanes = wide.lanes_of(last[kmer])
                finish_a, finish_b = wide.select(lanes, ended_a, zero), wide.select(lanes, ended_b, zero)
                finish_c, finish_d = wide.select(lanes, ended_c, zero), wide.select(lanes, ended_d, zero)
            for v in range(n):
                cell = first[begin - 1] + v
                at = vectors if begin == n_kmers else source[cell] - first[begin]
                at *= of_edge
                after_a, free_a = wide.load(edges_before, at), wide.load(edges_before, at + onto - LANES)
                skip_a = wide.load(edges_before, at + onto)
                at += stride
                after_b, free_b = wide.load(edges_before, at), wide.load(edges_before, at + onto - LANES)
                skip_b = wide.load(edges_before, at + onto)
                at += stride
                after_c, free_c = wide.load(edges_before, at), wide.load(edges_before, at + onto - LANES)
                skip_c = wide.load(edges_before, at + onto)
                at += stride
                after_d, free_d = wide.load(edges_before, at), wide.load(edges_before, at + onto - LANES)
                skip_d = wide.load(edges_before, at + onto)
                while cell >= end:
                    at = cell * LANES
                    same, wrong = wide.load(states, 2 * at), wide.load(states, 2 * at + LANES)
                    good, wrong, after_a, free_a, skip_a = states_before(
                        noise, densities, of_a + at, now, (change * same, wrong), (after_a, free_a), skip_a, finish_a
                    )
                    good, wrong, after_b, free_b, skip_b = states_before(
                        noise, densities, of_b + at, chances, (good, wrong), (after_b, free_b), skip_b, finish_b
                    )
                    good, wrong, after_c, free_c, skip_c = states_before(
                        noise, densities, of_c + at, chances, (good, wrong), (after_c, free_c), skip_c, finish_c
                    )
                    good, wrong, after_d, free_d, skip_d = states_before(
                        noise, densities, of_d + at, chances, (good, wrong), (after_d, free_d), skip_d, finish_d
                    )
                    greatest = wide.maximum(greatest, wide.maximum(good, wrong))
                    wide.store(states, 2 * at, good)
                    wide.store(states, 2 * at + LANES, wrong)
                    cell -= n
                at = v * of_edge
                _store_edge(edges, at, onto, after_a, free_a, skip_a)
                _store_edge(edges, at + stride, onto, after_b, free_b, skip_b)
                _store_edge(edges, at + 2 * stride, onto, after_c, free_c, skip_c)
                _store_edge(edges, at + 3 * stride, onto, after_d, free_d, skip_d)
            edges_before, edges = edges, edges_before
            if changes[kmer] == 0:
                continue
            to = kmer * width
            sum_out_sites(edges_before, (0, n, of_edge, ROWS * n_out), shape, changes[kmer], pairs, to, changed, to)
            if slot[kmer] < 0:
                continue
            at = (slot[kmer] * rows + row) * vectors * stride
            to = slot[kmer] * vectors * LANES
            for cell in range(first_onward[kmer - 1], first_onward[kmer]):
                came = (across[cell] - end) * of_edge
                flow = wide.load(flows, to)
                for i in range(ROWS - 1, -1, -1):
                    flow = flow + _flow(noise, kept, at + i * vectors * stride, edges_before, came, halves)
                    came += stride
                wide.store(flows, to, flow)
                at += stride
                to += LANES
        top, new_top = new_top, scale + wide.exponent(greatest_of_window(greatest, pack.low))
