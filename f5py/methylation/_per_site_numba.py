"""Jitted loops that call the sites of a group one by one; see `f5py.methylation.per_site` for the mathematics.

State arrays hold, for k-mer j and lane l of L, element ``L * j + l``. They are in double precision and probability
space: a row's true values are the stored ones times ``exp(scale)``, and no state that matters lies more than a few
hundred orders of e below the row's greatest, as the last k-mer can be reached from every other within a row.
"""

from __future__ import annotations

import math

import numpy as np

from f5py import simd
from f5py.accelerate import kernel
from f5py.core._turns_numba import next_turn
from f5py.methylation._calls_numba import (
    CODES,
    FLANK,
    LOG2_E,
    METHYLATED,
    Fit,
    Groups,
    fill_emission,
    fill_plain,
    fill_ranks,
    find_groups,
    is_site,
    score_groups,
)
from f5py.methylation._hmm_numba import (
    P_BAD,
    P_FROM_BAD,
    P_FROM_SKIP,
    P_SKIP,
    P_SKIP_SELF,
    background,
    log_sum,
    stay_probability,
)

# Expectation maximisation of the share of groups whose sites agree.
_MOST_ROUNDS = 100
_PRECISION = 1e-4
_LARGE = 700.0


@kernel
def _sites_per_kmer(modified, k):
    """The greatest number of modified bases under one k-mer."""
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
def _fill_emissions(x, inverse, offset, constant, emission):
    """Densities of event mean `x` in all k-mers and lanes; the arrays' length is a multiple of 16."""
    event = simd.splat(x)
    for at in range(0, emission.shape[0], simd.LANES):
        z = simd.madd(event, simd.load(inverse, at), simd.load(offset, at))
        simd.store(emission, at, simd.exp2(simd.load(constant, at) - z * z))


@kernel
def _average(values, bit):
    """Forget the state that `bit` stands for: both lanes of a pair get the mean of the two."""
    for lane in range(values.shape[0]):
        other = lane ^ bit
        if lane < other:
            mean = 0.5 * (values[lane] + values[other])
            values[lane] = mean
            values[other] = mean


@kernel
def _forward(x, p_stay, handover, lanes, inverse, offset, constant, scales, ends, kept):
    """Fill scales and end masses of every row, and the flow out of the last k-mer before each handover of bit 0.

    Parameters
    ----------
    x : float32, shape (n_events,)
    handover : int64, shape (n_kmers,)
        The lane bit that changes from one site to another on the way into a k-mer, or 0.
    scales : float64, shape (n_events,); ends : float64, shape (n_events, lanes)
    kept : float64, shape (n_handovers, n_events, 2, lanes)
        Flow towards the match state in the next row, and towards the skip state in the same row.
    """
    p_step = 1.0 - p_stay - P_SKIP - P_BAD
    n_kmers = handover.shape[0]
    size = n_kmers * lanes
    emission = np.empty(inverse.shape[0], np.float32)
    match = np.zeros(size)
    wrong = np.zeros(size)
    arriving = np.zeros(size)  # at each k-mer's match state, from the k-mer before in the row before
    leaving = np.zeros(size)
    skipping = np.zeros(lanes)  # to the k-mer's skip state from the k-mer before in the same row
    scale = 0.0
    greatest = 0.0
    for row in range(x.shape[0]):
        _fill_emissions(x[row], inverse, offset, constant, emission)
        # No site's base lies under the first k-mer, so all lanes enter alike. The exponent may be far below what the
        # emissions hold, and the first event has no other way in.
        z = np.float64(x[row]) * np.float64(inverse[0]) + np.float64(offset[0])
        entry = (np.float64(constant[0]) - z * z + background(row)) / LOG2_E
        new_scale = entry if row == 0 else max(scale + math.log(greatest), entry)
        change = 0.0 if row == 0 else math.exp(scale - new_scale)
        scale = new_scale
        scales[row] = scale
        entered = math.exp(entry - scale)
        greatest = 0.0
        skipping[:] = 0.0
        handovers = 0
        for j in range(n_kmers):
            base = j * lanes
            last = j + 1 == n_kmers
            for lane in range(lanes):
                at = base + lane
                into = p_stay * match[at] + P_FROM_BAD * wrong[at] + arriving[at]
                bad = change * P_BAD * (match[at] + wrong[at])
                good = np.float64(emission[at]) * change * into
                if j == 0:
                    good += entered
                skipped = skipping[lane]
                match[at] = good
                wrong[at] = bad
                greatest = max(greatest, good + bad)
                if last:
                    ends[row, lane] = good + bad + skipped
                else:
                    leaving[at + lanes] = p_step * good + P_FROM_BAD * bad + P_FROM_SKIP * skipped
                    skipping[lane] = P_SKIP * good + P_FROM_BAD * bad + P_SKIP_SELF * skipped
            if not last and handover[j + 1] > 0:
                onward = leaving[base + lanes : base + 2 * lanes]
                if handover[j + 1] == 1:
                    kept[handovers, row, 0] = onward
                    kept[handovers, row, 1] = skipping
                    handovers += 1
                _average(onward, handover[j + 1])
                _average(skipping, handover[j + 1])
        arriving, leaving = leaving, arriving


