"""Methylation calls: log-likelihoods of the groups of sites along a read's alignment.

Sites at most 10 bases apart (`Motif.separation`) form a group, methylated or not as a whole. A group's window has 10
bases of flank on both sides. Its events are scored under the window's reference bases as they are, and with every site
methylated. The difference of the two log-likelihoods is the call. `f5py.methylation.per_site` has the calls of single
sites.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import BatchView, Calls, ReadBatch, ReadStatus
from f5py.core.motifs import Motif, MotifCodes
from f5py.core.noise import Noise
from f5py.core.offsets import elements_of, offsets_of
from f5py.methylation.correlated import NoiseTerms, noise_terms
from f5py.pore_model.model import PoreModel
from f5py.threads.pool import WorkerPool, longest_first

if TYPE_CHECKING:
    from f5py.methylation._group_list_numba import GroupWindows
    from f5py.methylation._site_list_numba import SiteListing


class ScoreOffload(Protocol):
    """Scorer of a part of a batch's groups in parallel to the CPU's threads."""

    def scores(self, batch: ReadBatch, motifs: tuple[MotifCodes, MotifCodes]) -> NDArray[np.bool_]:
        """Select its reads."""
        ...

    def view(self, batch: ReadBatch) -> BatchView:
        """Return the batch's arrays for the search for groups; those of other reads may be missing."""
        ...

    def begin_scores(
        self,
        batch: ReadBatch,
        model: PoreModel,
        motifs: tuple[MotifCodes, MotifCodes],
        listing: GroupWindows,
        noise: NoiseTerms | None,
    ) -> NDArray[np.bool_]:
        """Start to score these reads' groups, listed in the batch's calls and in `listing`.

        Return the reads that it declines.
        """
        ...

    def fetch_scores(self, calls: Calls) -> float:
        """Wait for the log-likelihoods and fill them; return the seconds of all threads."""
        ...

    def begin_sites(
        self, batch: ReadBatch, reads: NDArray[np.bool_], sites: SiteListing, calls: Calls
    ) -> NDArray[np.bool_]:
        """Start to score the sites, listed in `sites` and `calls`, of groups already begun.

        Return the reads that it declines.
        """
        ...

    def fetch_sites(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Wait for the sites' likelihoods and the groups' exponents, as `finish_sites` takes them."""
        ...


def join_motifs(batch: ReadBatch) -> None:
    """Merge the calls of `ReadBatch.by_motif`: by read, and for each read by motif."""
    parts = batch.by_motif
    counts = np.stack([part.n for part in parts], axis=1)
    total = counts.sum(axis=1)
    batch.calls = Calls.of(offsets_of(total), total)
    before = batch.calls.offsets[:-1, None] + np.cumsum(counts, axis=1) - counts
    batch.call_motif = np.empty(len(batch.calls.first), np.int8)
    for i, part in enumerate(parts):
        source = elements_of(part.offsets[:-1], counts[:, i])
        place = elements_of(before[:, i], counts[:, i])
        batch.call_motif[place] = i
        for name in Calls._fields[2:]:
            getattr(batch.calls, name)[place] = getattr(part, name)[source]


def call_methylation(
    batch: ReadBatch,
    motif: Motif,
    model: PoreModel,
    pool: WorkerPool,
    per_site: bool = False,
    agreement: float | None = None,
    elsewhere: ScoreOffload | None = None,
    noise: Noise | None = None,
) -> float:
    """Fill the batch's calls for all reads with `ReadStatus.OK`.

    Return the seconds of all threads.

    Parameters
    ----------
    batch : ReadBatch
        Alignment, scaling, reference segments and CIGARs are read.
    model : PoreModel
        Over the alphabet ACGMT.
    per_site : bool
        Call every site of a group by itself, see `f5py.methylation.per_site`. First and last site of a site's call are
        the site, and its number of sites is 1. The same sites are called either way.
    agreement : float, optional
        For `per_site`: prior probability that all sites of a group have one state, from 0 (all combinations of states
        are equally probable) to 1 (every site gets its group's call). None: learned from each read.
    elsewhere : ScoreOffload, optional
        Scores its share of the groups, and with `per_site` of their sites.
    noise : Noise, optional
        Of the events around their levels; None: independent, as in f5c.
    """
    from f5py.methylation._calls_numba import call_all
    from f5py.methylation._groups_numba import count_all

    is_ok = batch.status == ReadStatus.OK
    reads = longest_first(batch.read_length, is_ok)
    motifs = motif.codes(False), motif.codes(True)
    n_groups, n_sites = np.zeros(len(batch), np.int64), np.zeros(len(batch), np.int64)
    seconds = pool.run(count_all, reads, batch.alignments, motifs, n_groups, n_sites, order=batch.number)
    batch.calls = Calls.of(offsets_of(n_sites if per_site else n_groups), np.zeros(len(batch), np.int64))
    inputs = batch.view, model.levels, motifs, noise_terms(noise)
    prior = -1.0 if agreement is None else float(agreement)
    sites = batch.calls
    if per_site:
        batch.calls = Calls.of(offsets_of(n_groups), np.zeros(len(batch), np.int64))
    if elsewhere is not None and (others := elsewhere.scores(batch, motifs)).any():
        if per_site:
            return seconds + call_sites_with(batch, elsewhere, others, model, motifs, (*inputs, prior, sites), pool)
        return seconds + call_with(batch, elsewhere, others, model, motifs, inputs, pool)
    if not per_site:
        return seconds + pool.run(call_all, reads, *inputs, batch.calls, order=batch.number)
    seconds += call_sites(batch, reads, (*inputs, prior, sites), pool)
    batch.calls = sites
    return seconds


def call_with(
    batch: ReadBatch,
    elsewhere: ScoreOffload,
    others: NDArray[np.bool_],
    model: PoreModel,
    motifs: tuple[MotifCodes, MotifCodes],
    inputs: tuple,
    pool: WorkerPool,
) -> float:
    """Score the groups of the reads `others` elsewhere, and the rest here."""
    from f5py.methylation._calls_numba import call_all

    listing, seconds = _list_groups(batch, elsewhere, others, model, motifs, pool)
    others = others & ~elsewhere.begin_scores(batch, model, motifs, listing, inputs[-1])
    here = _all_but(batch, others)
    seconds += pool.run(call_all, here, *inputs, batch.calls, order=batch.number)
    return seconds + elsewhere.fetch_scores(batch.calls)


def call_sites(batch: ReadBatch, reads: NDArray[np.int64], inputs: tuple, pool: WorkerPool) -> float:
    """Call the sites of `reads`; return the seconds of all threads.

    The windows of all reads are ordered together, so that packs contain similar ones.

    Parameters
    ----------
    batch : ReadBatch
        With arrays for the calls of groups.
    inputs : tuple
        View of the batch, the model's levels, motifs, noise, prior and the calls of sites to fill.
    """
    from f5py.methylation._group_list_numba import call_and_list
    from f5py.methylation._site_list_numba import (
        WINDOWS_PER_TASK,
        CalledGroups,
        OrderedWindows,
        SiteLikelihoods,
        finish_sites,
        list_sites,
        order_sites,
        score_sites,
    )

    view, model, motifs, noise, prior, calls = inputs
    groups, number = batch.calls, batch.number
    n_groups, n_sites = len(groups.first), len(calls.first)
    listing, sites = _empty_listing(n_groups), _empty_sites(n_groups, n_sites)
    listed = CalledGroups(groups, listing)
    seconds = pool.run(call_and_list, reads, view, model, motifs, noise, listing, groups, order=number)
    span = _span(model.k, noise)
    seconds += pool.run(list_sites, reads, batch.alignments, motifs, span, listed, sites, calls, order=number)
    n_windows = int((groups.sites[elements_of(groups.offsets[reads], groups.n[reads])] > 1).sum())
    ordered = OrderedWindows(listed, sites, np.empty(n_windows, np.int64), np.empty(n_groups, np.int64))
    seconds += pool.run(order_sites, np.zeros(1, np.int64), reads, model.k, ordered, order=number)
    found = SiteLikelihoods(np.empty((n_sites, 2)), np.empty(n_groups))
    tasks = np.arange(-(-n_windows // WINDOWS_PER_TASK))
    seconds += pool.run(score_sites, tasks, view, model, motifs, noise, ordered, found, order=number)
    return seconds + pool.run(finish_sites, reads, groups, sites, found, noise, prior, calls, order=number)


def _empty_sites(n_groups: int, n_sites: int) -> SiteListing:
    from f5py.methylation._site_list_numba import SiteListing

    return SiteListing(np.empty(n_sites, np.int32), np.empty(n_groups, np.int64), np.empty(n_groups, np.int32))


def _span(k: int, noise: NoiseTerms | None) -> int:
    """Return the number of bases that determine a density: with correlated noise those of two k-mers."""
    return k if noise is None else k + 1


def call_sites_with(
    batch: ReadBatch,
    elsewhere: ScoreOffload,
    others: NDArray[np.bool_],
    model: PoreModel,
    motifs: tuple[MotifCodes, MotifCodes],
    inputs: tuple,
    pool: WorkerPool,
) -> float:
    """Score the sites of the reads `others` elsewhere, and the rest here.

    Parameters
    ----------
    batch : ReadBatch
        With arrays for the calls of groups, replaced by those of sites.
    inputs : tuple
        As for `call_sites`.
    others
        As for `call_with`.
    """
    from f5py.methylation._site_list_numba import CalledGroups, SiteLikelihoods, finish_sites, list_sites

    *_, noise, prior, calls = inputs
    groups, number = batch.calls, batch.number
    listing, seconds = _list_groups(batch, elsewhere, others, model, motifs, pool)
    others = others & ~elsewhere.begin_scores(batch, model, motifs, listing, noise)
    sites = _empty_sites(len(groups.first), len(calls.first))
    reads = longest_first(batch.read_length, others)
    lists = motifs, _span(model.k, noise), CalledGroups(groups, listing), sites, calls
    seconds += pool.run(list_sites, reads, batch.alignments, *lists, order=number)
    others = others & ~elsewhere.begin_sites(batch, others, sites, calls)
    seconds += call_sites(batch, _all_but(batch, others), inputs, pool)
    seconds += elsewhere.fetch_scores(groups)
    found = SiteLikelihoods(*elsewhere.fetch_sites())
    seconds += pool.run(finish_sites, np.flatnonzero(others), groups, sites, found, noise, prior, calls, order=number)
    batch.calls = calls
    return seconds


def list_groups(batch: ReadBatch, motif: Motif, k: int, pool: WorkerPool) -> tuple[GroupWindows, float]:
    """List the groups of all reads with `ReadStatus.OK` in the batch's calls, without scores.

    Return their windows and the seconds of all threads.
    """
    from f5py.methylation._group_list_numba import list_all
    from f5py.methylation._groups_numba import count_all

    reads = longest_first(batch.read_length, batch.status == ReadStatus.OK)
    motifs = motif.codes(False), motif.codes(True)
    n_groups, n_sites = np.zeros(len(batch), np.int64), np.zeros(len(batch), np.int64)
    seconds = pool.run(count_all, reads, batch.alignments, motifs, n_groups, n_sites, order=batch.number)
    batch.calls = Calls.of(offsets_of(n_groups), np.zeros(len(batch), np.int64))
    listing = _empty_listing(len(batch.calls.first))
    seconds += pool.run(list_all, reads, batch.view, k, motifs, batch.calls, listing, order=batch.number)
    return listing, seconds


def _list_groups(
    batch: ReadBatch,
    elsewhere: ScoreOffload,
    reads: NDArray[np.bool_],
    model: PoreModel,
    motifs: tuple[MotifCodes, MotifCodes],
    pool: WorkerPool,
) -> tuple[GroupWindows, float]:
    """List the groups of `reads`, scored elsewhere, in the batch's calls; return the threads' seconds too."""
    from f5py.methylation._group_list_numba import list_all

    listing = _empty_listing(len(batch.calls.first))
    order = longest_first(batch.read_length, reads)
    inputs = elsewhere.view(batch), model.k, motifs, batch.calls, listing
    return listing, pool.run(list_all, order, *inputs, order=batch.number)


def _empty_listing(n_groups: int) -> GroupWindows:
    from f5py.methylation._group_list_numba import GroupWindows

    return GroupWindows(*(np.empty(n_groups, np.int32) for _ in GroupWindows._fields))


def _all_but(batch: ReadBatch, others: NDArray[np.bool_]) -> NDArray[np.int64]:
    return longest_first(batch.read_length, (batch.status == ReadStatus.OK) & ~others)
