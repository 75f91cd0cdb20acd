"""Jitted loops that call the sites of a group one by one; see `f5py.methylation.per_site` for the mathematics.

Arrays of k-mers hold, for k-mer j and lane l of L, element ``L * j + l``.
"""

from __future__ import annotations

import math

import numpy as np

from f5py.jit import simd
from f5py.jit.atomics import next_turn
from f5py.jit.kernel import kernel
from f5py.methylation._calls_numba import (
    CODES,
    LOG2_E,
    METHYLATED,
    Fit,
    fill_emission,
    fill_plain,
    fill_ranks,
    score_groups,
)
from f5py.methylation._groups_numba import FLANK, Groups, find_groups, is_site, window_length
from f5py.methylation._hmm_numba import background, log_sum, stay_probability
from f5py.methylation._site_hmm_numba import backward, forward
from f5py.methylation._site_noise_numba import backward_correlated, forward_correlated

# The prior of the share of groups whose sites agree: a read of one state, or one whose sites differ.
_P_UNIFORM = 0.99
_UNIFORM_SHARE = 0.995
_DIFFERING_POWER = 3.0  # Beta(1, 4)
# The power of the groups' evidence: neighbouring groups share what the model lacks.
_POWER, _POWER_CORRELATED = 0.5, 1.0
_POINTS = 50


@kernel
def _sites_per_window(modified, k):
    """The greatest number of modified bases in `k` bases."""
    greatest = 0
    first = 0
    for i in range(modified.shape[0]):
        while modified[i] - modified[first] >= k:
            first += 1
        greatest = max(greatest, i - first + 1)
    return greatest


@kernel
def _fill_lanes(codes, modified, width, ranks, reverse, model, fit, inverse, offset, constant):
    """Emission parameters of every k-mer and lane; bit ``i % width`` of a lane's number is the state of site i."""
    lanes = 1 << width
    ln_var = np.log(fit.var)
    first = 0
    for j in range(ranks.shape[0]):
        while first < modified.shape[0] and modified[first] < j:
            first += 1
        for lane in range(lanes):
            rank = ranks[j]
            i = first
            while i < modified.shape[0] and modified[i] < j + model.k:
                if lane >> (i % width) & 1:
                    place = modified[i] - j
                    power = place if reverse else model.k - 1 - place
                    rank += (METHYLATED - np.int64(codes[modified[i]])) * CODES**power
                i += 1
            fill_emission(rank, model, fit, ln_var, j * lanes + lane, inverse, offset, constant)


@kernel
def _log_share(masses, bit, state):
    """Logarithm of the sum over the lanes in which `bit` has that state."""
    total = 0.0
    for lane in range(masses.shape[0]):
        if (lane & bit != 0) == state:
            total += masses[lane]
    return math.log(total)


