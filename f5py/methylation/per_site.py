"""Calls of single sites within a group.

A group's call says whether all of its sites are methylated or none. Here each site i of n gets its own log-likelihood
ratio, summed over the states of the other sites::

    LLR_i = ln P(events | s_i = 1) - ln P(events | s_i = 0)
    P(events | s_i = v) = 2 * sum over s with s_i = v of P(events | s) * P(s)

P(events | s) is the likelihood of the events in the group's window under the hidden Markov model of
`f5py.methylation.calls`, for the window's bases with the sites of s_i = 1 methylated.

The prior. With probability a the sites of a group agree, methylated or not with odds of one to one. Otherwise the sites
are independent, and all 2 ** n states equally probable::

    P(s) = a / 2 * [all s_i are equal] + (1 - a) / 2 ** n

Then ``P(events | s_i = 1) = a * L1 + (1 - a) * S1``. L1 is the likelihood with all sites methylated, as in the
group's call, and S1 the mean likelihood of the 2 ** (n - 1) states with s_i = 1; likewise for 0. With a = 0 the
prior is uniform, and with a = 1 every site gets the group's call. By default a is learned from the read: it is the
expected share of the read's groups of two and more sites with agreeing sites. Most reads are of one kind
throughout, and in real reads errors of the model's levels look like differing sites. So the prior of the share is
0.995 with probability 0.99, and otherwise Beta(1, 4). The groups' evidence is the product of ``a * o + 1 - a`` over
the odds o that each group's sites agree. It is raised to the power of one half, as neighboring groups share the
model's errors. A read with differing sites needs about ten groups to show it; until then, every site gets almost
its group's call. With correlated noise, part of the model, the evidence is calibrated and used in full: five groups
suffice. In a read methylated throughout, or nowhere, neighboring sites support each other as in a group's call. In
a read with independent sites they do not.

The sum over 2 ** n states is exact and takes time in proportion to n. A site's state affects only the k k-mers with its
modified base. So the forward algorithm stores, for each state of the model at k-mer j, only the states of the sites
under that k-mer. These are 2 ** w lanes, where w is the most sites that share a k-mer (one or two for most groups, at
most three for CG and k = 6). Lane bit ``i mod w`` is the state of site i. Every path goes through the k-mers in order
and enters each exactly once. When site i + w comes under the k-mer, site i has left it, and its state is summed out:
the two lanes of each pair get their mean. A forward pass yields the probability of the events together with the states
of the last w sites. The sites before need the flow over boundaries between two k-mers: forward times backward mass,
summed over all events, by lane. The boundary before site w * (b + 1) enters serves the sites w * b to w * b + w - 1.
With correlated noise the density after a step depends on two k-mers, and w is the most sites that share k + 1 bases, so
a site has left both when its bit is reused.

A group of one site has the likelihoods of the group's call. The called sites are those of the called groups. Sites
overlap each other only for users' motifs; each has its own state.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._read_view_numba import segment_of
from f5py.core.batch import Calls
from f5py.core.offsets import elements_of
from f5py.jit.instructions import load_ahead
from f5py.jit.kernel import inner, kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.methylation.group_scores import Scores, fill_plain
from f5py.methylation.groups import GroupWindows, is_site, sites_per_kmer
from f5py.methylation.hmm import log_base, log_of_share, log_sum
from f5py.methylation.site_cells import make_arena
from f5py.methylation.site_hmm import SiteWindows, score_windows

#: Windows of a thread's task.
WINDOWS_PER_TASK = 128
# means of events per cache line
_PER_LINE = 16
# of the sort keys of windows: bases with sites that are told apart, and the largest number
_PLACES, _MOST_KEY = 62, (1 << 16) - 1
# prior of the share of groups with agreeing sites: reads of one state, or of differing sites
_P_UNIFORM = 0.99
_UNIFORM_SHARE = 0.995
_DIFFERING_POWER = 3.0  # Beta(1, 4)
# power of the groups' evidence, as neighboring groups share the model's errors
_POWER, _POWER_CORRELATED = 0.5, 1.0
_POINTS = 50
_SMALL = 1e-250


class SiteListing(NamedTuple):
    """Sites, with the indices of a batch's calls of sites, and the first site of each group."""

    place: NDArray[np.int32]  # shape (n_site_slots,): position of the modified base in the window
    first: NDArray[np.int64]  # shape (n_group_slots,): index of the group's first site
    # shape (n_group_slots,): the most sites in k bases, with correlated noise k + 1; 0 for groups of one site
    width: NDArray[np.int32]