@kernel
def _backward(x, p_stay, handover, lanes, inverse, offset, constant, scales, kept, reference, flows):
    """Add up, for every handover of bit 0, the probability of all paths through it by lane, over ``exp(reference)``.

    Parameters
    ----------
    scales, kept
        As `_forward` has filled them.
    flows : float64, shape (n_handovers, lanes)
        Filled.
    """
    p_step = 1.0 - p_stay - P_SKIP - P_BAD
    n_events = x.shape[0]
    n_kmers = handover.shape[0]
    size = n_kmers * lanes
    emission = np.empty(inverse.shape[0], np.float32)
    match = np.zeros(size)  # what may follow each match state of the row below, times that row's emission
    wrong = np.zeros(size)
    onward = np.zeros(lanes)  # `match` of the row below one k-mer on
    before = np.zeros(lanes)
    skipping = np.zeros(lanes)  # what may follow the skip state one k-mer on in the same row
    flows[:] = 0.0
    scale = 0.0
    greatest = 0.0
    for row in range(n_events - 1, -1, -1):
        end = background(n_events - 1 - row) / LOG2_E
        below = scale
        scale = end if row == n_events - 1 else max(below + math.log(greatest), end)
        change = 0.0 if row == n_events - 1 else math.exp(below - scale)
        ended = math.exp(end - scale)
        _fill_emissions(x[row], inverse, offset, constant, emission)
        # The product of two scales may be out of range where that of the two masses is not: a half for each of them.
        weight_below = 0.0 if row == n_events - 1 else math.exp(0.5 * (scales[row] + below - reference))
        weight = math.exp(0.5 * (scales[row] + scale - reference))
        greatest = 0.0
        handovers = kept.shape[0]
        for j in range(n_kmers - 1, -1, -1):
            base = j * lanes
            last = j + 1 == n_kmers
            if last:
                onward[:] = 0.0
                skipping[:] = 0.0
            elif handover[j + 1] > 0:
                _average(onward, handover[j + 1])
                _average(skipping, handover[j + 1])
                if handover[j + 1] == 1:
                    handovers -= 1
                    for lane in range(lanes):
                        flows[handovers, lane] += (kept[handovers, row, 0, lane] * weight_below) * (
                            onward[lane] * weight_below
                        ) + (kept[handovers, row, 1, lane] * weight) * (skipping[lane] * weight)
            for lane in range(lanes):
                at = base + lane
                same = change * match[at]
                step = change * onward[lane]
                bad = change * P_BAD * wrong[at]
                skip = skipping[lane]
                finish = ended if last else 0.0
                before[lane] = match[at]
                good = np.float64(emission[at]) * (p_stay * same + bad + p_step * step + P_SKIP * skip + finish)
                match[at] = good
                wrong[at] = bad + P_FROM_BAD * (same + step + skip) + finish
                greatest = max(greatest, max(good, wrong[at]))
                skipping[lane] = P_FROM_SKIP * step + P_SKIP_SELF * skip + finish
            onward, before = before, onward


