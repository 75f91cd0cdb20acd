"""Jitted loops for groups that are scored elsewhere; see `f5py.methylation.calls`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.hmm import P_BAD, P_SKIP
from f5py.jit import simd
from f5py.jit.atomics import next_turn
from f5py.jit.kernel import kernel
from f5py.methylation._calls_numba import (
    Fit,
    fill_emission,
    fill_methylated,
    fill_plain,
    fill_ranks,
    order_groups,
)
from f5py.methylation._groups_numba import FLANK, Groups, find_groups
from f5py.methylation._hmm_numba import LOWEST_END, forward_exact, log_score, stay_probability


class Listing(NamedTuple):
    """Groups in the slots of a batch's calls: what scoring them takes besides the calls' own arrays.

    Attributes
    ----------
    window, n_bases : int32
        First base of the group's window in the reference segment, and its length.
    begin, end : int32
        First and last event under the window, in the order of the reference.
    columns : int32
        K-mers that are computed: those of the group with the most of them in its pack, see `score_groups`.
    """

    window: NDArray[np.int32]
    n_bases: NDArray[np.int32]
    begin: NDArray[np.int32]
    end: NDArray[np.int32]
    columns: NDArray[np.int32]


@kernel
def list_read(segment, reference_start, cigar, reverse, first_event, read_length, k, motif, calls, first, end, listing):
    """Find the groups of one read, for the slots `first` to `end`; return their number."""
    capacity = end - first
    groups = Groups(
        calls.first[first:end],
        calls.last[first:end],
        calls.sites[first:end],
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
    )
    count = find_groups(segment, reference_start, cigar, reverse, first_event, read_length, k, motif, groups)
    if count == 0:
        return 0
    order_key = np.empty(count, np.int64)
    order, _, _ = order_groups(segment, groups, count, k, order_key)
    groups_per_pack = simd.LANES // 2
    for pack in range(0, count, groups_per_pack):
        end_of_pack = min(pack + groups_per_pack, count)
        most = 0
        for i in range(pack, end_of_pack):
            most = max(most, (order_key[order[i]] >> 32) - k + 1)
        for i in range(pack, end_of_pack):
            listing.columns[first + order[i]] = most
    for g in range(count):
        listing.window[first + g] = groups.first[g] - FLANK
        listing.n_bases[first + g] = order_key[g] >> 32
        listing.begin[first + g] = groups.begin[g]
        listing.end[first + g] = groups.end[g]
        groups.first[g] += reference_start
        groups.last[g] += reference_start
    return count


@kernel
def list_all(turn, reads, alignments, base_map, k, motifs, calls, listing):
    """`list_read` for `reads`."""
    while True:
        i = next_turn(turn)
        if i >= reads.shape[0]:
            break
        read = reads[i]
        first_base = base_map.offsets[read]
        read_length = base_map.offsets[read + 1] - first_base
        calls.n[read] = list_read(
            alignments.reference[alignments.reference_offsets[read] : alignments.reference_offsets[read + 1]],
            alignments.start[read],
            alignments.cigar[alignments.cigar_offsets[read] : alignments.cigar_offsets[read + 1]],
            alignments.reverse[read],
            base_map.first_event[first_base : first_base + read_length - k + 1],
            read_length,
            k,
            motifs[1 if alignments.reverse[read] else 0],
            calls,
            calls.offsets[read],
            calls.offsets[read + 1],
            listing,
        )


@kernel
def numbers_of_reads(events_per_base, var, numbers):
    """Fill the probabilities of staying and of a step, and ln(var), of each read as `forward_lanes` takes them."""
    for i in range(var.shape[0]):
        p_stay = stay_probability(events_per_base[i])
        numbers[i, 0] = p_stay
        numbers[i, 1] = 1.0 - p_stay - P_SKIP - P_BAD
        numbers[i, 2] = np.log(var[i])


@kernel
def score_exactly(segment, reverse, event_mean, fit, model, motif, window, n_bases, begin, end, is_methylated):
    """The score of one group under one hypothesis in double precision, as `forward_lanes` has it where it must."""
    n_kmers = n_bases - model.k + 1
    n_events = abs(end - begin) + 1
    codes = np.empty((2, n_bases), np.uint8)
    fill_plain(segment, window, n_bases, motif, reverse, codes[1])
    fill_methylated(segment, window, n_bases, motif, False, codes[1], codes[0])
    ranks = np.empty(n_kmers, np.int64)
    fill_ranks(codes[0 if is_methylated else 1], model.k, reverse, n_kmers, ranks)
    inverse = np.empty(n_kmers * simd.LANES, np.float32)
    offset = np.empty(n_kmers * simd.LANES, np.float32)
    constant = np.empty(n_kmers * simd.LANES, np.float32)
    ln_var = np.log(fit.var)
    for j in range(n_kmers):
        fill_emission(ranks[j], model, fit, ln_var, j * simd.LANES, inverse, offset, constant)
    stride = 1 if begin < end else -1
    events = np.empty(n_events * simd.LANES, np.float32)
    for row in range(n_events):
        events[row * simd.LANES] = event_mean[begin + stride * row]
    p_stay = stay_probability(fit.events_per_base)
    return forward_exact(events, inverse, offset, constant, 0, n_events, n_kmers, p_stay)


@kernel
def finish_all(
    turn, reads, alignments, event_offsets, event_mean, scaling, events_per_base, model, motifs, listing, found, calls
):
    """Make log-likelihoods of what has been found elsewhere for the groups of `reads`.

    `found` (float32, shape (slots, 2, 3)) has, for each group with its sites methylated and with none: total, best and
    the highest exponent of an end, see `forward_lanes`.
    """
    while True:
        i = next_turn(turn)
        if i >= reads.shape[0]:
            break
        read = reads[i]
        motif = motifs[1 if alignments.reverse[read] else 0]
        segment = alignments.reference[alignments.reference_offsets[read] : alignments.reference_offsets[read + 1]]
        events = event_mean[event_offsets[read] : event_offsets[read + 1]]
        fit = Fit(scaling.shift[read], scaling.scale[read], scaling.var[read], events_per_base[read])
        mode = simd.flush_denormals()
        for slot in range(calls.offsets[read], calls.offsets[read] + calls.n[read]):
            for hypothesis in range(2):
                if found[slot, hypothesis, 2] < LOWEST_END:
                    score = score_exactly(
                        segment, alignments.reverse[read], events, fit, model, motif, listing.window[slot],
                        listing.n_bases[slot], listing.begin[slot], listing.end[slot], hypothesis == 0,
                    )  # fmt: skip
                else:
                    score = log_score(found[slot, hypothesis, 0], found[slot, hypothesis, 1])
                if hypothesis == 0:
                    calls.methylated[slot] = score
                else:
                    calls.unmethylated[slot] = score
        simd.restore_mode(mode)
