"""Jitted loops for single sites that are scored elsewhere; see `f5py.methylation.calls`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._read_view_numba import segment_of
from f5py.core._turns_numba import counter, own_turns
from f5py.core.batch import Calls
from f5py.jit.kernel import kernel
from f5py.methylation._calls_numba import Scores
from f5py.methylation._group_list_numba import Listing
from f5py.methylation._groups_numba import is_site, sites_per_kmer
from f5py.methylation._hmm_numba import log_base, log_of_share, log_score
from f5py.methylation._per_site_numba import weigh_sites


class ListedGroups(NamedTuple):
    """Groups of a batch, as `f5py.methylation._group_list_numba.list_all` has filled them."""

    calls: Calls
    windows: Listing


class SiteListing(NamedTuple):
    """Sites in the slots of a batch's calls of sites, and the groups that they belong to."""

    place: NDArray[np.int32]  # shape (n_site_slots,): where in its window the base is that the site changes
    first: NDArray[np.int64]  # shape (n_group_slots,): slot of the group's first site
    # shape (n_group_slots,): the most sites that share a k-mer, or, with correlated noise, k + 1 bases; 0 for groups of
    # one site
    width: NDArray[np.int32]


class FoundSites(NamedTuple):
    """What scoring elsewhere has found."""

    # shape (n_group_slots, 2, 2): what `log_score` takes, for each group with its sites methylated and with none
    groups: NDArray[np.float32]
    # shape (n_site_slots, 2): probability of the events with the site methylated and with it unmethylated, over two to
    # the power of the group's exponent; not of sites that are alone in their group
    sites: NDArray[np.float64]
    exponents: NDArray[np.float64]  # shape (n_group_slots,)


@kernel
def list_sites(turn, reads, alignments, motifs, span, listed, sites, calls):
    """List the sites of the groups of `reads`.

    Parameters
    ----------
    alignments : f5py.core.batch.Alignments
    motifs : pair of MotifCodes
        Of forward and of reverse reads.
    span : int
        Number of bases that the states of a k-mer's densities depend on.
    listed : ListedGroups
    sites : SiteListing
        Filled.
    calls : f5py.core.batch.Calls
        Of sites; all is filled but the log-likelihoods.
    """
    groups, windows = listed
    for i in own_turns(counter(turn), reads.shape[0]):
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


@kernel
def finish_sites(turn, reads, groups, sites, found, noise, agreement, calls):
    """Make log-likelihoods of what has been found elsewhere for the sites of `reads`.

    Parameters
    ----------
    groups : f5py.core.batch.Calls
    sites : SiteListing
    found : FoundSites
    noise, agreement
        As of `f5py.methylation._per_site_numba.call_read_sites`.
    calls : f5py.core.batch.Calls
        Of sites; their log-likelihoods are filled.
    """
    for i in own_turns(counter(turn), reads.shape[0]):
        read = reads[i]
        first_group, n = groups.offsets[read], groups.n[read]
        first, end = calls.offsets[read], calls.offsets[read] + calls.n[read]
        all_methylated = np.empty(n, np.float32)
        none_methylated = np.empty(n, np.float32)
        for g in range(n):
            group = first_group + g
            all_methylated[g] = log_score(found.groups[group, 0, 0], found.groups[group, 0, 1])
            none_methylated[g] = log_score(found.groups[group, 1, 0], found.groups[group, 1, 1])
            site = sites.first[group]
            if groups.sites[group] == 1:
                calls.methylated[site] = all_methylated[g]
                calls.unmethylated[site] = none_methylated[g]
                continue
            base = log_base(found.exponents[group], sites.width[group])
            for one in range(site, site + groups.sites[group]):
                calls.methylated[one] = log_of_share(base, found.sites[one, 0])
                calls.unmethylated[one] = log_of_share(base, found.sites[one, 1])
        weigh_sites(
            groups.sites[first_group : first_group + n], Scores(all_methylated, none_methylated), noise, agreement,
            Scores(calls.methylated[first:end], calls.unmethylated[first:end]),
        )  # fmt: skip
