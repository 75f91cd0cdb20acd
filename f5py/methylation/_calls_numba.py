"""Jitted scoring of site groups; see `f5py.methylation.calls`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._read_view_numba import read_view, segment_of
from f5py.core.hmm import LN_INVERSE_SQRT_2PI
from f5py.jit import simd
from f5py.jit.c_memory import aligned_floats
from f5py.jit.kernel import inner, kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.methylation._groups_numba import (
    FLANK,
    GroupBatch,
    Groups,
    enlarged_scratch,
    find_groups,
    first_listed,
    groups_from,
    is_site,
    order_groups,
    site_scratch,
    window_length,
)
from f5py.methylation._hmm_numba import NEVER, Emissions, ForwardScratch, forward_lanes, work_size
from f5py.methylation._noise_numba import forward_correlated

LOG2_E = 1.4426950408889634
#: Minimum number of groups sorted together, of several reads, to fill packs with groups of like size; less for batches
#: with few groups, so that all threads get some.
TOGETHER, _LEAST_TOGETHER, _PARTS = 2048, 256, 64
#: Groups of a thread's task in `score_blocks`.
BLOCK = 128
#: Letters of the methylation alphabet ACGMT, and the code of M.
CODES = 5
METHYLATED = 3


class Scores(NamedTuple):
    """Log-likelihoods of groups or sites, natural logarithms."""

    methylated: NDArray[np.float32]  # shape (>= n,)
    unmethylated: NDArray[np.float32]  # shape (>= n,)


class ReadCalls(NamedTuple):
    """Calls of one read: one element per group or site."""

    # first, last: shape (>= n,): reference positions of the first and last site
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    sites: NDArray[np.int32]  # shape (>= n,): number of sites
    # methylated, unmethylated: shape (>= n,): log-likelihoods, natural logarithms
    methylated: NDArray[np.float32]
    unmethylated: NDArray[np.float32]


@inner
def fill_plain(segment, first, length, motif, reverse, plain):
    """Fill the codes of ``segment[first:first + length]`` on the read's strand.

    On the reverse strand each position holds the code of the complementary base.
    """
    for i in range(length):
        code = motif.letter_codes[segment[first + i]]
        plain[i] = motif.complement[code] if reverse else code


@inner
def fill_methylated(segment, first, length, motif, overlapping, plain, changed):
    """Methylate the sites of the codes in `plain`, from left to right.

    Without `overlapping`, sites that overlap the preceding one are skipped, as in nanopolish.
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


@inner
def fill_emissions(kmers, model, fits, emissions):
    """Fill the emission parameters of the k-mers of all lanes.

    Parameters
    ----------
    kmers : int64
        Ranks; below 0 for no k-mer, with an emission of zero.
    model : f5py.pore_model.model.Levels
    fits : tuple of four vectors
        Shift, scale, var and ln(var) of each lane's read.
    emissions : Emissions
        As many elements as `kmers`, a multiple of 16.
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
    shift, scale, var, ln_var = fits
    numerator = simd.splat(np.float32(np.sqrt(0.5 * LOG2_E)))
    ln_constant, log2_e = simd.splat(np.float32(LN_INVERSE_SQRT_2PI)), simd.splat(np.float32(LOG2_E))
    zero = simd.splat(np.float32(0.0))
    for at in range(0, kmers.shape[0], simd.LANES):
        stretch = numerator / (simd.load(inverse, at) * var)
        simd.store(inverse, at, stretch)
        simd.store(offset, at, (zero - simd.madd(scale, simd.load(offset, at), shift)) * stretch)
        simd.store(constant, at, (ln_constant - simd.load(constant, at) - ln_var) * log2_e)


@inner
def fill_ranks(codes, k, reverse, n_kmers, ranks):
    """Fill the rank of each k-mer of the read's strand, in forward order."""
    highest = 1
    for _ in range(k - 1):
        highest *= CODES
    rank = 0
    # rolling ranks
    for i in range(k - 1):
        rank = rank // CODES + codes[i] * highest if reverse else rank * CODES + codes[i]
    for j in range(n_kmers):
        code = codes[j + k - 1]
        rank = rank // CODES + code * highest if reverse else rank * CODES + code
        ranks[j] = rank
        if not reverse:
            rank -= codes[j] * highest


