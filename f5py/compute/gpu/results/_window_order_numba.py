"""Jitted loops that put the windows of a batch's sites into the order in which the warps of a GPU take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.results._group_order_numba import BUCKETS, sort_by
from f5py.core._turns_numba import counter, own_turns
from f5py.jit.kernel import kernel
from f5py.methylation._group_list_numba import Listing
from f5py.methylation.hmm_gpu import LANES

#: Sites under a k-mer that the lanes of a warp can tell apart.
MAX_WIDTH = 5


class WindowOrder(NamedTuple):
    """Windows in their order, and what each warp of them needs."""

    n: NDArray[np.int64]  # shape (3,): numbers of windows, sites and warps; the arrays have room for more
    slots: NDArray[np.int64]  # shape (m,): where the batch has the calls of each window's group
    # shape (m, 7): the read, as the part counts them, the fields of `f5py.methylation._group_list_numba.Listing`, and
    # the first element of `places` with the number of sites
    windows: NDArray[np.int32]
    places: NDArray[np.int32]  # shape (n_sites,): see `f5py.methylation._site_list_numba.SiteListing`
    # shape (m + 1, 7): first window, number of windows, and of them the most k-mers, events, slots and sites, and the
    # width
    warps: NDArray[np.int32]
    work: NDArray[np.int64]  # shape (m + 1,): offsets of the warps' scratch memory, in elements


def empty_order(n_windows: int, n_sites: int) -> WindowOrder:
    """Room for so many windows and sites."""
    return WindowOrder(
        np.zeros(3, np.int64), np.empty(n_windows, np.int64), np.empty((n_windows, 7), np.int32),
        np.empty(n_sites, np.int32), np.empty((n_windows + 1, 7), np.int32), np.zeros(n_windows + 1, np.int64),
    )  # fmt: skip


class GroupsOfPart(NamedTuple):
    """The groups of a part's reads."""

    aligned: NDArray[np.int64]  # the batch's number of each read of the part
    # offsets, n: the batch's slots of groups and how many are in use
    offsets: NDArray[np.int64]
    n: NDArray[np.int64]
    n_sites: NDArray[np.int32]  # of each group
    listing: Listing


class SiteLimits(NamedTuple):
    """Limits that windows must fit."""

    k: int
    is_correlated: bool
    room: int  # elements of scratch memory that a warp may take
    sites: int  # of a window


@kernel
def work_elements(columns, rows, slots, is_correlated):
    """Floats of scratch memory that a warp needs whose windows have up to so many k-mers, events and slots.

    A lane has doubles for three or four states of each k-mer, for two numbers of each event, for two or three flows of
    each event and slot and for a mass of each slot and of the ends; and three floats a k-mer.
    """
    further = 1 if is_correlated else 0
    doubles = 2 * columns + (1 + further) * (columns + 1) + 2 * rows + (2 + further) * slots * rows + slots + 1
    return LANES * (2 * doubles + 3 * columns)