class SiteLikelihoods(NamedTuple):
    """Likelihoods of sites, and exponents of groups or windows."""

    # shape (n_site_slots, 2): probability of the events with the site methylated and unmethylated, over two to the
    # power of the group's exponent; not for groups of one site
    sites: NDArray[np.float64]
    exponents: NDArray[np.float64]  # shape (n_group_slots,)


@kernel
def list_sites(queue, reads, alignments, motifs, span, groups, windows, sites, calls):
    """List the sites of the groups of `reads`.

    Parameters
    ----------
    span, calls : int, f5py.core.batch.Calls
        Number of bases that determine a k-mer's densities. Calls of sites; filled except for the log-likelihoods.
    """
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        segment = segment_of(alignments, read)
        start = alignments.start[read]
        motif = motifs[1 if alignments.reverse[read] else 0]
        site = calls.offsets[read]
        for group in range(groups.offsets[read], groups.offsets[read] + groups.n[read]):
            sites.first[group] = site
            for position in range(groups.first[group] - start, groups.last[group] - start + 1):
                if is_site(segment, position, motif):
                    sites.place[site] = position - windows.window[group] + motif.offset
                    calls.first[site] = start + position
                    calls.last[site] = start + position
                    calls.sites[site] = 1
                    site += 1
            first = sites.first[group]
            sites.width[group] = sites_per_kmer(sites.place[first:site], span) if site - first > 1 else 0
        calls.n[read] = site - calls.offsets[read]


def sort_windows(
    slots: NDArray[np.int64], groups: Calls, windows: GroupWindows, sites: SiteListing
) -> NDArray[np.int64]:
    """Sort groups of several sites so that those of a pack are alike: by width, bases, sites and events."""
    n_sites, first = groups.sites[slots].astype(np.int64), sites.first[slots]
    further = sites.place[elements_of(first, n_sites)] - np.repeat(sites.place[first], n_sites)
    bits = np.where(further < _PLACES, np.int64(1) << np.maximum(_PLACES - further, 0), 0)
    places = np.bitwise_or.reduceat(bits, np.cumsum(n_sites) - n_sites) if len(slots) else slots
    keys = np.abs(windows.end[slots] - windows.begin[slots]), windows.n_bases[slots], sites.width[slots]
    n_events, n_bases, width = (np.minimum(key, _MOST_KEY).astype(np.uint16) for key in keys)  # sorted by radix
    return slots[np.lexsort((n_events, places, n_bases, width))]