@inner
def score_groups(batch, model, motifs, noise, overlapping, listed, scores):
    """Compute log-likelihoods of groups with all sites methylated and with none.

    Parameters
    ----------
    batch : f5py.core.batch.BatchView
    model : f5py.pore_model.model.Levels
        Over the alphabet ACGMT.
    motifs : pair of MotifCodes
        Of forward and of reverse reads.
    noise : f5py.methylation.correlated.NoiseTerms or None
        Code for either is compiled at its first use.
    overlapping : bool
        See `fill_methylated`.
    listed : GroupBatch
    scores : Scores
        One element per group.
    """
    alignments, events_of_reads, scaling = batch.alignments, batch.events, batch.scaling
    groups = listed.groups
    score_methylated, score_unmethylated = scores
    # the lanes of a pack need like numbers of k-mers and events
    k = model.k
    count = listed.read.shape[0]
    order_key = np.empty(count, np.int64)
    order, max_bases, max_events = order_groups(alignments, listed, order_key)

    max_kmers = max_bases - k + 1
    codes = np.empty((2, max_bases), np.uint8)
    ranks = np.empty(max_kmers, np.int64)
    kmers = np.empty(max_kmers * simd.LANES, np.int64)
    emissions = Emissions(
        aligned_floats(max_kmers * simd.LANES), aligned_floats(max_kmers * simd.LANES),
        aligned_floats(max_kmers * simd.LANES),
    )  # fmt: skip
    events = aligned_floats(max_events * simd.LANES)
    work = aligned_floats(work_size(max_kmers))
    ends = aligned_floats(max_events * simd.LANES)
    scales = aligned_floats(max_events * simd.LANES)
    scores = np.empty(simd.LANES, np.float32)
    lane_events = np.empty(simd.LANES, np.int64)
    lane_kmers = np.empty(simd.LANES, np.int64)
    events_per_base = np.empty(simd.LANES, np.float64)
    fits = np.empty(4 * simd.LANES, np.float32)
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
            read = listed.read[g]
            segment, reverse = segment_of(alignments, read), alignments.reverse[read]
            motif = motifs[1 if reverse else 0]
            ln_var = np.float32(np.log(scaling.var[read]))
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
                events_per_base[lane] = batch.events_per_base[read]
                fits[lane], fits[simd.LANES + lane] = scaling.shift[read], scaling.scale[read]
                fits[2 * simd.LANES + lane] = scaling.var[read]
                fits[3 * simd.LANES + lane] = ln_var
            first_event = events_of_reads.offsets[read] + groups.begin[g]
            stride = 1 if groups.begin[g] < groups.end[g] else -1
            for row in range(pack_rows):
                x = events_of_reads.mean[first_event + stride * min(row, n_events - 1)]
                events[row * simd.LANES + 2 * slot] = x
                events[row * simd.LANES + 2 * slot + 1] = x
        lane_fits = (
            simd.load(fits, 0), simd.load(fits, simd.LANES), simd.load(fits, 2 * simd.LANES),
            simd.load(fits, 3 * simd.LANES),
        )  # fmt: skip
        fill_emissions(kmers[: pack_kmers * simd.LANES], model, lane_fits, emissions)
        scratch = ForwardScratch(work, ends, scales)
        if noise is None:
            forward_lanes(events, emissions, lane_events, lane_kmers, events_per_base, scratch, scores)
        else:
            forward_correlated(events, emissions, lane_events, lane_kmers, events_per_base, noise, scratch, scores)
        for slot in range(min(groups_per_pack, count - pack)):
            g = order[pack + slot]
            score_methylated[g] = scores[2 * slot]
            score_unmethylated[g] = scores[2 * slot + 1]
    simd.restore_mode(mode)


