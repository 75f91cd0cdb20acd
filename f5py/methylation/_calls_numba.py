"""Jitted loops that score site groups; see `f5py.methylation.calls`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._read_view_numba import read_view
from f5py.core._turns_numba import counter, own_turns
from f5py.core.hmm import LN_INVERSE_SQRT_2PI
from f5py.jit import simd
from f5py.jit.kernel import kernel
from f5py.methylation._groups_numba import FLANK, Groups, find_groups, first_groups, is_site, window_length
from f5py.methylation._hmm_numba import NEVER, Emissions, Scratch, forward_lanes, work_size
from f5py.methylation._noise_numba import forward_correlated

LOG2_E = 1.4426950408889634
#: Letters of the methylation alphabet ACGMT, and the code of M.
CODES = 5
METHYLATED = 3


class Fit(NamedTuple):
    """Relation of a read's events to the model."""

    # shift, scale, var: a k-mer's events are about ``scale * level_mean + shift``, with ``var * level_stdv`` around
    # that; shift in pA
    shift: np.float32
    scale: np.float32
    var: np.float32
    events_per_base: float


class ReadEvents(NamedTuple):
    """A read's events."""

    mean: NDArray[np.float32]  # shape (n_events,): in pA
    fit: Fit


class Scores(NamedTuple):
    """Log-likelihoods of groups or sites, natural logarithms, to be filled."""

    methylated: NDArray[np.float32]  # shape (>= n,)
    unmethylated: NDArray[np.float32]  # shape (>= n,)


class ReadCalls(NamedTuple):
    """The calls of one read, one element a group or site."""

    # first, last: shape (>= n,): reference positions of the first and last site
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    sites: NDArray[np.int32]  # shape (>= n,): their number
    # methylated, unmethylated: shape (>= n,): log-likelihoods, natural logarithms
    methylated: NDArray[np.float32]
    unmethylated: NDArray[np.float32]


@kernel
def fill_plain(segment, first, length, motif, reverse, plain):
    """Fill the codes of ``segment[first:first + length]`` on the read's strand.

    On the reverse strand each position holds the code of the base opposite to it.

    Parameters
    ----------
    segment : uint8
        Letters of the forward strand.
    first, length : int
        In bases.
    motif : f5py.core.motifs.MotifCodes
    reverse : bool
    plain : uint8, shape (>= length,)
        Filled.
    """
    for i in range(length):
        code = motif.letter_codes[segment[first + i]]
        plain[i] = motif.complement[code] if reverse else code


@kernel
def fill_methylated(segment, first, length, motif, overlapping, plain, changed):
    """Methylate the sites of the codes in `plain`, from left to right.

    Of sites that overlap each other every one, or only the first and then those after it, as nanopolish does.
    """
    for i in range(length):
        changed[i] = plain[i]
    i = 0
    while i + motif.masks.shape[0] <= length:
        if is_site(segment, first + i, motif):
            changed[i + motif.offset] = METHYLATED
            i += 1 if overlapping else motif.masks.shape[0]
        else:
            i += 1


@kernel
def fill_emissions(kmers, model, fit, emissions):
    """Fill the emission parameters of the k-mers of all lanes.

    Parameters
    ----------
    kmers : int64
        Ranks; below 0 where there is no k-mer, so that nothing is emitted.
    model : f5py.pore_model.model.Levels
    fit : Fit
    emissions : Emissions
        Of as many elements as `kmers` has, a multiple of 16.
    """
    inverse, offset, constant = emissions
    for at in range(kmers.shape[0]):
        rank = kmers[at]
        if rank >= 0:
            inverse[at] = model.level_stdv[rank]
            offset[at] = model.level_mean[rank]
            constant[at] = model.ln_stdv[rank]
        else:
            inverse[at] = np.inf
            offset[at] = 0.0
            constant[at] = -NEVER
    numerator = simd.splat(np.float32(np.sqrt(0.5 * LOG2_E)))
    shift, scale, var = simd.splat(fit.shift), simd.splat(fit.scale), simd.splat(fit.var)
    ln_constant, ln_var = simd.splat(np.float32(LN_INVERSE_SQRT_2PI)), simd.splat(np.float32(np.log(fit.var)))
    log2_e, zero = simd.splat(np.float32(LOG2_E)), simd.splat(np.float32(0.0))
    for at in range(0, kmers.shape[0], simd.LANES):
        stretch = numerator / (simd.load(inverse, at) * var)
        simd.store(inverse, at, stretch)
        simd.store(offset, at, (zero - simd.madd(scale, simd.load(offset, at), shift)) * stretch)
        simd.store(constant, at, (ln_constant - simd.load(constant, at) - ln_var) * log2_e)