@kernel
def _size_of(listing, sites, n_sites, slot, k):
    """Count the k-mers, events and slots of a window."""
    rows = np.int64(abs(listing.end[slot] - listing.begin[slot])) + 1
    return np.int64(listing.n_bases[slot]) - k + 1, rows, np.int64((n_sites[slot] - 1) // sites.width[slot])


@kernel
def order_windows(turn, one, at, groups, sites, limits, order, given_back):
    """Order the windows of reads by width and size, the largest first, and divide them among warps.

    Parameters
    ----------
    turn, one
        As of all kernels; there is one turn.
    at : int64, shape (n,)
        Reads, as the part counts them.
    groups : GroupsOfPart
    sites : f5py.methylation._site_list_numba.SiteListing
    limits : SiteLimits
    order : WindowOrder
        Filled.
    given_back : bool
        Set for reads of the batch that have a window which is too large; none of theirs is in the order.
    """
    aligned, offsets, n_groups, n_sites, listing = groups
    k, is_correlated, room, most_sites = limits
    for _ in own_turns(counter(turn), one.shape[0]):
        most = order.slots.shape[0]
        slots, of_read = np.empty(most, np.int64), np.empty(most, np.int32)
        columns, rows, kinds = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
        n = 0
        for i in range(at.shape[0]):
            read = aligned[at[i]]
            begin = n
            fits = True
            for slot in range(offsets[read], offsets[read] + n_groups[read]):
                if n_sites[slot] == 1:
                    continue
                width = sites.width[slot]
                of_window = _size_of(listing, sites, n_sites, slot, k)
                needed = work_elements(of_window[0], of_window[1], of_window[2], is_correlated)
                fits = fits and width <= MAX_WIDTH and needed <= room and n_sites[slot] <= most_sites
                slots[n], of_read[n] = slot, at[i]
                columns[n], rows[n] = min(of_window[0], BUCKETS - 1), min(of_window[1], BUCKETS - 1)
                kinds[n] = min(2 * width + (1 if of_window[2] > 0 else 0), BUCKETS - 1)
                n += 1
            if not fits:
                given_back[read] = True
                n = begin
        by_rows, by_columns, by_kind = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
        sort_by(rows, np.arange(n), by_rows)
        sort_by(columns, by_rows, by_columns)
        sort_by(kinds, by_columns, by_kind)

        n_places = 0
        n_warps = 0
        needed = widest = longest = most_slots = np.int64(0)
        warp = order.warps[0]  # not begun
        for i in range(n):
            slot = slots[by_kind[i]]
            of_window = _size_of(listing, sites, n_sites, slot, k)
            width = sites.width[slot]
            order.slots[i] = slot
            window = order.windows[i]
            window[0], window[1], window[2] = of_read[by_kind[i]], listing.window[slot], listing.n_bases[slot]
            window[3], window[4] = listing.begin[slot], listing.end[slot]
            window[5], window[6] = n_places, n_sites[slot]
            for site in range(sites.first[slot], sites.first[slot] + n_sites[slot]):
                order.places[n_places] = sites.place[site]
                n_places += 1

            if n_warps > 0:
                widest, longest = max(np.int64(warp[2]), of_window[0]), max(np.int64(warp[3]), of_window[1])
                most_slots = max(np.int64(warp[4]), of_window[2])
                needed = work_elements(widest, longest, most_slots, is_correlated)
            if n_warps == 0 or width != warp[6] or warp[1] == LANES >> width or needed > room:
                warp = order.warps[n_warps]
                n_warps += 1
                warp[0], warp[1], warp[5], warp[6] = i, 0, 0, width
                widest, longest, most_slots = of_window
                needed = work_elements(widest, longest, most_slots, is_correlated)
            warp[1] += 1
            warp[2], warp[3], warp[4] = widest, longest, most_slots
            warp[5] = max(warp[5], n_sites[slot])
            order.work[n_warps] = order.work[n_warps - 1] + needed
        order.n[0], order.n[1], order.n[2] = n, n_places, n_warps


class SitesOfChunk(NamedTuple):
    """What a GPU has found for some windows."""

    slots: NDArray[np.int64]  # shape (n,): see `WindowOrder`
    n_sites: NDArray[np.int32]  # shape (n,)
    sites: NDArray[np.float64]  # shape (>= 2 * sum(n_sites),)
    exponents: NDArray[np.float64]  # shape (>= n,)


@kernel
def put_sites_back(turn, one, chunk, first, sites, exponents):
    """Put what has been found to the slots of sites and groups.

    Parameters
    ----------
    turn, one
        As of `order_windows`.
    chunk : SitesOfChunk
    first : int64, shape (n_group_slots,)
        See `f5py.methylation._site_list_numba.SiteListing`.
    sites : float64, shape (n_site_slots, 2)
        Filled.
    exponents : float64, shape (n_group_slots,)
        Filled.
    """
    for _ in own_turns(counter(turn), one.shape[0]):
        at = 0
        for i in range(chunk.slots.shape[0]):
            slot = chunk.slots[i]
            exponents[slot] = chunk.exponents[i]
            for site in range(first[slot], first[slot] + chunk.n_sites[i]):
                sites[site, 0], sites[site, 1] = chunk.sites[at], chunk.sites[at + 1]
                at += 2