@kernel
def score_sites(codes, modified, x, reverse, fit, model, noise, score_methylated, score_unmethylated):
    """Log-likelihood of one window's events with each site methylated or not, whatever the others are.

    Parameters
    ----------
    codes : uint8, shape (n_bases,)
        The window's bases on the read's strand in forward order, see `fill_plain`; no site methylated.
    modified : int64, shape (n_sites,)
        Where in the window the base is that each site changes; ascending, none under the first k-mer.
    x : float32, shape (n_events,)
        Event means in forward order.
    noise : Terms or None
    score_methylated, score_unmethylated : float32, shape (n_sites,)
        Filled.
    """
    n_sites = modified.shape[0]
    n_kmers = codes.shape[0] - model.k + 1
    width = _sites_per_window(modified, model.k)
    lanes = 1 << width
    size = (n_kmers * lanes + simd.LANES - 1) // simd.LANES * simd.LANES
    inverse = np.zeros(size, np.float32)
    offset = np.zeros(size, np.float32)
    constant = np.zeros(size, np.float32)
    ranks = np.empty(n_kmers, np.int64)
    fill_ranks(codes, model.k, reverse, n_kmers, ranks)
    _fill_lanes(codes, modified, width, ranks, reverse, model, fit, inverse, offset, constant)

    handover = np.zeros(n_kmers, np.int64)
    for i in range(width, n_sites):
        handover[modified[i] - model.k + 1] = 1 << (i % width)
    n_handovers = (n_sites - 1) // width
    kept = np.empty((n_handovers, x.shape[0], 2 if noise is None else 3, lanes))
    scales = np.empty(x.shape[0])
    ends = np.empty((x.shape[0], lanes))
    p_stay = stay_probability(fit.events_per_base)
    if noise is None:
        forward(x, p_stay, handover, lanes, inverse, offset, constant, scales, ends, kept)
    else:
        forward_correlated(x, p_stay, handover, lanes, inverse, offset, constant, noise, scales, ends, kept)

    reference = -np.inf
    for row in range(x.shape[0]):
        greatest = 0.0
        for lane in range(lanes):
            greatest = max(greatest, ends[row, lane])
        after = background(x.shape[0] - 1 - row) / LOG2_E
        reference = max(reference, scales[row] + after + math.log(greatest))
    masses = np.zeros((n_handovers + 1, lanes))
    for row in range(x.shape[0]):
        after = background(x.shape[0] - 1 - row) / LOG2_E
        weight = math.exp(0.5 * (scales[row] + after - reference))
        for lane in range(lanes):
            masses[n_handovers, lane] += ends[row, lane] * weight * weight
    if n_handovers > 0:
        flows = masses[:n_handovers]
        if noise is None:
            backward(x, p_stay, handover, lanes, inverse, offset, constant, scales, kept, reference, flows)
        else:
            backward_correlated(
                x, p_stay, handover, lanes, inverse, offset, constant, noise, scales, kept, reference, flows
            )
    prior = (width - 1) * math.log(2.0)
    for i in range(n_sites):
        bit = 1 << (i % width)
        of_block = masses[i // width]
        score_methylated[i] = reference - prior + _log_share(of_block, bit, True)
        score_unmethylated[i] = reference - prior + _log_share(of_block, bit, False)


@kernel
def _ln_evidence(share, odds, power):
    """Logarithm of a power of the likelihood of a share; `odds` as for `learn_agreement`."""
    total = 0.0
    for g in range(odds.shape[0]):
        greater = max(odds[g], 0.0)
        total += greater + math.log(share * math.exp(odds[g] - greater) + (1.0 - share) * math.exp(-greater))
    return power * total


@kernel
def learn_agreement(odds, power):
    """The expected share of groups whose sites agree, from the logarithms of each group's odds that they do.

    The likelihood of a share is taken to that power.
    """
    uniform = math.log(_P_UNIFORM) + _ln_evidence(_UNIFORM_SHARE, odds, power)
    weights = np.empty(_POINTS)
    for i in range(_POINTS):
        share = (i + 0.5) / _POINTS
        weights[i] = _DIFFERING_POWER * math.log(1.0 - share) + _ln_evidence(share, odds, power)
    prior = math.log((1.0 - _P_UNIFORM) * (_DIFFERING_POWER + 1.0) / _POINTS)
    greatest = uniform
    for i in range(_POINTS):
        greatest = max(greatest, prior + weights[i])
    weight = math.exp(uniform - greatest)
    total = weight * _UNIFORM_SHARE
    for i in range(_POINTS):
        one = math.exp(prior + weights[i] - greatest)
        weight += one
        total += one * (i + 0.5) / _POINTS
    return total / weight


@kernel
def call_read_sites(
    segment, reference_start, cigar, reverse, event_mean, first_event, read_length, fit, model, motif, noise,
    agreement, call_first, call_last, call_sites, score_methylated, score_unmethylated,
):  # fmt: skip
    """Find the site groups of one read and score each of their sites; return the number of sites.

    Parameters
    ----------
    agreement : float
        Prior probability that all sites of a group have one state; below 0, it is learned from the read.
    others
        Those of `f5py.methylation._calls_numba.call_read`; the arrays to fill have one entry a site.
    """
    capacity = call_first.shape[0]
    groups = Groups(
        np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int32),
        np.empty(capacity, np.int64), np.empty(capacity, np.int64),
    )  # fmt: skip
    n_groups = find_groups(segment, reference_start, cigar, reverse, first_event, read_length, model.k, motif, groups)
    if n_groups == 0:
        return 0
    all_methylated = np.empty(n_groups, np.float32)
    none_methylated = np.empty(n_groups, np.float32)
    score_groups(
        segment, reverse, event_mean, fit, model, motif, noise, True, groups, n_groups, all_methylated, none_methylated
    )
    odds = np.empty(n_groups)
    n_odds = 0
    count = 0
    mode = simd.flush_denormals()
    for g in range(n_groups):
        first = groups.first[g]
        last = groups.last[g]
        n_sites = groups.sites[g]
        window = first - FLANK
        modified = np.empty(n_sites, np.int64)
        i = 0
        for position in range(first, last + 1):
            if is_site(segment, position, motif):
                modified[i] = position - window + motif.offset
                call_first[count + i] = reference_start + position
                call_last[count + i] = reference_start + position
                call_sites[count + i] = 1
                i += 1
        if n_sites == 1:
            score_methylated[count] = all_methylated[g]
            score_unmethylated[count] = none_methylated[g]
        else:
            codes = np.empty(window_length(segment, first, last), np.uint8)
            fill_plain(segment, window, codes.shape[0], motif, reverse, codes)
            stride = 1 if groups.begin[g] < groups.end[g] else -1
            x = np.empty(abs(groups.end[g] - groups.begin[g]) + 1, np.float32)
            for row in range(x.shape[0]):
                x[row] = event_mean[groups.begin[g] + stride * row]
            score_sites(
                codes, modified, x, reverse, fit, model, noise,
                score_methylated[count : count + n_sites], score_unmethylated[count : count + n_sites],
            )  # fmt: skip
            independent = log_sum(np.float64(score_methylated[count]), np.float64(score_unmethylated[count]))
            odds[n_odds] = log_sum(np.float64(all_methylated[g]), np.float64(none_methylated[g])) - independent
            n_odds += 1
        count += n_sites
    simd.restore_mode(mode)

    power = _POWER if noise is None else _POWER_CORRELATED
    share = learn_agreement(odds[:n_odds], power) if agreement < 0.0 else agreement
    ln_agree, ln_differ = math.log(share), math.log(1.0 - share)
    count = 0
    for g in range(n_groups):
        if groups.sites[g] > 1:
            for i in range(count, count + groups.sites[g]):
                score_methylated[i] = log_sum(ln_agree + all_methylated[g], ln_differ + score_methylated[i])
                score_unmethylated[i] = log_sum(ln_agree + none_methylated[g], ln_differ + score_unmethylated[i])
        count += groups.sites[g]
    return count


