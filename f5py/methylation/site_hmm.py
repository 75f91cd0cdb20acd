"""Forward and backward algorithm with states of sites; see `f5py.methylation.per_site`.

Several windows, a pack, are solved in parallel. Each window has a lane, and each state of the sites under a k-mer a
vector. For many sites under a k-mer, to save memory, the lowest bits of a state are in the lanes, and a window has
adjacent lanes for them. The windows of a pack have the same width w. State s of window i is in vector ``s >> low`` and
lane ``2 ** low * i + s % 2 ** low``.

Equal vectors are computed once, as a cell. Before a site of any window comes under the k-mer, its bit of the state
makes no difference. In the backward pass a bit matters only where its site is under the k-mer. The cells of all k-mers
are consecutive, see `f5py.methylation.site_cells.CellLayout`.

Values are probabilities in double precision. A window's true values in a row are the stored ones times ``2 ** scale``,
with a whole number, so scaling is exact. The last k-mer can be reached from every other within a row, so relevant
states are at most a few hundred orders of e below the row's largest.

Four rows are computed together, k-mer by k-mer, with flows between them in registers. A loop runs over k-mers with the
same cells, for the cells of one state each; edges are the flows between loops. Four rows have one scale. It is that of
the largest value in the row before the last four, or of later entries, so they need not wait for the end of the
preceding four.

With independent noise an event has one density in a k-mer and lane. With correlated noise it has three, by the
preceding state (`f5py.methylation.hmm`), so flows from match states are separate from others.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.hmm import P_BAD, P_FROM_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.jit import simd
from f5py.jit import simd_double as wide
from f5py.jit.kernel import inner
from f5py.methylation.group_scores import CODES, fill_emissions
from f5py.methylation.hmm import FIRST_BACKGROUND, MORE_BACKGROUND, NO_BACKGROUND, Emissions, stay_probability
from f5py.methylation.site_cells import (
    LANES,
    NEVER,
    ROWS,
    WindowPack,
    arena_size,
    cell_of,
    ended,
    entered,
    entry,
    fill_kmers,
    fill_lane_ranks,
    fill_rows,
    lane_bits,
    lay_out_pack,
    list_changes,
    make_arena,
    next_states,
    next_vector,
    states_before,
    sum_out_sites,
    take_densities,
    take_doubles,
    take_floats,
    take_integers,
    take_zeros,
)


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
    # events of a k-mer have mean ``scale * level_mean + shift`` in pA and standard deviation ``var * level_stdv``
    shift: NDArray[np.float32]
    scale: NDArray[np.float32]
    var: NDArray[np.float32]
    events_per_base: NDArray[np.float64]


@inner
def _greatest_of_window(values, low):
    """Return the largest value of each window in all of its lanes."""
    if low >= 1:
        values = wide.maximum(values, wide.swapped_1(values))
    if low >= 2:
        values = wide.maximum(values, wide.swapped_2(values))
    if low >= 3:
        values = wide.maximum(values, wide.swapped_4(values))
    return values


@inner
def _forward(pack, noise, densities, scales, ends, kept, room):
    """Fill scales (float64, shape (8 * rows,)) and end masses (8 * V * rows), and the kept flows.

    `kept` (n_slots * rows * V * 8 * 2, or 3 with correlated noise) has the flow out of the last k-mer before each slot:
    for each vector to the match state in the next row, from match states and, with correlated noise, from others, and
    to the skip state in the same row. `densities` are filled, too; temporary arrays are taken from `room`.
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
                out_a, free_a, skip_a = _load_edge(edges_before, at, onto)
                out_b, free_b, skip_b = _load_edge(edges_before, at + stride, onto)
                out_c, free_c, skip_c = _load_edge(edges_before, at + 2 * stride, onto)
                skip_d = wide.load(edges_before, at + 3 * stride + onto)
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
        top, new_top = new_top, scale + wide.exponent(_greatest_of_window(greatest, pack.low))


