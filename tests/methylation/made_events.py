"""Events of windows with noise of known correlations, and their likelihoods."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from f5py.core.noise import STUDENT, Noise
from f5py.methylation.hmm import NEVER, Emissions, ForwardScratch, forward_lanes, noise_terms, work_size

from ..compiled import compiled

forward_lanes, work_size = map(compiled, (forward_lanes, work_size))

LANES = 16
EVENTS_PER_BASE = 1.9


def made_events(rng: np.random.Generator, mean: np.ndarray, stdv: np.ndarray, noise: Noise) -> np.ndarray:
    """Events along k-mers of these levels, each with one event or more; float32."""
    repeats = rng.geometric(1 / EVENTS_PER_BASE, len(mean))
    place = np.repeat(np.arange(len(mean)), repeats)
    new = rng.standard_t(7, len(place)) * math.sqrt(5 / 7) if noise.tails == STUDENT else rng.normal(size=len(place))
    z = np.empty(len(place))
    z[0] = new[0]
    for i in range(1, len(place)):
        rho = noise.stay if place[i] == place[i - 1] else noise.step
        z[i] = rho * z[i - 1] + math.sqrt(1 - rho**2) * new[i]
    return (mean[place] + stdv[place] * z).astype(np.float32)


class Pack(NamedTuple):
    """Windows whose likelihoods are computed side by side, as `forward_lanes` takes them.

    Attributes
    ----------
    n_events, n_kmers : int64, shape (LANES,)
    means : float32, shape (LANES * max(n_events),)
    emissions : Emissions
    n : int
        Number of windows; the last one fills the other lanes.
    """

    n_events: np.ndarray
    n_kmers: np.ndarray
    means: np.ndarray
    emissions: Emissions
    n: int


def packed(problems: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> list[Pack]:
    """Put (events, mean, stdv), all of the same number of k-mers, side by side."""
    packs = []
    for first in range(0, len(problems), LANES):
        some = problems[first : first + LANES]
        n = len(some)
        some = some + [some[-1]] * (LANES - n)
        n_events = np.array([len(events) for events, _, _ in some], np.int64)
        n_kmers = np.full(LANES, len(some[0][1]), np.int64)
        at = np.arange(n_events.max())
        x = np.array([events[np.minimum(at, len(events) - 1)] for events, _, _ in some]).T
        mean, stdv = (np.array([one[i] for one in some]).T for i in (1, 2))
        stretch = math.sqrt(0.5 * math.log2(math.e)) / stdv
        arrays = (
            np.ascontiguousarray(values, np.float32).ravel()
            for values in (x, stretch, -mean * stretch, (-0.918938 - np.log(stdv)) * math.log2(math.e))
        )
        packs.append(Pack(n_events, n_kmers, next(arrays), Emissions(*arrays), n))
    return packs


def likelihoods(packs: list[Pack], noise: Noise) -> np.ndarray:
    """Logarithms of those of all windows."""
    terms = noise_terms(noise)
    found = []
    for pack in packs:
        scores = np.empty(LANES, np.float32)
        rows = len(pack.means) // LANES
        scratch = ForwardScratch(
            np.empty(work_size(pack.n_kmers[0]), np.float32), *np.empty((2, rows * LANES), np.float32)
        )
        forward_lanes(
            pack.means, pack.emissions, pack.n_events, pack.n_kmers, np.full(LANES, EVENTS_PER_BASE), terms, scratch,
            scores,
        )  # fmt: skip
        found.append(scores[: pack.n])
    joined = np.concatenate(found)
    assert joined.min() > NEVER
    return joined.astype(np.float64)
