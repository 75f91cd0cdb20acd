"""Events of windows with noise of known correlations, and their likelihoods."""

from __future__ import annotations

import math

import numpy as np

from f5py.core.noise import STUDENT, Noise
from f5py.methylation._hmm_numba import NEVER, Emissions, Scratch, forward_lanes, work_size
from f5py.methylation._noise_numba import forward_correlated
from f5py.methylation.correlated import terms_of

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


def likelihoods(problems: list[tuple[np.ndarray, np.ndarray, np.ndarray]], noise: Noise) -> np.ndarray:
    """Logarithms of those of (events, mean, stdv), all of the same number of k-mers; sixteen at a time."""
    terms = terms_of(noise)
    found = np.empty(len(problems))
    scores = np.empty(LANES, np.float32)
    for first in range(0, len(problems), LANES):
        pack = problems[first : first + LANES]
        pack = pack + [pack[-1]] * (LANES - len(pack))
        n_events = np.array([len(events) for events, _, _ in pack], np.int64)
        n_kmers = np.full(LANES, len(pack[0][1]), np.int64)
        rows, columns = n_events.max(), n_kmers[0]
        x = np.array([np.pad(events, (0, rows - len(events)), "edge") for events, _, _ in pack]).T
        mean, stdv = (np.array([one[i] for one in pack]).T for i in (1, 2))
        stretch = math.sqrt(0.5 * math.log2(math.e)) / stdv
        arrays = (
            np.ascontiguousarray(values, np.float32).ravel()
            for values in (x, stretch, -mean * stretch, (-0.918938 - np.log(stdv)) * math.log2(math.e))
        )
        scratch = Scratch(np.empty(work_size(columns), np.float32), *np.empty((2, rows * LANES), np.float32))
        forward = forward_lanes if terms is None else forward_correlated
        more = () if terms is None else (terms,)
        means, emissions = next(arrays), Emissions(*arrays)
        forward(means, emissions, n_events, n_kmers, EVENTS_PER_BASE, *more, scratch, scores)
        found[first : first + LANES] = scores[: len(problems) - first]
    assert found.min() > NEVER
    return found