@kernel
def fill_ranks(codes, k, reverse, n_kmers, ranks):
    """Rank of each k-mer of the read's strand, in forward order."""
    highest = 1
    for _ in range(k - 1):
        highest *= CODES
    rank = 0
    # Ranks roll along the sequence: a new base enters at one end of the k-mer and the oldest leaves at the other.
    for i in range(k - 1):
        rank = rank // CODES + codes[i] * highest if reverse else rank * CODES + codes[i]
    for j in range(n_kmers):
        code = codes[j + k - 1]
        rank = rank // CODES + code * highest if reverse else (rank % highest) * CODES + code
        ranks[j] = rank


@kernel
def sort_pass(key, shift, n_digits, order, result):
    """Fill `result` with `order` stably sorted by the 32 bits of ``key[order]`` from `shift` on, below `n_digits`.

    Two such passes do what `np.argsort` would, which takes two seconds to compile.
    """
    starts = np.zeros(n_digits + 1, np.int64)
    for g in range(key.shape[0]):
        starts[(key[g] >> shift & 0xFFFFFFFF) + 1] += 1
    for d in range(n_digits):
        starts[d + 1] += starts[d]
    for i in range(order.shape[0]):
        d = key[order[i]] >> shift & 0xFFFFFFFF
        result[starts[d]] = order[i]
        starts[d] += 1


@kernel
def order_groups(segment, groups, count, order_key):
    """Order the first `count` groups by the numbers of their window's bases and of their events.

    `order_key` (int64) is filled with bases times 2 ** 32 plus events, group by group.
    """
    max_events = np.int64(0)
    max_bases = np.int64(0)
    for g in range(count):
        n_events = abs(groups.end[g] - groups.begin[g]) + 1
        n_bases = window_length(segment, groups.first[g], groups.last[g])
        order_key[g] = (n_bases << 32) + n_events
        max_events = max(max_events, n_events)
        max_bases = max(max_bases, n_bases)
    orders = np.empty((3, count), np.int64)
    for g in range(count):
        orders[0, g] = g
    # The shifts are no literals, for each of which the pass would be compiled once.
    sort_pass(order_key, np.int64(0), max_events + 1, orders[0], orders[1])
    sort_pass(order_key, np.int64(32), max_bases + 1, orders[1], orders[2])
    return orders[2], max_bases, max_events


