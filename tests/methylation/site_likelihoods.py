"""Likelihoods of the sites of one window, by the kernel that scores those of reads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from f5py.core.motifs import Motif
from f5py.core.noise import Noise
from f5py.methylation.group_scores import fill_plain
from f5py.methylation.groups import is_site, sites_per_kmer
from f5py.methylation.hmm import log_base, log_of_share, noise_terms
from f5py.methylation.per_site import SiteLikelihoods
from f5py.methylation.site_cells import make_arena
from f5py.methylation.site_hmm import SiteWindows, score_windows
from f5py.pore_model.model import PoreModel

from ..compiled import compiled

fill_plain = compiled(fill_plain)
is_site = compiled(is_site)
sites_per_kmer = compiled(sites_per_kmer)
log_base = compiled(log_base)
log_of_share = compiled(log_of_share)
make_arena = compiled(make_arena)
score_windows = compiled(score_windows)


class ReadWindows(NamedTuple):
    """Windows of one read."""

    # modified: sites; the others are those of `SingleSiteWindows`
    codes: NDArray[np.uint8]
    modified: NDArray[np.int64]
    base: ArrayLike
    n_bases: ArrayLike
    site: ArrayLike
    n_sites: ArrayLike
    begin: ArrayLike
    end: ArrayLike

    def shares(
        self,
        events: NDArray[np.float32],
        fit: tuple[float, float, float, float],
        reverse: bool,
        model: PoreModel,
        noise: Noise | None,
    ) -> tuple[SiteLikelihoods, NDArray[np.int64]]:
        """Find what `score_windows` does, and the widths; `fit` is shift, scale, var and events per base."""
        base, n_bases, site, n_sites, begin, end = (np.array(values, np.int64) for values in self[2:])
        n = len(base)
        span = model.k if noise is None else model.k + 1
        width = np.array(
            [
                sites_per_kmer(self.modified[first : first + count], span)
                for first, count in zip(site, n_sites, strict=True)
            ]
        )
        fits = *(np.full(n, value, np.float32) for value in fit[:3]), np.full(n, fit[3])
        windows = SiteWindows(
            self.codes, self.modified, base, n_bases, site, n_sites, begin, end, width, np.full(n, reverse), *fits
        )
        shares = SiteLikelihoods(np.empty((len(self.modified), 2)), np.empty(n))
        score_windows(windows, events, model.levels, noise_terms(noise), make_arena(0), shares)
        return shares, width

    def likelihoods(self, *arguments: Any) -> NDArray[np.float32]:
        """Return logarithms of what `shares` finds: those with each site methylated, and with it unmethylated."""
        shares, widths = self.shares(*arguments)
        found = np.empty((2, len(self.modified)), np.float32)
        for window, width in enumerate(widths):
            base = log_base(shares.exponents[window], width)
            for site in range(self.site[window], self.site[window] + self.n_sites[window]):
                found[:, site] = [log_of_share(base, share) for share in shares.sites[site]]
        return found


def site_likelihoods(
    window: bytes,
    events: ArrayLike,
    motif: Motif,
    model: PoreModel,
    reverse: bool = False,
    scaling: tuple[float, float, float] = (0.0, 1.0, 1.0),
    events_per_base: float = 2.0,
    noise: Noise | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Score every site in a window, all states of the other sites being equally probable.

    `window` has upper-case bases of the reference's forward strand; `scaling` is shift, scale and var. Returns
    ``ln P(events | s_i = 1)`` and ``ln P(events | s_i = 0)``, sites in ascending order.
    """

    segment = np.frombuffer(window, np.uint8)
    codes = motif.codes(reverse)
    modified = np.array(
        [position + codes.offset for position in range(len(segment)) if is_site(segment, position, codes)], np.int64
    )
    x = np.ascontiguousarray(events, np.float32)
    assert len(modified)
    assert modified[0] >= model.k
    plain = np.empty(len(segment), np.uint8)
    fill_plain(segment, 0, len(segment), codes, reverse, plain)
    windows = ReadWindows(plain, modified, [0], [len(segment)], [0], [len(modified)], [0], [len(x) - 1])
    methylated, unmethylated = windows.likelihoods(x, (*scaling, events_per_base), reverse, model, noise)
    return methylated, unmethylated
