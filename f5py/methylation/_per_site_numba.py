"""Jitted loops that call the sites of a group one by one; see `f5py.methylation.per_site` for the mathematics."""

import math

import numpy as np

from f5py.core._read_view_numba import read_view
from f5py.core._turns_numba import counter, own_turns
from f5py.jit.kernel import kernel
from f5py.methylation._calls_numba import Scores, calls_between, fill_plain, read_events, score_groups
from f5py.methylation._groups_numba import (
    FLANK,
    Groups,
    ListedGroups,
    find_groups,
    first_groups,
    is_site,
    window_length,
)
from f5py.methylation._hmm_numba import log_sum
from f5py.methylation._site_windows_numba import SiteWindows, score_windows

# The prior of the share of groups whose sites agree: a read of one state, or one whose sites differ.
_P_UNIFORM = 0.99
_UNIFORM_SHARE = 0.995
_DIFFERING_POWER = 3.0  # Beta(1, 4)
# The power of the groups' evidence: neighbouring groups share what the model lacks.
_POWER, _POWER_CORRELATED = 0.5, 1.0
_POINTS = 50
_SMALL = 1e-250


@kernel
def _ln_evidence(share, agree, differ):
    """Logarithm of the likelihood of a share: of the product of ``share * agree + (1 - share) * differ``."""
    total = 0.0
    product = 1.0
    for g in range(agree.shape[0]):
        product *= share * agree[g] + (1.0 - share) * differ[g]
        if product < _SMALL:  # one logarithm for many factors, each of which is at least the lesser share
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@kernel
def learn_agreement(odds, power):
    """Estimate the share of groups whose sites agree, from the logarithms of each group's odds that they do.

    The likelihood of a share is taken to that power.
    """
    agree, differ = np.empty(odds.shape[0]), np.empty(odds.shape[0])
    of_all = 0.0
    for g in range(odds.shape[0]):
        greater = max(odds[g], 0.0)  # the greater of the two is made 1
        agree[g], differ[g] = math.exp(odds[g] - greater), math.exp(-greater)
        of_all += greater
    uniform = math.log(_P_UNIFORM) + power * (of_all + _ln_evidence(_UNIFORM_SHARE, agree, differ))
    weights = np.empty(_POINTS)
    for i in range(_POINTS):
        share = (i + 0.5) / _POINTS
        weights[i] = _DIFFERING_POWER * math.log(1.0 - share) + power * (of_all + _ln_evidence(share, agree, differ))
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
def weigh_sites(n_sites, groups, noise, agreement, scores):
    """Let the scores of sites and of their groups count as the prior says.

    Parameters
    ----------
    n_sites : int32, shape (n_groups,)
        Of each group of a read.
    groups, scores : Scores
        Log-likelihoods of the groups and, one group after the other, of their sites, which are changed where there are
        several.
    noise, agreement
        As of `call_read_sites`.
    """
    n_windows = 0
    for g in range(n_sites.shape[0]):
        if n_sites[g] > 1:
            n_windows += 1
    odds = np.empty(n_windows)
    w = 0
    site = 0
    for g in range(n_sites.shape[0]):
        if n_sites[g] > 1:
            independent = log_sum(np.float64(scores.methylated[site]), np.float64(scores.unmethylated[site]))
            odds[w] = log_sum(np.float64(groups.methylated[g]), np.float64(groups.unmethylated[g])) - independent
            w += 1
        site += n_sites[g]

    power = _POWER if noise is None else _POWER_CORRELATED
    share = learn_agreement(odds, power) if agreement < 0.0 else agreement
    ln_agree, ln_differ = math.log(share), math.log(1.0 - share)
    site = 0
    for g in range(n_sites.shape[0]):
        if n_sites[g] > 1:
            for i in range(site, site + n_sites[g]):
                scores.methylated[i] = log_sum(ln_agree + groups.methylated[g], ln_differ + scores.methylated[i])
                scores.unmethylated[i] = log_sum(ln_agree + groups.unmethylated[g], ln_differ + scores.unmethylated[i])
        site += n_sites[g]


