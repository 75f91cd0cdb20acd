"""Scores of the single sites of a batch's groups on a GPU."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.results.part_results import PartResults
from f5py.compute.gpu.results.scores import BUCKETS, MotifScoring, sort_by
from f5py.core.batch import Calls, ReadBatch
from f5py.core.hmm import MIN_STAY, P_BAD, P_FROM_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.jit.kernel import inner, kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.methylation.hmm import LANES, constants
from f5py.methylation.per_site import SiteListing

#: Sites under a k-mer that the lanes of a warp can tell apart.
MAX_WIDTH = 5
#: Windows that a thread describes at a time, or puts what has been found for.
WINDOWS_OF_PIECE = 2048


class WindowOrder(NamedTuple):
    """Sorted windows, and the sizes of each warp of them."""

    n: NDArray[np.int64]  # shape (3,): numbers of windows, sites and warps; the arrays have room for more
    slots: NDArray[np.int64]  # shape (m,): where the batch has the calls of each window's group
    # shape (m, 7): the read's number in the part, the fields of `GroupWindows`, and
    # the first element of `places` with the number of sites
    windows: NDArray[np.int32]
    places: NDArray[np.int32]  # shape (n_sites,): see `f5py.methylation.per_site.SiteListing`
    # shape (m + 1, 7): first window, number of windows, and of them the most k-mers, events, slots and sites, and the
    # width
    warps: NDArray[np.int32]
    work: NDArray[np.int64]  # shape (m + 1,): offsets of the warps' scratch memory, in elements


def empty_order(n_windows: int, n_sites: int) -> WindowOrder:
    """Allocate an order for so many windows and sites."""
    return WindowOrder(
        np.zeros(3, np.int64), np.empty(n_windows, np.int64), np.empty((n_windows, 7), np.int32),
        np.empty(n_sites, np.int32), np.empty((n_windows + 1, 7), np.int32), np.zeros(n_windows + 1, np.int64),
    )  # fmt: skip


@inner
def work_elements(columns, rows, slots, is_correlated):
    """Return the floats of a warp's scratch memory by the most k-mers, events and slots of a window.

    A lane has doubles for three or four states of each k-mer, for two numbers of each event, for two or three flows of
    each event and slot and for a mass of each slot and of the ends; and three floats a k-mer.
    """
    further = 1 if is_correlated else 0
    doubles = 2 * columns + (1 + further) * (columns + 1) + 2 * rows + (2 + further) * slots * rows + slots + 1
    return LANES * (2 * doubles + 3 * columns)


@inner
def _size_of(listing, sites, n_sites, slot, k):
    """Count the k-mers, events and slots of a window."""
    rows = np.int64(abs(listing.end[slot] - listing.begin[slot])) + 1
    return np.int64(listing.n_bases[slot]) - k + 1, rows, np.int64((n_sites[slot] - 1) // sites.width[slot])


@kernel
def order_windows(queue, one, at, groups, sites, limits, order, given_back):
    """Sort the windows of reads by descending width and size; fill number, slots and reads.

    Parameters
    ----------
    at : int64, shape (n,)
        Reads, numbered within the part.
    groups : tuple
        As `calls` of `f5py.compute.gpu.results.scores.order_groups`; with numbers of sites, int32, and `GroupWindows`.
    limits : tuple
        k, correlated or not, scratch memory of a warp, in elements, and sites of a window.
    given_back : bool
        Set for reads of the batch with a window that is too large; the order has none of theirs.
    """
    aligned, offsets, n_groups, n_sites, listing = groups
    widths, windows, ordered = sites.width, order.windows, order.slots
    k, is_correlated, room, most_sites = limits
    for _ in claimed_indices(work_counter(queue), one.shape[0]):
        most = ordered.shape[0]
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
                width = widths[slot]
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
        for i in range(n):
            ordered[i], windows[i, 0] = slots[by_kind[i]], of_read[by_kind[i]]
        order.n[0] = n


@kernel
def describe_windows(queue, pieces, groups, sites, order):
    """Fill the descriptions of the windows; the field of places has the width until `list_places`.

    Parameters
    ----------
    pieces
        Piece i has `WINDOWS_OF_PIECE` windows from ``i * WINDOWS_OF_PIECE``; see `f5py.threads.pool`.
    """
    _, _, _, n_sites, (window, n_bases, begin, end) = groups
    widths, slots, windows, n = sites.width, order.slots, order.windows, order.n[0]
    for piece in claimed_indices(work_counter(queue), pieces.shape[0]):
        first = pieces[piece] * WINDOWS_OF_PIECE
        for i in range(first, min(first + WINDOWS_OF_PIECE, n)):
            slot = slots[i]
            windows[i, 1], windows[i, 2], windows[i, 3], windows[i, 4] = (
                window[slot],
                n_bases[slot],
                begin[slot],
                end[slot],
            )
            windows[i, 5], windows[i, 6] = widths[slot], n_sites[slot]


@kernel
def divide_windows(queue, one, limits, order):
    """Divide the windows among warps, and set the offsets of their places.

    Parameters
    ----------
    limits, order : tuple, WindowOrder
    """
    k, is_correlated, room, _ = limits
    windows, warps, work, n = order.windows, order.warps, order.work, order.n
    for _ in claimed_indices(work_counter(queue), one.shape[0]):
        n_places = 0
        n_warps = 0
        needed = widest = longest = most_slots = np.int64(0)
        for i in range(n[0]):
            columns, n_sites = np.int64(windows[i, 2]) - k + 1, windows[i, 6]
            rows, width = abs(np.int64(windows[i, 4]) - windows[i, 3]) + 1, windows[i, 5]
            n_slots = np.int64((n_sites - 1) // width)
            windows[i, 5] = n_places
            n_places += n_sites
            warp = n_warps - 1
            wider, longer, more = max(widest, columns), max(longest, rows), max(most_slots, n_slots)
            needed = work_elements(wider, longer, more, is_correlated)
            if n_warps == 0 or width != warps[warp, 6] or warps[warp, 1] == LANES >> width or needed > room:
                warp = n_warps
                n_warps += 1
                warps[warp, 0], warps[warp, 1], warps[warp, 5], warps[warp, 6] = i, 0, 0, width
                wider, longer, more = columns, rows, n_slots
                needed = work_elements(wider, longer, more, is_correlated)
            widest, longest, most_slots = wider, longer, more
            warps[warp, 1] += 1
            warps[warp, 2], warps[warp, 3], warps[warp, 4] = widest, longest, most_slots
            warps[warp, 5] = max(warps[warp, 5], n_sites)
            work[n_warps] = work[n_warps - 1] + needed
        n[1], n[2] = n_places, n_warps


@kernel
def list_places(queue, pieces, sites, order):
    """Fill the places of the windows' sites.

    Parameters
    ----------
    sites, order : f5py.methylation.per_site.SiteListing, WindowOrder
    """
    place, firsts = sites.place, sites.first
    slots, windows, places, n = order.slots, order.windows, order.places, order.n[0]
    for piece in claimed_indices(work_counter(queue), pieces.shape[0]):
        first = pieces[piece] * WINDOWS_OF_PIECE
        for i in range(first, min(first + WINDOWS_OF_PIECE, n)):
            source, at = firsts[slots[i]], windows[i, 5]
            for site in range(windows[i, 6]):
                places[at + site] = place[source + site]


@kernel
def put_sites_back(queue, pieces, chunk, first, sites, exponents):
    """Copy the results of windows to the slots of sites and groups.

    Parameters
    ----------
    chunk : tuple
        Slots and windows of `WindowOrder`, sites (float64, from the first window's first place on) and exponents.
    first : int64, shape (n_group_slots,)
        See `f5py.methylation.per_site.SiteListing`.
    sites, exponents : float64, shape (n_site_slots, 2), (n_group_slots,)
        Filled.
    """
    slots, windows, found, found_exponents = chunk
    for piece in claimed_indices(work_counter(queue), pieces.shape[0]):
        begin = pieces[piece] * WINDOWS_OF_PIECE
        for i in range(begin, min(begin + WINDOWS_OF_PIECE, slots.shape[0])):
            slot = slots[i]
            exponents[slot] = found_exponents[i]
            at = 2 * (np.int64(windows[i, 5]) - windows[0, 5])
            for site in range(first[slot], first[slot] + windows[i, 6]):
                sites[site, 0], sites[site, 1] = found[at], found[at + 1]
                at += 2


class GpuSites(PartResults):
    """Sites of one motif in multi-site groups; `GpuScores` has uploaded the common inputs."""

    def begin(
        self, batch: ReadBatch, reads: NDArray[np.bool_], scoring: MotifScoring, sites: SiteListing, calls: Calls
    ) -> NDArray[np.bool_]:
        """Queue the scoring of the sites of `reads`; `fetch` queues those that do not fit at once.

        Return the mask of reads with a window that is too large or sites that are too close.
        """
        part, aligned, groups = self._part, self._aligned, batch.calls
        self._scoring, self._first = scoring, sites.first
        _, _, k, noise, listing = scoring
        at = np.flatnonzero(reads[aligned])
        given_back = np.zeros(len(batch), np.bool_)
        self._order = order = empty_order(int(groups.n[aligned[at]].sum()), int(calls.n[aligned[at]].sum()))
        limits = (k, noise is not None, part.size.trace_words, part.size.sites)
        of_part = (aligned, groups.offsets, groups.n, groups.sites, listing)
        self._run(order_windows, at, of_part, sites, limits, order, given_back)
        self._n_windows = int(order.n[0])
        self._run_pieces(describe_windows, self._n_windows, WINDOWS_OF_PIECE, of_part, sites, order)
        self._run(divide_windows, limits, order)
        self._n_warps = int(order.n[2])
        self._run_pieces(list_places, self._n_windows, WINDOWS_OF_PIECE, sites, order)
        self._sites = np.empty((len(calls.first), 2))
        self._exponents = np.empty(len(groups.first))
        self._next = 0
        with part.stream:
            part.put("p_stay", _stay_probabilities(batch.events_per_base[aligned]))
        self._queue_chunk()
        return given_back

    def fetch(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Wait; return sites and exponents of `FoundSites`."""
        host, order = self._part.host, self._order
        while True:
            self._part.wait()
            slots, windows = order.slots[self._chunk], order.windows[self._chunk]
            chunk = (slots, windows, host["found_sites"], host["exponents"])
            self._run_pieces(
                put_sites_back, len(slots), WINDOWS_OF_PIECE, chunk, self._first, self._sites, self._exponents
            )
            if self._next == self._n_warps:
                return self._sites, self._exponents
            self._queue_chunk()

    def _queue_chunk(self) -> None:
        """Queue the windows of as many of the remaining warps as fit."""
        part, order, warp = self._part, self._order, self._next
        work, warps = order.work, order.warps[: self._n_warps]
        # the first window of each warp and the first site of each window, with the ends of all
        windows = np.append(warps[:, 0], self._n_windows)
        places = np.append(order.windows[: self._n_windows, 5], order.n[1])
        by_work = int(np.searchsorted(work[: self._n_warps + 1], work[warp] + part.size.trace_words, "right")) - 1
        by_sites = int(np.searchsorted(places[windows], places[windows[warp]] + part.size.sites, "right")) - 1
        end = self._next = max(min(by_work, by_sites), min(warp + 1, self._n_warps))
        first_window, end_window = int(windows[warp]), int(windows[end])
        self._chunk = slice(first_window, end_window)
        first_place, end_place = int(places[first_window]), int(places[end_window])
        of_warps, of_windows = warps[warp:end].copy(), order.windows[self._chunk].copy()
        of_warps[:, 0] -= first_window
        of_windows[:, 5] -= first_place
        model, motifs, k, noise, _ = self._scoring
        with part.stream:
            part.put("windows", of_windows.reshape(-1))
            part.put("places", order.places[first_place:end_place])
            part.put("site_warps", of_warps.reshape(-1))
            part.put("site_work", work[warp:end] - work[warp])
            if end > warp:
                name: str = "sites_independent"
                more: tuple[Any, ...] = ()
                if noise is not None:
                    terms = np.array(noise, np.float64)
                    name, more = "sites_correlated", (self._tables.cached(("terms", *noise), lambda: terms),)
                part.launch(
                    self._functions[name], end - warp, LANES, "event_mean", "q", "reference", "reference_offsets",
                    motifs, k, model, "fit_shift", "fit_scale", "fit_var", "numbers", "is_reverse",
                    self._tables.cached("constants", constants), "p_stay",
                    self._tables.cached("transitions", _transitions), "windows", "places", "site_warps", "site_work",
                    "work", "found_sites", "exponents", *more,
                )  # fmt: skip
            part.download("found_sites", 2 * (end_place - first_place))
            part.download("exponents", end_window - first_window)


def _transitions() -> NDArray[np.float64]:
    return np.array([P_BAD, P_FROM_BAD, P_SKIP, P_SKIP_SELF, P_FROM_SKIP])


def _stay_probabilities(events_per_base: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the stay probabilities; see `f5py.methylation.hmm.stay_probability`."""
    with np.errstate(divide="ignore"):
        return np.where(events_per_base > 0.0, np.maximum(1.0 - 1.0 / events_per_base, MIN_STAY), MIN_STAY)