@kernel
def score_blocks(queue, blocks, batch, model, motifs, noise, listed, scores):
    """Score blocks of groups by `score_groups`, one block per task.

    Parameters
    ----------
    blocks : int64, shape (n,)
        First groups of blocks of `BLOCK` groups.
    listed, scores
        All groups, as of `score_groups`.
    """
    for i in claimed_indices(work_counter(queue), blocks.shape[0]):
        first = blocks[i]
        count = min(BLOCK, listed.read.shape[0] - first)
        block = first_listed(GroupBatch(listed.read[first:], groups_from(listed.groups, first)), count)
        of_block = Scores(scores.methylated[first:], scores.unmethylated[first:])
        score_groups(batch, model, motifs, noise, False, block, of_block)


@inner
def calls_between(calls, first, end):
    """Return the `ReadCalls` in a range of a batch's `f5py.core.batch.Calls`."""
    return ReadCalls(
        calls.first[first:end], calls.last[first:end], calls.sites[first:end], calls.methylated[first:end],
        calls.unmethylated[first:end],
    )  # fmt: skip


@inner
def _call_listed(listed, place, batch, model, motifs, noise, overlapping, calls):
    """Score groups, and fill the calls at the indices `place`."""
    groups = listed.groups
    count = place.shape[0]
    if count == 0:
        return
    scores = Scores(np.empty(count, np.float32), np.empty(count, np.float32))
    score_groups(batch, model, motifs, noise, overlapping, listed, scores)
    for g in range(count):
        start, at = batch.alignments.start[listed.read[g]], place[g]
        calls.first[at], calls.last[at] = groups.first[g] + start, groups.last[g] + start
        calls.sites[at] = groups.sites[g]
        calls.methylated[at], calls.unmethylated[at] = scores.methylated[g], scores.unmethylated[g]


@inner
def call_groups(queue, reads, batch, model, motifs, noise, listing, calls):
    """Find and score the site groups of `reads`.

    Parameters
    ----------
    listing : f5py.methylation._group_list_numba.GroupWindows or None
        Filled. With a listing, all overlapping sites count; see `fill_methylated`.
    others
        Those of `call_all`.
    """
    most, total = np.int64(0), np.int64(0)
    for i in range(reads.shape[0]):
        n = calls.offsets[reads[i] + 1] - calls.offsets[reads[i]]
        most = max(most, n)
        total += n
    together = min(max(total // _PARTS, _LEAST_TOGETHER), TOGETHER)
    most += together
    place = np.empty(most, np.int64)
    listed = GroupBatch(
        np.empty(most, np.int64),
        Groups(
            np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int32), np.empty(most, np.int64),
            np.empty(most, np.int64),
        ),
    )  # fmt: skip
    overlapping = listing is not None
    scratch = site_scratch(0, 0)
    count = 0
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        view = read_view(batch, read, model.k)
        groups = groups_from(listed.groups, count)
        scratch = enlarged_scratch(scratch, view.segment.shape[0], view.cigar.shape[0])
        found = find_groups(view, model.k, motifs[1 if view.reverse else 0], groups, scratch)
        calls.n[read] = found
        for g in range(found):
            at = calls.offsets[read] + g
            listed.read[count + g], place[count + g] = read, at
            if listing is not None:
                listing.window[at] = groups.first[g] - FLANK
                listing.n_bases[at] = window_length(view.segment, groups.first[g], groups.last[g])
                listing.begin[at], listing.end[at] = groups.begin[g], groups.end[g]
        count += found
        if count >= together:
            _call_listed(first_listed(listed, count), place[:count], batch, model, motifs, noise, overlapping, calls)
            count = 0
    _call_listed(first_listed(listed, count), place[:count], batch, model, motifs, noise, overlapping, calls)


@kernel
def call_all(queue, reads, batch, model, motifs, noise, calls):
    """Find and score the site groups of `reads`.

    Parameters
    ----------
    batch : f5py.core.batch.BatchView
    model, noise
        As of `score_groups`.
    motifs : pair of MotifCodes
        Of forward and of reverse reads.
    calls : f5py.core.batch.Calls
    """
    call_groups(queue, reads, batch, model, motifs, noise, None, calls)
