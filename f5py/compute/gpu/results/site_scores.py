"""Scores of the single sites of a batch's groups on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.results.part_results import PartResults
from f5py.compute.gpu.results.scores import MotifScoring
from f5py.core.batch import Calls, ReadBatch
from f5py.core.hmm import MIN_STAY, P_BAD, P_FROM_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.methylation._site_list_numba import SiteListing
from f5py.methylation.hmm_gpu import LANES, constants


class GpuSites(PartResults):
    """Sites of one motif in multi-site groups; `GpuScores` has uploaded the common inputs."""

    def begin(
        self, batch: ReadBatch, reads: NDArray[np.bool_], scoring: MotifScoring, sites: SiteListing, calls: Calls
    ) -> NDArray[np.bool_]:
        """Queue the scoring of the sites of `reads`; `fetch` queues those that do not fit at once.

        Return the mask of reads with a window that is too large or sites that are too close.
        """
        from f5py.compute.gpu.results._window_order_numba import (
            WINDOWS_OF_PIECE,
            PartGroups,
            WindowLimits,
            describe_windows,
            divide_windows,
            empty_order,
            list_places,
            order_windows,
        )

        part, aligned, groups = self._part, self._aligned, batch.calls
        self._scoring, self._first = scoring, sites.first
        at = np.flatnonzero(reads[aligned])
        given_back = np.zeros(len(batch), np.bool_)
        self._order = order = empty_order(int(groups.n[aligned[at]].sum()), int(calls.n[aligned[at]].sum()))
        limits = WindowLimits(scoring.k, scoring.noise is not None, part.size.trace_words, part.size.sites)
        of_part = PartGroups(aligned, groups.offsets, groups.n, groups.sites, scoring.listing)
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
        from f5py.compute.gpu.results._window_order_numba import WINDOWS_OF_PIECE, ChunkSites, put_sites_back

        host, order = self._part.host, self._order
        while True:
            self._part.wait()
            slots, windows = order.slots[self._chunk], order.windows[self._chunk]
            chunk = ChunkSites(slots, windows, host["found_sites"], host["exponents"])
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
                    name, more = "sites_correlated", (self._tables.kept(("terms", *noise), lambda: terms),)
                part.launch(
                    self._functions[name], end - warp, LANES, "event_mean", "q", "reference", "reference_offsets",
                    motifs, k, model, "fit_shift", "fit_scale", "fit_var", "numbers", "is_reverse",
                    self._tables.kept("constants", constants), "p_stay",
                    self._tables.kept("transitions", _transitions), "windows", "places", "site_warps", "site_work",
                    "work", "found_sites", "exponents", *more,
                )  # fmt: skip
            part.download("found_sites", 2 * (end_place - first_place))
            part.download("exponents", end_window - first_window)


def _transitions() -> NDArray[np.float64]:
    return np.array([P_BAD, P_FROM_BAD, P_SKIP, P_SKIP_SELF, P_FROM_SKIP])


def _stay_probabilities(events_per_base: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the stay probabilities; see `f5py.methylation._hmm_numba.stay_probability`."""
    with np.errstate(divide="ignore"):
        return np.where(events_per_base > 0.0, np.maximum(1.0 - 1.0 / events_per_base, MIN_STAY), MIN_STAY)
