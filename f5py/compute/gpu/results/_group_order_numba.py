"""Kernels that sort the site groups of a batch for the warps of a GPU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import inner, kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.methylation._hmm_numba import BLOCK, log_score
from f5py.methylation.hmm_gpu import LANES

#: Groups of a warp: two problems each.
GROUPS = LANES // 2
_BITS = 11
_SLOT = (1 << 32) - 1
BUCKETS = 1 << _BITS
_NO_ROOM = np.empty(0, np.int32)
#: What a thread takes at a time, of warps and of what comes back.
WARPS_OF_PIECE, SLOTS_OF_PIECE = 512, 8192


class GroupOrder(NamedTuple):
    """Sorted groups, and the sizes of each warp of `GROUPS` of them."""

    n: NDArray[np.int64]  # shape (1,): number of groups; the arrays have room for more
    # shape (m,): where the batch has each group's calls, the number of the slot, which is below 2 ** 32; plus 2
    # ** 32 times the read, as the part counts them
    places: NDArray[np.int64]
    groups: NDArray[
        np.int32
    ]  # shape (m, 5): the read and the fields of `f5py.methylation._group_list_numba.GroupWindows`
    # columns, rows: shape (m // GROUPS + 1,): largest numbers of k-mers and events of each warp
    columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    work: NDArray[np.int64]  # shape (m // GROUPS + 2,): offsets of the warps' scratch memory, in elements


def empty_order(most: int, room: NDArray[np.int32] = _NO_ROOM) -> GroupOrder:
    """Allocate an order for up to `most` groups, described in `room` if it is large enough."""
    n_warps = most // GROUPS + 1
    return GroupOrder(
        np.zeros(1, np.int64),
        np.empty(most, np.int64),
        (room[: 5 * most] if 5 * most <= len(room) else np.empty(5 * most, np.int32)).reshape(most, 5),
        np.empty(n_warps, np.int32),
        np.empty(n_warps, np.int32),
        np.zeros(n_warps + 1, np.int64),
    )


@inner
def _rows_of(listing, slot):
    return np.int64(abs(listing.end[slot] - listing.begin[slot])) + 1


@inner
def _columns_of(listing, slot, k):
    return np.int64(listing.n_bases[slot]) - k + 1


@inner
def work_elements(columns, rows):
    """Return the floats of scratch memory of a warp with up to that many k-mers and events.

    A problem has six numbers a k-mer, two a block of k-mers and two an event.
    """
    return LANES * (6 * columns + 2 * ((columns + BLOCK - 1) // BLOCK) + 2 * rows)


@inner
def sort_by(keys, from_, to):
    """Sort the items in `from_` by descending `keys` below `BUCKETS`; stable."""
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
    """Calls of a part's reads."""

    aligned: NDArray[np.int64]  # the batch's number of each read of the part
    # offsets, n: the batch's slots of calls and how many are in use
    offsets: NDArray[np.int64]
    n: NDArray[np.int64]


class GroupLimits(NamedTuple):
    """Limits on groups."""

    k: int
    room: int  # elements of scratch memory that a warp may take


@kernel
def order_groups(queue, one, at, calls, listing, limits, order, given_back):
    """Sort the groups of reads by descending k-mers, then events.

    Fills number and places; `describe_groups` does the rest.

    Parameters
    ----------
    at : int64, shape (n,)
        Reads, numbered within the part.
    calls : PartCalls
    order : GroupOrder
    given_back : bool
        Set for reads of the batch with a group too large for `room`; the order has none of theirs.
    """
    aligned, offsets, n_calls = calls
    k, room = limits
    for _ in claimed_indices(work_counter(queue), one.shape[0]):
        keys = np.empty(order.places.shape[0], np.int32)
        most_columns = most_rows = np.int64(0)
        n = 0
        for i in range(at.shape[0]):
            read = aligned[at[i]]
            begin = n
            needed = np.int64(0)
            for slot in range(offsets[read], offsets[read] + n_calls[read]):
                columns, rows = _columns_of(listing, slot, k), _rows_of(listing, slot)
                needed = max(needed, work_elements(columns, rows))
                columns, rows = min(columns, BUCKETS - 1), min(rows, BUCKETS - 1)
                most_columns, most_rows = max(most_columns, columns), max(most_rows, rows)
                keys[n] = columns << _BITS | rows
                n += 1
            given_back[read] = needed > room // 2  # the widest and the longest group of a warp may be two
            if given_back[read]:
                n = begin
        order.n[0] = n

        # by both at once: there are fewer pairs of them than groups
        width = most_rows + 1
        begins = np.zeros((most_columns + 1) * width + 1, np.int32)
        for i in range(n):
            keys[i] = (most_columns - (keys[i] >> _BITS)) * width + most_rows - (keys[i] & BUCKETS - 1)
            begins[keys[i] + 1] += 1
        for key in range(1, begins.shape[0]):
            begins[key] += begins[key - 1]
        n = 0
        for i in range(at.shape[0]):
            read = aligned[at[i]]
            if given_back[read]:
                continue
            for slot in range(offsets[read], offsets[read] + n_calls[read]):
                order.places[begins[keys[n]]] = at[i] << 32 | slot
                begins[keys[n]] += 1
                n += 1


@kernel
def describe_groups(queue, pieces, listing, k, order):
    """Fill the descriptions of the groups, and of the warps except the sums of their work.

    Parameters
    ----------
    pieces
        Piece i has `WARPS_OF_PIECE` warps from ``i * WARPS_OF_PIECE``; see `f5py.threads.pool`.
    order : GroupOrder
        Filled.
    """
    n = order.n[0]
    n_warps = (n + GROUPS - 1) // GROUPS
    for i in claimed_indices(work_counter(queue), pieces.shape[0]):
        first_warp = pieces[i] * WARPS_OF_PIECE
        for warp in range(first_warp, min(first_warp + WARPS_OF_PIECE, n_warps)):
            widest = longest = np.int64(0)
            for j in range(warp * GROUPS, min(warp * GROUPS + GROUPS, n)):
                slot = order.places[j] & _SLOT
                order.groups[j, 0] = order.places[j] >> 32
                order.groups[j, 1] = listing.window[slot]
                order.groups[j, 2] = listing.n_bases[slot]
                order.groups[j, 3] = listing.begin[slot]
                order.groups[j, 4] = listing.end[slot]
                widest = max(widest, _columns_of(listing, slot, k))
                longest = max(longest, _rows_of(listing, slot))
            order.columns[warp], order.rows[warp] = widest, longest
            order.work[warp + 1] = work_elements(widest, longest)


@kernel
def put_back(queue, pieces, places, scores, calls):
    """Convert the scores of sorted groups to log-likelihoods.

    Parameters
    ----------
    pieces
        Piece i has `SLOTS_OF_PIECE` places from ``i * SLOTS_OF_PIECE``; see `f5py.threads.pool`.
    places : int64, shape (n,)
        See `GroupOrder`.
    scores : float32, shape (>= 4 * n,)
        Arguments of `log_score` for each group, methylated and unmethylated.
    calls : f5py.core.batch.Calls
        Log-likelihoods are filled at these slots.
    """
    for piece in claimed_indices(work_counter(queue), pieces.shape[0]):
        first = pieces[piece] * SLOTS_OF_PIECE
        for i in range(first, min(first + SLOTS_OF_PIECE, places.shape[0])):
            slot = places[i] & _SLOT
            calls.methylated[slot] = log_score(scores[4 * i], scores[4 * i + 1])
            calls.unmethylated[slot] = log_score(scores[4 * i + 2], scores[4 * i + 3])