@kernel
def call_read_sites(batch, number, model, motifs, noise, agreement, calls):
    """Find the site groups of one read and score each of their sites; return the number of sites.

    Parameters
    ----------
    batch : f5py.core.batch.BatchView
    number : int
        Of the read.
    model, motifs, noise
        Those of `f5py.methylation._calls_numba.score_groups`.
    agreement : float
        Prior probability that all sites of a group have one state; below 0, it is learned from the read.
    calls : f5py.methylation._calls_numba.ReadCalls
        Filled with one entry a site.
    """
    read = read_view(batch, number, model.k)
    events = read_events(batch, number)
    motif = motifs[1 if read.reverse else 0]
    segment, reference_start, reverse = read.segment, read.start, read.reverse
    call_first, call_last, call_sites, score_methylated, score_unmethylated = calls
    capacity = call_first.shape[0]
    groups = Groups(
        np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int32),
        np.empty(capacity, np.int64), np.empty(capacity, np.int64),
    )  # fmt: skip
    n_groups = find_groups(read, model.k, motif, groups)
    if n_groups == 0:
        return 0
    all_methylated = np.empty(n_groups, np.float32)
    none_methylated = np.empty(n_groups, np.float32)
    groups = first_groups(groups, n_groups)
    reads = np.full(n_groups, number, np.int64)
    score_groups(
        batch, model, motifs, noise, True, ListedGroups(reads, groups), Scores(all_methylated, none_methylated)
    )  # fmt: skip
    n_windows = 0
    n_bases = 0
    n_sites = 0
    for g in range(n_groups):
        n_sites += groups.sites[g]
        if groups.sites[g] > 1:
            n_windows += 1
            n_bases += window_length(segment, groups.first[g], groups.last[g])
    numbers = np.empty((6, n_windows), np.int64)
    windows = SiteWindows(
        np.empty(n_bases, np.uint8), np.empty(n_sites, np.int64), numbers[0], numbers[1], numbers[2], numbers[3],
        numbers[4], numbers[5],
    )  # fmt: skip
    count = 0
    w = 0
    base = 0
    for g in range(n_groups):
        first = groups.first[g]
        last = groups.last[g]
        window = first - FLANK
        i = count
        for position in range(first, last + 1):
            if is_site(segment, position, motif):
                windows.modified[i] = position - window + motif.offset
                call_first[i] = reference_start + position
                call_last[i] = reference_start + position
                call_sites[i] = 1
                i += 1
        if groups.sites[g] == 1:
            score_methylated[count] = all_methylated[g]
            score_unmethylated[count] = none_methylated[g]
        else:
            length = window_length(segment, first, last)
            fill_plain(segment, window, length, motif, reverse, windows.codes[base : base + length])
            windows.base[w], windows.n_bases[w] = base, length
            windows.site[w], windows.n_sites[w] = count, groups.sites[g]
            windows.begin[w], windows.end[w] = groups.begin[g], groups.end[g]
            base += length
            w += 1
        count += groups.sites[g]
    score_windows(windows, n_windows, events, reverse, model, noise, Scores(score_methylated, score_unmethylated))
    weigh_sites(
        groups.sites, Scores(all_methylated, none_methylated), noise, agreement,
        Scores(score_methylated[:count], score_unmethylated[:count]),
    )  # fmt: skip
    return count


@kernel
def call_all_sites(turn, reads, batch, model, motifs, noise, agreement, calls):
    """Apply `call_read_sites` to `reads`.

    Parameters
    ----------
    agreement
        As of `call_read_sites`.
    others
        Those of `f5py.methylation._calls_numba.call_all`; the arrays to fill have one entry a site.
    """
    for i in own_turns(counter(turn), reads.shape[0]):
        read = reads[i]
        calls.n[read] = call_read_sites(
            batch,
            read,
            model,
            motifs,
            noise,
            agreement,
            calls_between(calls, calls.offsets[read], calls.offsets[read + 1]),
        )
