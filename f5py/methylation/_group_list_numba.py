"""Jitted loops for groups that are scored elsewhere; see `f5py.methylation.calls`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.hmm import P_BAD, P_SKIP
from f5py.jit.atomics import next_turn
from f5py.jit.kernel import kernel
from f5py.methylation._groups_numba import FLANK, Groups, find_groups, window_length
from f5py.methylation._hmm_numba import log_score, stay_probability


class Listing(NamedTuple):
    """Groups in the slots of a batch's calls: what scoring them takes besides the calls' own arrays.

    Attributes
    ----------
    window, n_bases : int32
        First base of the group's window in the reference segment, and its length.
    begin, end : int32
        First and last event under the window, in the order of the reference.
    """

    window: NDArray[np.int32]
    n_bases: NDArray[np.int32]
    begin: NDArray[np.int32]
    end: NDArray[np.int32]


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
    for g in range(count):
        listing.window[first + g] = groups.first[g] - FLANK
        listing.n_bases[first + g] = window_length(segment, groups.first[g], groups.last[g])
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
def numbers_of_reads(events_per_base, var, stay_weight, step_weight, numbers):
    """Fill the probabilities of staying and of a step, and ln(var), of each read as `forward_lanes` takes them.

    The probabilities are times the weights, which are 1 but with correlated noise.
    """
    for i in range(var.shape[0]):
        p_stay = stay_probability(events_per_base[i])
        numbers[i, 0] = p_stay * stay_weight
        numbers[i, 1] = (1.0 - p_stay - P_SKIP - P_BAD) * step_weight
        numbers[i, 2] = np.log(var[i])


@kernel
def finish_all(turn, reads, found, calls):
    """Make log-likelihoods of what has been found elsewhere for the groups of `reads`.

    `found` (float32, shape (slots, 2, 2)) has, for each group with its sites methylated and with none, what `log_score`
    takes.
    """
    while True:
        i = next_turn(turn)
        if i >= reads.shape[0]:
            break
        read = reads[i]
        for slot in range(calls.offsets[read], calls.offsets[read] + calls.n[read]):
            calls.methylated[slot] = log_score(found[slot, 0, 0], found[slot, 0, 1])
            calls.unmethylated[slot] = log_score(found[slot, 1, 0], found[slot, 1, 1])