@inner
def _load_edge(edges, at, onto):
    return wide.load(edges, at), wide.load(edges, at + onto - LANES), wide.load(edges, at + onto)


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
def _backward(pack, noise, densities, scales, kept, reference, flows, room):
    """Add up, for every slot, the probability of all paths through it by state, over ``2 ** reference``.

    `reference` (float64, shape (8,)) are whole numbers. `flows` (n_slots * V * 8) are zeros, to be filled.
    Densities, scales and kept flows are those of `_forward`.
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
                after_a, free_a, skip_a = _load_edge(edges_before, at, onto)
                after_b, free_b, skip_b = _load_edge(edges_before, at + stride, onto)
                after_c, free_c, skip_c = _load_edge(edges_before, at + 2 * stride, onto)
                after_d, free_d, skip_d = _load_edge(edges_before, at + 3 * stride, onto)
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
        top, new_top = new_top, scale + wide.exponent(_greatest_of_window(greatest, pack.low))


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
def _make_pack(windows, chosen, width, low, rows, n_kmers, course, event_mean, model, noise, room):
    """Make the pack of the windows `chosen`, perhaps repeated, for one or more lanes each."""
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
    shifts, scales, variances, per_base = windows.shift, windows.scale, windows.var, windows.events_per_base
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
    _forward(pack, noise, densities, scales, ends, kept, room)

    best = wide.splat(NEVER)
    for row in range(rows):
        greatest = wide.load(ends, row * per_kmer)
        for v in range(LANES, per_kmer, LANES):
            greatest = wide.maximum(greatest, wide.load(ends, row * per_kmer + v))
        greatest = wide.exponent(_greatest_of_window(greatest, pack.low))
        after = wide.floor(wide.widened(pack.after, row * simd.LANES))
        best = wide.maximum(best, wide.load(scales, row * LANES) + after + greatest)
    wide.store(reference, 0, best)
    masses = take_zeros(room, (n_slots + 1) * per_kmer)
    for row in range(rows):
        after = wide.widened(pack.after, row * simd.LANES)
        whole = wide.floor(after)
        factor, other = _halves(wide.load(scales, row * LANES) + whole - best)
        other = other * wide.exp2(after - whole)
        for v in range(0, per_kmer, LANES):
            at = n_slots * per_kmer + v
            mass = wide.load(ends, row * per_kmer + v) * factor
            wide.store(masses, at, wide.madd(mass, other, wide.load(masses, at)))
    if n_slots > 0:
        _backward(pack, noise, densities, scales, kept, reference, masses, room)
    return masses


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

    Similar windows should be adjacent. `event_mean` (float32) is in pA, the model over the alphabet ACGMT. `shares` are
    `SiteLikelihoods` of the sites of `windows.modified`, and are filled. Return the scratch memory, perhaps enlarged.
    """
    count, widths, exponents = windows.width.shape[0], windows.width, shares.exponents
    reference = np.empty(LANES)
    several = np.empty(LANES, np.int64)
    mode = simd.flush_denormals()
    first = 0
    while first < count:
        width = widths[first]
        low = lane_bits(width)
        chosen = several[: LANES >> low]
        n = 1
        while n < chosen.shape[0] and first + n < count and widths[first + n] == width:
            n += 1
        for i in range(chosen.shape[0]):
            chosen[i] = first + min(i, n - 1)
        rows, n_kmers, most_slots = _size_of(windows, chosen, model.k)
        needed = arena_size(rows, n_kmers, width, LANES << (width - low), most_slots, noise is not None)
        if needed > room.work.shape[0]:
            room = make_arena(needed + needed // 4)
        room.used[0] = 0
        course, n_slots = lay_out_pack(windows, chosen, (width, low, n_kmers), model.k, noise is not None, room)
        pack = _make_pack(windows, chosen, width, low, rows, n_kmers, course, event_mean, model, noise, room)
        masses = _score_pack(pack, n_slots, noise, reference, room)
        for i in range(n):
            exponents[first + i] = reference[i << low]
        _finish_windows(windows, (first, n), model.k, pack, masses, shares)
        first += n
    simd.restore_mode(mode)
    return room
