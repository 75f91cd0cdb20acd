"""Jitted loops that list groups, also for a GPU; see `f5py.methylation.calls`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._read_view_numba import read_view
from f5py.core.hmm import P_BAD, P_SKIP
from f5py.jit.kernel import inner, kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.methylation._calls_numba import call_groups
from f5py.methylation._groups_numba import FLANK, Groups, enlarged_scratch, find_groups, site_scratch, window_length
from f5py.methylation._hmm_numba import stay_probability


class GroupWindows(NamedTuple):
    """Windows of groups, with the indices of a batch's calls."""

    # window, n_bases: start and length of the window in the reference segment
    window: NDArray[np.int32]
    n_bases: NDArray[np.int32]
    # begin, end: first and last event of the window, in reference order
    begin: NDArray[np.int32]
    end: NDArray[np.int32]


@inner
def list_read(read, k, motif, calls, slots, events, listing, scratch):
    """List the groups of one read at ``slots[0]`` to ``slots[1]`` of the calls; return their number.

    Parameters
    ----------
    read : f5py.core._read_view_numba.ReadView
    k : int
    motif : f5py.core.motifs.MotifCodes
    calls : f5py.core.batch.Calls
        First and last site and number of sites are filled.
    slots : (int, int)
    events : int64, shape (2, >= slots[1] - slots[0])
        Scratch space.
    listing : GroupWindows
    scratch : f5py.methylation._groups_numba.SiteScratch
        Large enough for the read.
    """
    first, end = slots
    groups = Groups(calls.first[first:end], calls.last[first:end], calls.sites[first:end], events[0], events[1])
    count = find_groups(read, k, motif, groups, scratch)
    for g in range(count):
        listing.window[first + g] = groups.first[g] - FLANK
        listing.n_bases[first + g] = window_length(read.segment, groups.first[g], groups.last[g])
        listing.begin[first + g] = groups.begin[g]
        listing.end[first + g] = groups.end[g]
        groups.first[g] += read.start
        groups.last[g] += read.start
    return count


@kernel
def list_all(queue, reads, batch, k, motifs, calls, listing):
    """Apply `list_read` to `reads`.

    Parameters
    ----------
    batch : f5py.core.batch.BatchView
    k : int
    motifs : pair of MotifCodes
        Of forward and of reverse reads.
    calls, listing
        As of `list_read`.
    """
    scratch, events = site_scratch(0, 0), np.empty((2, 0), np.int64)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        view = read_view(batch, read, k)
        motif = motifs[1 if view.reverse else 0]
        slots = calls.offsets[read], calls.offsets[read + 1]
        scratch = enlarged_scratch(scratch, view.segment.shape[0], view.cigar.shape[0])
        if slots[1] - slots[0] > events.shape[1]:
            events = np.empty((2, slots[1] - slots[0]), np.int64)
        calls.n[read] = list_read(view, k, motif, calls, slots, events, listing, scratch)


@kernel
def call_and_list(queue, reads, batch, model, motifs, noise, listing, calls):
    """Find, list and score the site groups of `reads`.

    Parameters
    ----------
    listing : GroupWindows
    others
        Those of `f5py.methylation._calls_numba.call_all`. All overlapping sites count.
    """
    call_groups(queue, reads, batch, model, motifs, noise, listing, calls)


@kernel
def numbers_of_reads(events_per_base, var, stay_weight, step_weight, numbers):
    """Fill each read's stay and step probability, times the weights, and ln(var).

    Weights differ from 1 only with correlated noise.

    Parameters
    ----------
    events_per_base : float64, shape (n,)
    var : float32, shape (n,)
    stay_weight, step_weight : float
    numbers : float32, shape (n, 3)
    """
    for i in range(var.shape[0]):
        p_stay = stay_probability(events_per_base[i])
        numbers[i, 0] = p_stay * stay_weight
        numbers[i, 1] = (1.0 - p_stay - P_SKIP - P_BAD) * step_weight
        numbers[i, 2] = np.log(var[i])