@kernel
def score_groups(read, events, model, motif, noise, overlapping, groups, scores):
    """Score groups as a whole: log-likelihoods with their sites methylated and with none.

    Parameters
    ----------
    read : f5py.core._read_view_numba.ReadView
    events : ReadEvents
    model : f5py.pore_model.model.Levels
        Over the alphabet ACGMT.
    motif : f5py.core.motifs.MotifCodes
    noise : f5py.methylation.correlated.Terms or None
        Code for either is compiled when it is first used.
    overlapping : bool
        See `fill_methylated`.
    groups : Groups
    scores : Scores
        Filled, one element a group.
    """
    segment, reverse = read.segment, read.reverse
    event_mean, fit = events
    score_methylated, score_unmethylated = scores
    # Lanes of one pack should have like numbers of k-mers and events: order by both.
    k = model.k
    count = groups.first.shape[0]
    order_key = np.empty(count, np.int64)
    order, max_bases, max_events = order_groups(segment, groups, count, order_key)

    max_kmers = max_bases - k + 1
    codes = np.empty((2, max_bases), np.uint8)
    ranks = np.empty(max_kmers, np.int64)
    kmers = np.empty(max_kmers * simd.LANES, np.int64)
    emissions = Emissions(
        np.empty(max_kmers * simd.LANES, np.float32), np.empty(max_kmers * simd.LANES, np.float32),
        np.empty(max_kmers * simd.LANES, np.float32),
    )  # fmt: skip
    events = np.empty(max_events * simd.LANES, np.float32)
    work = np.empty(work_size(max_kmers), np.float32)
    ends = np.empty(max_events * simd.LANES, np.float32)
    scales = np.empty(max_events * simd.LANES, np.float32)
    scores = np.empty(simd.LANES, np.float32)
    lane_events = np.empty(simd.LANES, np.int64)
    lane_kmers = np.empty(simd.LANES, np.int64)
    groups_per_pack = simd.LANES // 2
    mode = simd.flush_denormals()
    for pack in range(0, count, groups_per_pack):
        pack_rows = 0
        pack_kmers = 0
        for slot in range(groups_per_pack):
            key = order_key[order[min(pack + slot, count - 1)]]
            pack_rows = max(pack_rows, key & 0xFFFFFFFF)
            pack_kmers = max(pack_kmers, (key >> 32) - k + 1)
        for slot in range(groups_per_pack):
            g = order[min(pack + slot, count - 1)]  # an incomplete pack repeats its last group
            window = groups.first[g] - FLANK
            n_bases = order_key[g] >> 32
            n_events = order_key[g] & 0xFFFFFFFF
            n_kmers = n_bases - k + 1
            fill_plain(segment, window, n_bases, motif, reverse, codes[1])
            fill_methylated(segment, window, n_bases, motif, overlapping, codes[1], codes[0])
            for hypothesis in range(2):
                lane = 2 * slot + hypothesis
                fill_ranks(codes[hypothesis], k, reverse, n_kmers, ranks)
                for j in range(pack_kmers):
                    kmers[j * simd.LANES + lane] = ranks[j] if j < n_kmers else -1
                lane_events[lane] = n_events
                lane_kmers[lane] = n_kmers
            stride = 1 if groups.begin[g] < groups.end[g] else -1
            for row in range(pack_rows):
                x = event_mean[groups.begin[g] + stride * min(row, n_events - 1)]
                events[row * simd.LANES + 2 * slot] = x
                events[row * simd.LANES + 2 * slot + 1] = x
        fill_emissions(kmers[: pack_kmers * simd.LANES], model, fit, emissions)
        scratch = Scratch(work, ends, scales)
        if noise is None:
            forward_lanes(events, emissions, lane_events, lane_kmers, fit.events_per_base, scratch, scores)
        else:
            forward_correlated(
                events, emissions, lane_events, lane_kmers, fit.events_per_base, noise, scratch, scores
            )  # fmt: skip
        for slot in range(min(groups_per_pack, count - pack)):
            g = order[pack + slot]
            score_methylated[g] = scores[2 * slot]
            score_unmethylated[g] = scores[2 * slot + 1]
    simd.restore_mode(mode)


@kernel
def call_read(read, events, model, motif, noise, calls):
    """Find and score the site groups of one read; return their number.

    Parameters
    ----------
    read, events, model, motif, noise
        As of `score_groups`.
    calls : ReadCalls
        Filled with one entry a group.
    """
    capacity = calls.first.shape[0]
    groups = Groups(calls.first, calls.last, calls.sites, np.empty(capacity, np.int64), np.empty(capacity, np.int64))
    count = find_groups(read, model.k, motif, groups)
    if count > 0:
        score_groups(
            read, events, model, motif, noise, False, first_groups(groups, count),
            Scores(calls.methylated, calls.unmethylated),
        )  # fmt: skip
    for g in range(count):
        calls.first[g] += read.start
        calls.last[g] += read.start
    return count


@kernel
def read_events(batch, read):
    """Return the `ReadEvents` of a read of a `f5py.core.batch.BatchView`."""
    events, scaling = batch.events, batch.scaling
    return ReadEvents(
        events.mean[events.offsets[read] : events.offsets[read + 1]],
        Fit(scaling.shift[read], scaling.scale[read], scaling.var[read], batch.events_per_base[read]),
    )


@kernel
def calls_between(calls, first, end):
    """Return the `ReadCalls` in some slots of a batch's `f5py.core.batch.Calls`."""
    return ReadCalls(
        calls.first[first:end], calls.last[first:end], calls.sites[first:end], calls.methylated[first:end],
        calls.unmethylated[first:end],
    )  # fmt: skip


@kernel
def call_all(turn, reads, batch, model, motifs, noise, calls):
    """Apply `call_read` to `reads`.

    Parameters
    ----------
    batch : f5py.core.batch.BatchView
    model, noise
        As of `score_groups`.
    motifs : pair of MotifCodes
        Of forward and of reverse reads.
    calls : f5py.core.batch.Calls
        Filled.
    """
    for i in own_turns(counter(turn), reads.shape[0]):
        read = reads[i]
        view = read_view(batch, read, model.k)
        calls.n[read] = call_read(
            view,
            read_events(batch, read),
            model,
            motifs[1 if view.reverse else 0],
            noise,
            calls_between(calls, calls.offsets[read], calls.offsets[read + 1]),
        )
