"""Scores of the single sites of a batch's groups on a GPU."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.results.part_results import PartResults
from f5py.compute.gpu.results.scores import GpuScores
from f5py.core.batch import ReadBatch
from f5py.core.hmm import MIN_STAY, P_BAD, P_FROM_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.core.offsets import elements_of, offsets_of
from f5py.methylation.hmm import LANES, constants
from f5py.methylation.per_site import SiteListing

#: Sites under a k-mer that the lanes of a warp can tell apart.
MAX_WIDTH = 5


def work_elements(sizes: NDArray[np.int64], is_correlated: bool) -> NDArray[np.int64]:
    """Return the floats of scratch memory of warps by their most k-mers, events and slots, shape (n, 3).

    A lane has doubles for three or four states of each k-mer, for two numbers of each event, for two or three flows of
    each event and slot and for a mass of each slot and of the ends; and three floats a k-mer.
    """
    columns, rows, slots = sizes.T
    further = 1 if is_correlated else 0
    doubles = 2 * columns + (1 + further) * (columns + 1) + 2 * rows + (2 + further) * slots * rows + slots + 1
    return LANES * (2 * doubles + 3 * columns)


class GpuSites(PartResults):
    """Sites of one motif in multi-site groups; `GpuScores` has uploaded the common inputs."""

    def begin(self, batch: ReadBatch, scores: GpuScores, sites: SiteListing) -> NDArray[np.bool_]:
        """Queue the scoring of the sites of groups in `scores`; `fetch` queues those that do not fit at once.

        Return the mask of reads with a window that is too large or sites that are too close.
        """
        self._scoring, self._first = scores.scoring, sites.first
        _, _, k, noise = scores.scoring
        slots, groups = scores.groups
        chosen = np.flatnonzero(batch.calls.sites[slots] > 1)
        slots, groups = slots[chosen], groups[chosen]
        n_sites, width = batch.calls.sites[slots].astype(np.int64), sites.width[slots].astype(np.int64)
        reads = self._aligned[groups[:, 0]]
        rows = np.abs(groups[:, 4].astype(np.int64) - groups[:, 3]) + 1
        sizes = np.column_stack([groups[:, 2].astype(np.int64) - k + 1, rows, (n_sites - 1) // width])
        room, is_correlated = self._part.size.trace_words, noise is not None
        is_large = (width > MAX_WIDTH) | (n_sites > self._part.size.sites)
        is_large |= work_elements(sizes, is_correlated) > room
        given_back = np.zeros(len(batch), np.bool_)
        while True:
            given_back[reads[is_large]] = True
            order = np.flatnonzero(~given_back[reads])
            # of each width those without slots last
            kind = (2 * width[order] + (sizes[order, 2] > 0)).astype(np.uint8)
            order = order[np.argsort(2 * MAX_WIDTH + 1 - kind, kind="stable")]
            first, most = _warps(width[order], np.column_stack([sizes, n_sites])[order])
            work = work_elements(most[:, :3], is_correlated)
            if (work <= room).all():
                break
            is_large[order[np.repeat(work > room, np.diff(first))]] = True
        self._slots, n_sites = slots[order], n_sites[order]
        self._places = offsets_of(n_sites)
        self._windows = np.column_stack([groups[order], self._places[:-1], n_sites]).astype(np.int32)
        self._listed = sites.place[elements_of(sites.first[self._slots], n_sites)]
        self._warps = np.column_stack([first[:-1], np.diff(first), most, width[order][first[:-1]]]).astype(np.int32)
        self._first_windows, self._work = first, offsets_of(work)
        self._sites = np.empty((len(sites.place), 2))
        self._exponents = np.empty(len(sites.first))
        self._next = 0
        with self._part.stream:
            self._part.put("p_stay", _stay_probabilities(batch.events_per_base[self._aligned]))
        self._queue_chunk()
        return given_back

    def fetch(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Wait; return sites and exponents of `f5py.methylation.per_site.SiteLikelihoods`."""
        while True:
            self._part.wait()
            slots, n_sites = self._slots[self._chunk], self._windows[self._chunk, 6].astype(np.int64)
            at = elements_of(self._first[slots], n_sites)
            self._sites[at] = self._part.pairs("found_sites", len(at))
            self._exponents[slots] = self._part.host["exponents"][: len(slots)]
            if self._next == len(self._warps):
                return self._sites, self._exponents
            self._queue_chunk()

    def _queue_chunk(self) -> None:
        """Queue the windows of as many of the remaining warps as fit."""
        part, work, warp = self._part, self._work, self._next
        windows, places = self._first_windows, self._places[self._first_windows]
        by_work = int(np.searchsorted(work, work[warp] + part.size.trace_words, "right")) - 1
        by_sites = int(np.searchsorted(places, places[warp] + part.size.sites, "right")) - 1
        end = self._next = max(min(by_work, by_sites), min(warp + 1, len(self._warps)))
        self._chunk = slice(int(windows[warp]), int(windows[end]))
        of_warps, of_windows = self._warps[warp:end].copy(), self._windows[self._chunk].copy()
        of_warps[:, 0] -= windows[warp]
        of_windows[:, 5] -= places[warp]
        model, motifs, k, noise = self._scoring
        with part.stream:
            part.put("windows", of_windows.reshape(-1))
            part.put("places", self._listed[places[warp] : places[end]])
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
            part.download("found_sites", 2 * int(places[end] - places[warp]))
            part.download("exponents", len(of_windows))


def _warps(width: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Divide windows, sorted by width, among warps; return offsets and the greatest sizes of these."""
    of_widths = np.flatnonzero(np.diff(width, prepend=0))
    place = np.arange(len(width)) - np.repeat(of_widths, np.diff(of_widths, append=len(width)))
    first = np.flatnonzero(place % (LANES >> width) == 0)
    return np.append(first, len(width)), np.maximum.reduceat(sizes, first, axis=0)


def _transitions() -> NDArray[np.float64]:
    return np.array([P_BAD, P_FROM_BAD, P_SKIP, P_SKIP_SELF, P_FROM_SKIP])


def _stay_probabilities(events_per_base: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the stay probabilities; see `f5py.methylation.hmm.stay_probability`."""
    with np.errstate(divide="ignore"):
        return np.where(events_per_base > 0.0, np.maximum(1.0 - 1.0 / events_per_base, MIN_STAY), MIN_STAY)
