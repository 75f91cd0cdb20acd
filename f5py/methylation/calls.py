"""Methylation calls: log-likelihoods of the groups of sites along a read's alignment.

Sites at most 10 bases apart (`Motif.separation`) form a group, methylated or not as a whole. A group's window has 10
bases of flank on both sides. Its events are scored under the window's reference bases as they are, and with every site
methylated. The difference of the two log-likelihoods is the call. `f5py.methylation.per_site` has the calls of single
sites.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import BatchView, Calls, ReadBatch, ReadStatus
from f5py.core.motifs import Motif, MotifCodes
from f5py.core.noise import Noise
from f5py.core.offsets import elements_of, offsets_of
from f5py.methylation.group_scores import Scores, blocks_of, score_groups
from f5py.methylation.groups import GroupWindows, count_all, list_all
from f5py.methylation.hmm import NoiseTerms, noise_terms
from f5py.methylation.per_site import (
    WINDOWS_PER_TASK,
    SiteLikelihoods,
    SiteListing,
    finish_sites,
    list_sites,
    score_sites,
    sort_windows,
)
from f5py.pore_model.model import PoreModel
from f5py.threads.pool import WorkerPool, longest_first


class ScoreOffload(Protocol):
    """Scorer of a part of a batch's groups in parallel to the CPU's threads."""

    def scores(self, batch: ReadBatch, motifs: tuple[MotifCodes, MotifCodes]) -> NDArray[np.bool_]:
        """Select its reads."""

    def view(self, batch: ReadBatch) -> BatchView:
        """Return the batch's arrays for the search for groups; those of other reads may be missing."""

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

    def fetch_scores(self, calls: Calls) -> float:
        """Wait for the log-likelihoods and fill them; return the seconds of all threads."""

    def begin_sites(self, batch: ReadBatch, sites: SiteListing) -> NDArray[np.bool_]:
        """Start to score the listed sites of groups already begun.

        Return the reads that it declines.
        """

    def fetch_sites(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Wait for the sites' likelihoods and the groups' exponents, the input of `finish_sites`."""


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
    motifs, terms, number = _codes(motif), noise_terms(noise), batch.number
    n_sites, seconds = _count(batch, motifs, pool)
    groups, windows = batch.calls, _empty_windows(batch.calls)
    lists = model.k, motifs, groups, windows
    calls = Calls.of(offsets_of(n_sites), np.zeros(len(batch), np.int64)) if per_site else Calls.none()
    n_groups, n_slots = len(groups.first), len(calls.first)
    sites = SiteListing(np.empty(n_slots, np.int32), np.empty(n_groups, np.int64), np.empty(n_groups, np.int32))
    # with correlated noise two k-mers determine a density
    site_lists = batch.alignments, motifs, model.k if terms is None else model.k + 1, groups, windows, sites, calls

    others = np.zeros(len(batch), np.bool_) if elsewhere is None else elsewhere.scores(batch, motifs)
    is_shared = bool(others.any())
    if elsewhere is not None and is_shared:
        reads = longest_first(batch.read_length, others)
        seconds += pool.run(list_all, reads, elsewhere.view(batch), *lists, order=number)
        others = others & ~elsewhere.begin_scores(batch, model, motifs, windows, terms)
        if per_site:
            reads = longest_first(batch.read_length, others)
            seconds += pool.run(list_sites, reads, *site_lists, order=number)
            others = others & ~elsewhere.begin_sites(batch, sites)

    reads = longest_first(batch.read_length, (batch.status == ReadStatus.OK) & ~others)
    seconds += pool.run(list_all, reads, batch.view, *lists, order=number)
    slots, of_slots = elements_of(groups.offsets[reads], groups.n[reads]), np.repeat(reads, groups.n[reads])
    inputs = batch.view, model.levels, motifs, terms
    scores = Scores(groups.methylated, groups.unmethylated)
    seconds += pool.run(
        score_groups, *blocks_of(len(slots)), *inputs, per_site, slots, of_slots, windows, scores, order=number
    )
    if not per_site:
        return seconds + (elsewhere.fetch_scores(groups) if elsewhere is not None and is_shared else 0.0)
    seconds += pool.run(list_sites, reads, *site_lists, order=number)
    of_read = np.empty(n_groups, np.int64)
    of_read[slots] = of_slots
    # of all reads together, so that packs contain similar windows
    several = sort_windows(slots[groups.sites[slots] > 1], groups, windows, sites)
    found = SiteLikelihoods(np.empty((n_slots, 2)), np.empty(n_groups))
    tasks = np.arange(-(-len(several) // WINDOWS_PER_TASK))
    seconds += pool.run(score_sites, tasks, *inputs, groups, windows, sites, several, of_read, found, order=number)
    prior = -1.0 if agreement is None else float(agreement)
    seconds += pool.run(finish_sites, reads, groups, sites, found, terms, prior, calls, order=number)
    if elsewhere is not None and is_shared:
        seconds += elsewhere.fetch_scores(groups)
        found = SiteLikelihoods(*elsewhere.fetch_sites())
        reads = np.flatnonzero(others)
        seconds += pool.run(finish_sites, reads, groups, sites, found, terms, prior, calls, order=number)
    batch.calls = calls
    return seconds


def list_groups(batch: ReadBatch, motif: Motif, k: int, pool: WorkerPool) -> tuple[GroupWindows, float]:
    """List the groups of all reads with `ReadStatus.OK` in the batch's calls, without scores.

    Return their windows and the seconds of all threads.
    """
    motifs = _codes(motif)
    _, seconds = _count(batch, motifs, pool)
    windows = _empty_windows(batch.calls)
    reads = longest_first(batch.read_length, batch.status == ReadStatus.OK)
    return windows, seconds + pool.run(list_all, reads, batch.view, k, motifs, batch.calls, windows, order=batch.number)


def _codes(motif: Motif) -> tuple[MotifCodes, MotifCodes]:
    return motif.codes(False), motif.codes(True)


def _count(
    batch: ReadBatch, motifs: tuple[MotifCodes, MotifCodes], pool: WorkerPool
) -> tuple[NDArray[np.int64], float]:
    """Make room for the batch's groups; return the numbers of sites by read, and the threads' seconds."""
    reads = longest_first(batch.read_length, batch.status == ReadStatus.OK)
    n_groups, n_sites = np.zeros(len(batch), np.int64), np.zeros(len(batch), np.int64)
    seconds = pool.run(count_all, reads, batch.alignments, motifs, n_groups, n_sites, order=batch.number)
    batch.calls = Calls.of(offsets_of(n_groups), np.zeros(len(batch), np.int64))
    return n_sites, seconds


def _empty_windows(groups: Calls) -> GroupWindows:
    return GroupWindows(*(np.empty(len(groups.first), np.int32) for _ in GroupWindows._fields))