@kernel
def _log_share(masses, bit, state):
    """Logarithm of the sum over the lanes in which `bit` has that state."""
    total = 0.0
    for lane in range(masses.shape[0]):
        if (lane & bit != 0) == state:
            total += masses[lane]
    return math.log(total)


@kernel
def score_sites(codes, modified, x, reverse, fit, model, score_methylated, score_unmethylated):
    """Log-likelihood of one window's events with each site methylated or not, whatever the others are.

    Parameters
    ----------
    codes : uint8, shape (n_bases,)
        The window's bases on the read's strand in forward order, see `fill_plain`; no site methylated.
    modified : int64, shape (n_sites,)
        Where in the window the base is that each site changes; ascending, none under the first k-mer.
    x : float32, shape (n_events,)
        Event means in forward order.
    score_methylated, score_unmethylated : float32, shape (n_sites,)
        Filled.
    """
    n_sites = modified.shape[0]
    n_kmers = codes.shape[0] - model.k + 1
    width = _sites_per_kmer(modified, model.k)
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
    kept = np.empty((n_handovers, x.shape[0], 2, lanes))
    scales = np.empty(x.shape[0])
    ends = np.empty((x.shape[0], lanes))
    p_stay = stay_probability(fit.events_per_base)
    _forward(x, p_stay, handover, lanes, inverse, offset, constant, scales, ends, kept)

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
        _backward(
            x, p_stay, handover, lanes, inverse, offset, constant, scales, kept, reference, masses[:n_handovers]
        )
    prior = (width - 1) * math.log(2.0)
    for i in range(n_sites):
        bit = 1 << (i % width)
        of_block = masses[i // width]
        score_methylated[i] = reference - prior + _log_share(of_block, bit, True)
        score_unmethylated[i] = reference - prior + _log_share(of_block, bit, False)


@kernel
def learn_agreement(odds):
    """The share of groups whose sites agree, from the logarithms of each group's odds that they do.

    The most probable share under a Beta(3/2, 3/2) prior, by expectation maximisation.
    """
    share = 0.5
    for _ in range(_MOST_ROUNDS):
        total = 0.5
        for g in range(odds.shape[0]):
            total += 1.0 / (1.0 + math.exp(min(-odds[g], _LARGE)) * (1.0 - share) / share)
        before = share
        share = total / (odds.shape[0] + 1.0)
        if abs(share - before) < _PRECISION:
            break
    return share


@kernel
def call_read_sites(
    segment, reference_start, cigar, reverse, event_mean, first_event, read_length, fit, model, motif, agreement,
    call_first, call_last, call_sites, score_methylated, score_unmethylated,
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
        segment, reverse, event_mean, fit, model, motif, True, groups, n_groups, all_methylated, none_methylated
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
            codes = np.empty(min(last + FLANK + 1, segment.shape[0]) - window, np.uint8)
            fill_plain(segment, window, codes.shape[0], motif, reverse, codes)
            stride = 1 if groups.begin[g] < groups.end[g] else -1
            x = np.empty(abs(groups.end[g] - groups.begin[g]) + 1, np.float32)
            for row in range(x.shape[0]):
                x[row] = event_mean[groups.begin[g] + stride * row]
            score_sites(
                codes, modified, x, reverse, fit, model,
                score_methylated[count : count + n_sites], score_unmethylated[count : count + n_sites],
            )  # fmt: skip
            independent = log_sum(np.float64(score_methylated[count]), np.float64(score_unmethylated[count]))
            odds[n_odds] = log_sum(np.float64(all_methylated[g]), np.float64(none_methylated[g])) - independent
            n_odds += 1
        count += n_sites
    simd.restore_mode(mode)

    share = learn_agreement(odds[:n_odds]) if agreement < 0.0 else agreement
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
    turn, reads, alignments, event_offsets, event_mean, base_map, scaling, events_per_base, model, motifs, agreement,
    calls,
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
            agreement,
            calls.first[first:end],
            calls.last[first:end],
            calls.sites[first:end],
            calls.methylated[first:end],
            calls.unmethylated[first:end],
        )
