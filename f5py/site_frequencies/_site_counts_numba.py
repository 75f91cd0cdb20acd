"""Jitted loops of `f5py.site_frequencies.site_counts`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.methylation._groups_numba import is_site
from f5py.site_frequencies._site_table_numba import SLOTS_PER_ENTRY, find_site


class Counts(NamedTuple):
    """Counts per site in the order in which the sites came, and a hash table of them."""

    slots: NDArray[np.int32]  # entry + 1, or 0; a power of two long
    name: NDArray[np.int32]  # contig, mixed with the partition so that partitions do not meet in the hash table
    place: NDArray[np.int64]  # position << 32 | (partition + 1) << 1 | reverse
    methylated: NDArray[np.uint32]
    canonical: NDArray[np.uint32]
    failed: NDArray[np.uint32]
    rest: NDArray[np.uint32]  # see `SiteColumns`; zeros where nothing else was written


@exact_inner
def mixed_name(contig, partition):
    """Mix the name of a contig with a partition; the function is its own inverse for a given partition."""
    return np.int64(contig) ^ ((np.int64(partition) + 1) * 0x9E3779B1 & 0x7FFFFFFF)


class Rule(NamedTuple):
    """How calls of sites are counted."""

    threshold: float  # natural log-likelihood ratio that a call needs
    per_site: bool  # for each site of its group
    combine: bool  # both strands are one


@exact_kernel
def count_sites(first, calls, partition, rule, n_sites, counts):
    """Count the calls from `first` on; return how many have been dealt with and the number of sites.

    All calls have been dealt with, or the table is full.

    Parameters
    ----------
    first : int
    calls : f5py.site_frequencies.site_counts.SiteCalls
    partition : int32, shape (n,) or (0,)
    rule : Rule
    n_sites : int
    counts : Counts
    """
    contig, position, reverse, llr, size, _ = calls
    threshold, per_site, combine = rule
    slots, names, places, methylated, canonical, failed, _ = counts
    site = np.int64(-1)
    call = first
    while call < llr.shape[0] and (n_sites + 1) * SLOTS_PER_ENTRY <= slots.shape[0]:
        which = np.int64(partition[call]) if partition.shape[0] else np.int64(-1)
        place = np.int64(position[call]) << 32 | (which + 1) << 1
        if reverse[call] and not combine:
            place |= 1
        site = find_site(slots, names, places, n_sites, site + 1, mixed_name(contig[call], which), place)
        if site == n_sites:
            n_sites += 1
            methylated[site] = canonical[site] = failed[site] = 0
        least = threshold * size[call] if per_site else threshold
        if abs(llr[call]) < least:  # not-a-number is a call, as in the table of frequencies
            failed[site] += np.uint32(1)
        elif llr[call] > 0.0:
            methylated[site] += np.uint32(1)
        else:
            canonical[site] += np.uint32(1)
        call += 1
    return call, n_sites


@exact_kernel
def add_counts(first, partition, contig, step, more, n_sites, counts):
    """Add counts of sites from `first` on, `more` of each kind; return as `count_sites`.

    `step` is the position << 1 | reverse. Of the kind that comes last there may be no counts.

    Parameters
    ----------
    first : int
    partition, contig : int32, shape (n,)
    step : int64, shape (n,)
    more : three of uint32, shape (n,), and one of uint32, shape (n, n_kinds) or (0, n_kinds)
        Counts of each kind, in the order of `Counts`.
    n_sites : int
    counts : Counts
    """
    slots, names, places, methylated, canonical, failed, rest = counts
    site = np.int64(-1)
    at = first
    while at < contig.shape[0] and (n_sites + 1) * SLOTS_PER_ENTRY <= slots.shape[0]:
        which = np.int64(partition[at])
        place = (step[at] >> 1) << 32 | (which + 1) << 1 | (step[at] & 1)
        site = find_site(slots, names, places, n_sites, site + 1, mixed_name(contig[at], which), place)
        if site == n_sites:
            n_sites += 1
            methylated[site] = canonical[site] = failed[site] = 0
        methylated[site] += more[0][at]
        canonical[site] += more[1][at]
        failed[site] += more[2][at]
        if more[3].shape[0]:
            for kind in range(rest.shape[1]):
                if more[3][at, kind]:
                    rest[site, kind] += more[3][at, kind]
        at += 1
    return at, n_sites


@exact_kernel
def split_keys(name, place, offset_forward, offset_reverse, partition, contig, step):
    """Take keys apart; `step` is the position of the modified base << 1 | reverse.

    Parameters
    ----------
    name : int32, place : int64, shape (n,)
        See `Counts`.
    offset_forward, offset_reverse : int
        From a motif's first base to its modified one.
    partition, contig : int32, step : int64, shape (n,)
        Filled.
    """
    for site in range(name.shape[0]):
        reverse = place[site] & 1
        partition[site] = ((place[site] & 0xFFFFFFFF) >> 1) - 1
        contig[site] = mixed_name(name[site], partition[site])
        step[site] = ((place[site] >> 32) + (offset_reverse if reverse else offset_forward)) << 1 | reverse


class Segments(NamedTuple):
    """Where reads are, and the bases of the reference there."""

    bases: NDArray[np.uint8]  # letters of all reads
    offsets: NDArray[np.int64]  # (n_reads + 1,)
    start: NDArray[np.int64]  # 0-based position of each one's first base
    contig: NDArray[np.int32]
    reverse: NDArray[np.bool_]  # strand of the read


@exact_kernel
def expand(calls, inside, segments, motif_forward, motif_reverse, sites):
    """List the sites of all calls one by one; return their number.

    Parameters
    ----------
    calls : f5py.core.batch.Calls
    inside : bool, shape (n_slots,)
        The calls that are listed.
    segments : Segments
    motif_forward, motif_reverse : f5py.core.motifs.MotifCodes
    sites : f5py.site_frequencies.site_counts.SiteCalls
        Filled, as far as there is room.
    """
    call_offsets, n_calls, call_first, call_last, call_sites, methylated, unmethylated = calls
    contig, position, reverse, llr, size, read = sites
    bases, segment_offsets, segment_start, contig_of, reverse_of = segments
    n_sites = 0
    for r in range(n_calls.shape[0]):
        segment = bases[segment_offsets[r] : segment_offsets[r + 1]]
        motif = motif_reverse if reverse_of[r] else motif_forward
        for call in range(call_offsets[r], call_offsets[r] + n_calls[r]):
            if not inside[call]:
                continue
            # rounded as the table of calls shows it, so that both ways to a table of sites agree
            ratio = np.float64(methylated[call]) - np.float64(unmethylated[call])
            ratio = np.rint(ratio * 100.0) / 100.0
            for site in range(call_first[call], call_last[call] + 1):
                if is_site(segment, site - segment_start[r], motif):
                    if n_sites < contig.shape[0]:  # more than were called are of another motif
                        contig[n_sites] = contig_of[r]
                        position[n_sites] = site
                        reverse[n_sites] = reverse_of[r]
                        llr[n_sites] = ratio
                        size[n_sites] = call_sites[call]
                        read[n_sites] = r
                    n_sites += 1
    return n_sites


@exact_kernel
def mark_calls(offsets, n_calls, inside):
    """Mark which elements of a batch's call arrays are calls.

    Parameters
    ----------
    offsets : int64, shape (n + 1,)
        Of the elements that each read has room for.
    n_calls : int64, shape (n,)
        How many of them are calls.
    inside : bool, shape (offsets[n],)
        Filled.
    """
    for read in range(n_calls.shape[0]):
        end = offsets[read] + n_calls[read]
        inside[offsets[read] : end] = True
        inside[end : offsets[read + 1]] = False


@exact_kernel
def count_calls(methylated, unmethylated, inside, threshold):
    """Count the marked calls; return how many there are, and how many of them are methylated and unmethylated.

    Parameters
    ----------
    methylated, unmethylated : float32, shape (n,)
        Log-likelihoods.
    inside : bool, shape (n,)
    threshold : float32
        Log-likelihood ratio from which on a call counts.
    """
    n = n_methylated = n_unmethylated = 0
    for call in range(inside.shape[0]):
        if inside[call]:
            ratio = methylated[call] - unmethylated[call]
            n += 1
            n_methylated += ratio >= threshold
            n_unmethylated += ratio <= -threshold
    return n, n_methylated, n_unmethylated