@kernel
def score_sites(queue, tasks, batch, model, motifs, noise, groups, windows, sites, order, of_read, found):
    """Score the sites of windows.

    Parameters
    ----------
    of_read, found : int64, SiteLikelihoods
        Read of each group; likelihoods, filled.
    """
    alignments = batch.alignments
    # outside the loop, as each use changes the array's reference count, shared by all threads
    window, n_bases_of, begin, end = windows
    n_sites_of, reverses, first_events = groups.sites, alignments.reverse, batch.events.offsets
    shift, scale, var, events_per_base = (
        batch.scaling.shift, batch.scaling.scale, batch.scaling.var, batch.events_per_base
    )  # fmt: skip
    first_sites, site_widths, site_places, means = sites.first, sites.width, sites.place, batch.events.mean
    room = make_arena(0)
    for i in claimed_indices(work_counter(queue), tasks.shape[0]):
        chosen = order[tasks[i] * WINDOWS_PER_TASK : (tasks[i] + 1) * WINDOWS_PER_TASK]
        n = chosen.shape[0]
        n_bases = 0
        n_sites = 0
        for w in range(n):
            slot = chosen[w]
            n_bases += n_bases_of[slot]
            n_sites += n_sites_of[slot]
            load_ahead(window, slot)
            load_ahead(begin, slot)
            load_ahead(end, slot)
            load_ahead(of_read, slot)
            load_ahead(first_sites, slot)
            load_ahead(site_widths, slot)
        of_all = np.empty((7, n), np.int64)
        fits = np.empty((3, n), np.float32)
        task = SiteWindows(
            np.empty(n_bases, np.uint8), np.empty(n_sites, np.int64), of_all[0], of_all[1], of_all[2], of_all[3],
            of_all[4], of_all[5], of_all[6], np.empty(n, np.bool_), fits[0], fits[1], fits[2], np.empty(n, np.float64),
        )  # fmt: skip
        base = 0
        site = 0
        for w in range(n):
            slot = chosen[w]
            read = of_read[slot]
            reverse = reverses[read]
            length = n_bases_of[slot]
            motif = motifs[1 if reverse else 0]
            codes = task.codes[base : base + length]
            fill_plain(segment_of(alignments, read), window[slot], length, motif, reverse, codes)
            task.base[w], task.n_bases[w] = base, length
            task.site[w], task.n_sites[w] = site, n_sites_of[slot]
            first_event = first_events[read]
            one_end, other_end = first_event + begin[slot], first_event + end[slot]
            task.begin[w], task.end[w] = one_end, other_end
            for event in range(min(one_end, other_end), max(one_end, other_end), _PER_LINE):
                load_ahead(means, event)
            load_ahead(means, max(one_end, other_end))
            task.width[w], task.reverse[w] = site_widths[slot], reverse
            task.shift[w], task.scale[w] = shift[read], scale[read]
            task.var[w] = var[read]
            task.events_per_base[w] = events_per_base[read]
            for s in range(n_sites_of[slot]):
                task.modified[site + s] = site_places[first_sites[slot] + s]
            base += length
            site += n_sites_of[slot]
        shares = SiteLikelihoods(np.empty((n_sites, 2)), np.empty(n))
        room = score_windows(task, means, model, noise, room, shares)
        for w in range(n):
            slot = chosen[w]
            found.exponents[slot] = shares.exponents[w]
            for s in range(n_sites_of[slot]):
                at, source = first_sites[slot] + s, task.site[w] + s
                found.sites[at, 0], found.sites[at, 1] = shares.sites[source, 0], shares.sites[source, 1]


@inner
def _ln_evidence(share, agree, differ):
    """Return the log-likelihood of a share: of the product of ``share * agree + (1 - share) * differ``."""
    total = 0.0
    product = 1.0
    for g in range(agree.shape[0]):
        product *= share * agree[g] + (1.0 - share) * differ[g]
        if product < _SMALL:  # one logarithm for many factors
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@inner
def learn_agreement(odds, power):
    """Estimate the share of groups with agreeing sites, from each group's log odds.

    The likelihood of a share is raised to `power`.
    """
    agree, differ = np.empty(odds.shape[0]), np.empty(odds.shape[0])
    of_all = 0.0
    for g in range(odds.shape[0]):
        greater = max(odds[g], 0.0)  # the larger of the two becomes 1
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


@inner
def _weigh_sites(n_sites, groups, noise, agreement, scores):
    """Combine the scores of sites and of their groups by the prior, in groups of several sites.

    `n_sites` (int32) are those of each group of a read. `groups` and `scores` are log-likelihoods of the groups and,
    group by group, of their sites; the latter are changed. `agreement` is the prior probability that all sites of a
    group have one state; below 0, it is learned from the read.
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
def finish_sites(queue, reads, groups, sites, found, noise, agreement, calls):
    """Fill log-likelihoods of `calls` of sites from their likelihoods and the groups' log-likelihoods.

    Parameters
    ----------
    agreement : float
        See `_weigh_sites`.
    """
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        first_group, n = groups.offsets[read], groups.n[read]
        first, end = calls.offsets[read], calls.offsets[read] + calls.n[read]
        of_groups = slice(first_group, first_group + n)
        all_methylated, none_methylated = groups.methylated[of_groups], groups.unmethylated[of_groups]
        for g in range(n):
            group = first_group + g
            site = sites.first[group]
            if groups.sites[group] == 1:
                calls.methylated[site] = all_methylated[g]
                calls.unmethylated[site] = none_methylated[g]
                continue
            base = log_base(found.exponents[group], sites.width[group])
            for one in range(site, site + groups.sites[group]):
                calls.methylated[one] = log_of_share(base, found.sites[one, 0])
                calls.unmethylated[one] = log_of_share(base, found.sites[one, 1])
        _weigh_sites(
            groups.sites[of_groups], Scores(all_methylated, none_methylated), noise, agreement,
            Scores(calls.methylated[first:end], calls.unmethylated[first:end]),
        )  # fmt: skip
