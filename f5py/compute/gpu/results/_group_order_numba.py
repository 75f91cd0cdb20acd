"""Jitted loops that put the site groups of a batch into the order in which the warps of a GPU take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._turns_numba import counter, own_turns
from f5py.jit.kernel import kernel
from f5py.methylation._hmm_numba import BLOCK
from f5py.methylation.hmm_gpu import LANES

#: Groups of a warp: two problems each.
GROUPS = LANES // 2
BUCKETS = 2048
#: What a thread takes at a time, of warps and of what comes back.
WARPS_OF_PIECE, SLOTS_OF_PIECE = 512, 8192


class GroupOrder(NamedTuple):
    """Groups in their order, and what each warp of `GROUPS` of them needs.

    Attributes
    ----------
    n : int64, shape (1,)
        Number of groups; the arrays have room for more.
    slots : int64, shape (m,)
        Where the batch has each group's calls.
    groups : int32, shape (m, 5)
        The read, as the part counts them, and the fields of `f5py.methylation._group_list_numba.Listing`.
    columns, rows : int32, shape (m // GROUPS + 1,)
        Largest numbers of k-mers and events of each warp.
    work : int64, shape (m // GROUPS + 2,)
        Offsets of the warps' scratch memory, in elements.
    """

    n: NDArray[np.int64]
    slots: NDArray[np.int64]
    groups: NDArray[np.int32]
    columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    work: NDArray[np.int64]


def empty_order(most: int) -> GroupOrder:
    """Room for so many groups."""
    n_warps = most // GROUPS + 1
    return GroupOrder(
        np.zeros(1, np.int64),
        np.empty(most, np.int64),
        np.empty((most, 5), np.int32),
        np.empty(n_warps, np.int32),
        np.empty(n_warps, np.int32),
        np.zeros(n_warps + 1, np.int64),
    )


@kernel
def _rows_of(listing, slot):
    return np.int64(abs(listing.end[slot] - listing.begin[slot])) + 1


@kernel
def _columns_of(listing, slot, k):
    return np.int64(listing.n_bases[slot]) - k + 1


@kernel
def work_elements(columns, rows):
    """Floats of scratch memory that a warp needs whose problems have up to that many k-mers and events.

    A problem has six numbers a k-mer, two a block of k-mers and two an event.
    """
    return LANES * (6 * columns + 2 * ((columns + BLOCK - 1) // BLOCK) + 2 * rows)


@kernel
def sort_by(keys, from_, to):
    """Sort what `from_` names by descending `keys`, which are below `BUCKETS`; those of one key keep their order."""
    begins = np.zeros(BUCKETS + 1, np.int64)
    for i in range(from_.shape[0]):
        begins[BUCKETS - keys[from_[i]]] += 1
    for key in range(BUCKETS):
        begins[key + 1] += begins[key]
    for i in range(from_.shape[0]):
        bucket = BUCKETS - 1 - keys[from_[i]]
        to[begins[bucket]] = from_[i]
        begins[bucket] += 1


class PartCalls(NamedTuple):
    """The calls of a part's reads.

    Attributes
    ----------
    aligned : int64
        The batch's number of each read of the part.
    offsets, n : int64
        The batch's slots of calls and how many are in use.
    """

    aligned: NDArray[np.int64]
    offsets: NDArray[np.int64]
    n: NDArray[np.int64]


class Limits(NamedTuple):
    """Limits that groups must fit.

    Attributes
    ----------
    k : int
    room : int
        Elements of scratch memory that a warp may take.
    """

    k: int
    room: int


@kernel
def order_groups(turn, one, at, calls, listing, limits, order, given_back):
    """Order the groups of reads by size, those with most k-mers first, of equals those with most events.

    The slots and reads are filled in; `describe_groups` does the rest.

    Parameters
    ----------
    turn, one
        As of all kernels; there is one turn.
    at : int64, shape (n,)
        Reads, as the part counts them.
    calls : PartCalls
    listing : Listing
    limits : Limits
    order : GroupOrder
    given_back : bool
        Set for reads of the batch that have a group too large for `room`; none of theirs is in the order.
    """
    aligned, offsets, n_calls = calls
    k, room = limits
    for _ in own_turns(counter(turn), one.shape[0]):
        most = order.slots.shape[0]
        slots, of_read = np.empty(most, np.int64), np.empty(most, np.int32)
        columns, rows = np.empty(most, np.int32), np.empty(most, np.int32)
        n = 0
        for i in range(at.shape[0]):
            read = aligned[at[i]]
            first, end = offsets[read], offsets[read] + n_calls[read]
            fits = True
            for slot in range(first, end):
                # the widest and the longest group of a warp may be two
                needed = work_elements(_columns_of(listing, slot, k), _rows_of(listing, slot))
                fits = fits and needed <= room // 2
            if not fits:
                given_back[read] = True
                continue
            for slot in range(first, end):
                slots[n], of_read[n] = slot, at[i]
                columns[n] = min(_columns_of(listing, slot, k), BUCKETS - 1)
                rows[n] = min(_rows_of(listing, slot), BUCKETS - 1)
                n += 1
        by_rows, by_size = np.empty(n, np.int64), np.empty(n, np.int64)
        sort_by(rows, np.arange(n), by_rows)
        sort_by(columns, by_rows, by_size)

        order.n[0] = n
        for i in range(n):
            order.slots[i], order.groups[i, 0] = slots[by_size[i]], of_read[by_size[i]]


@kernel
def describe_groups(turn, pieces, listing, k, order):
    """Fill what the order says of its groups but for their reads, and of its warps, whose work is not added up yet.

    Parameters
    ----------
    turn, pieces
        See `f5py.threads.pool`; piece i has the `WARPS_OF_PIECE` warps from ``i * WARPS_OF_PIECE`` on.
    listing : Listing
    k : int
    order : GroupOrder
        Filled.
    """
    n = order.n[0]
    n_warps = (n + GROUPS - 1) // GROUPS
    for i in own_turns(counter(turn), pieces.shape[0]):
        first_warp = pieces[i] * WARPS_OF_PIECE
        for warp in range(first_warp, min(first_warp + WARPS_OF_PIECE, n_warps)):
            widest = longest = np.int64(0)
            for j in range(warp * GROUPS, min(warp * GROUPS + GROUPS, n)):
                slot = order.slots[j]
                order.groups[j, 1] = listing.window[slot]
                order.groups[j, 2] = listing.n_bases[slot]
                order.groups[j, 3] = listing.begin[slot]
                order.groups[j, 4] = listing.end[slot]
                widest = max(widest, _columns_of(listing, slot, k))
                longest = max(longest, _rows_of(listing, slot))
            order.columns[warp], order.rows[warp] = widest, longest
            order.work[warp + 1] = work_elements(widest, longest)


@kernel
def put_back(turn, pieces, slots, scores, found):
    """``found[slots[i]] = scores[i]`` for all i; the scores have four numbers.

    Parameters
    ----------
    turn, pieces
        See `f5py.threads.pool`; piece i has the `SLOTS_OF_PIECE` slots from ``i * SLOTS_OF_PIECE`` on.
    slots : int64, shape (n,)
    scores : float32, shape (>= 4 * n,)
    found : float32, shape (n_slots, 4)
        Filled at `slots`.
    """
    for piece in own_turns(counter(turn), pieces.shape[0]):
        first = pieces[piece] * SLOTS_OF_PIECE
        for i in range(first, min(first + SLOTS_OF_PIECE, slots.shape[0])):
            for j in range(4):
                found[slots[i], j] = scores[4 * i + j]