@kernel
def call_all_sites(
    turn, reads, alignments, event_offsets, event_mean, base_map, scaling, events_per_base, model, motifs, noise,
    agreement, calls,
):  # fmt: skip
    """`call_read_sites` for `reads`."""
    while True:
        i = next_turn(turn)
        if i >= reads.shape[0]:
            break
        read = reads[i]
        first_base = base_map.offsets[read]
        read_length = base_map.offsets[read + 1] - first_base
        first = calls.offsets[read]
        end = calls.offsets[read + 1]
        calls.n[read] = call_read_sites(
            alignments.reference[alignments.reference_offsets[read] : alignments.reference_offsets[read + 1]],
            alignments.start[read],
            alignments.cigar[alignments.cigar_offsets[read] : alignments.cigar_offsets[read + 1]],
            alignments.reverse[read],
            event_mean[event_offsets[read] : event_offsets[read + 1]],
            base_map.first_event[first_base : first_base + read_length - model.k + 1],
            read_length,
            Fit(scaling.shift[read], scaling.scale[read], scaling.var[read], events_per_base[read]),
            model,
            motifs[1 if alignments.reverse[read] else 0],
            noise,
            agreement,
            calls.first[first:end],
            calls.last[first:end],
            calls.sites[first:end],
            calls.methylated[first:end],
            calls.unmethylated[first:end],
        )
