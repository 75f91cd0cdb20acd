"""Estimation of the events' noise from unlabeled reads: correlations and tails of `f5py.core.noise`.

Maximizes the likelihood that the calls use: that of the events in a window of the reference, summed over all paths
(`f5py.methylation.hmm`). Residuals along a best path would not do, as that path was chosen to make them small.
The windows have no site of unknown methylation, so nothing is tuned to calls.

The likelihood is computed at the knots of a grid of both correlations, for either kind of tails. Between the knots its
logarithm is the polynomial through them, searched in steps of a hundredth.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.motifs import Motif, parse_motif
from f5py.core.noise import GAUSSIAN, INDEPENDENT, STUDENT, Noise
from f5py.core.offsets import used_elements
from f5py.methylation.groups import FLANK

#: Correlations at which the likelihood is computed.
KNOTS = (0.0, 0.2, 0.4, 0.6, 0.8)
CANDIDATES = tuple(Noise(stay, step, tails) for tails in (GAUSSIAN, STUDENT) for stay, step in product(KNOTS, KNOTS))
#: Windows are those around these sites, which no enzyme that is called here methylates; near ones share a window.
WINDOW_SITE, WINDOW_SEPARATION = "TA:1", 6
#: Fewer windows say nothing.
ENOUGH_WINDOWS = 300
_STEPS = np.round(np.arange(0.0, KNOTS[-1] + 1e-9, 0.01), 2)


class NoiseEstimate(NamedTuple):
    """Estimate of the noise from windows."""

    noise: Noise  # correlations in hundredths
    n_windows: int
    gain: float  # what the log-likelihood of a window gains on average against independent noise
    gain_of_tails: float  # what it gains against the best noise of the other tails


def window_motif() -> Motif:
    """Return the motif at the center of windows."""
    motif = parse_motif(WINDOW_SITE)
    return Motif(motif.name, motif.pattern, motif.offset, None, WINDOW_SEPARATION)


def plain_windows(batch: ReadBatch, hidden: Sequence[Motif]) -> NDArray[np.bool_]:
    """Return the mask of used call slots without a site of the motifs `hidden` in their window."""
    reference = batch.reference
    n_sites = np.zeros(len(reference) + 1, np.int64)
    for motif in hidden:
        for codes in (motif.codes(False), motif.codes(True)):
            bits = codes.letter_bits[reference]
            length = len(codes.masks)
            is_site = np.ones(max(len(reference) - length + 1, 0), np.bool_)
            for i, mask in enumerate(codes.masks):
                is_site &= bits[i : i + len(is_site)] & mask != 0
            n_sites[1 : len(is_site) + 1] += is_site
    before = np.cumsum(n_sites)
    used = used_elements(batch.calls.offsets, batch.calls.n)
    read = np.repeat(np.arange(len(batch)), batch.calls.n)
    start = batch.reference_offsets[read] - batch.reference_start[read]
    longest = max((len(motif.pattern) for motif in hidden), default=1)
    first = np.maximum(start + batch.calls.first[used] - FLANK - longest + 1, 0)
    end = np.minimum(start + batch.calls.last[used] + FLANK + 1, len(reference))
    found: NDArray[np.bool_] = before[end] == before[first]
    return found


def estimate(likelihoods: NDArray[np.float64], n_windows: int) -> NoiseEstimate | None:
    """Find the most likely constants by the windows' sums for `CANDIDATES`; None for too few windows."""
    if n_windows < ENOUGH_WINDOWS:
        return None
    best = {}
    for tails, surface in zip((GAUSSIAN, STUDENT), fine_grid(likelihoods), strict=True):
        stay, step = np.unravel_index(int(surface.argmax()), surface.shape)
        best[tails] = float(surface[stay, step]), Noise(float(_STEPS[stay]), float(_STEPS[step]), tails)
    likelihood, noise = max(best.values())
    other = min(best.values())[0]
    alone = float(likelihoods[CANDIDATES.index(INDEPENDENT)])
    return NoiseEstimate(noise, n_windows, (likelihood - alone) / n_windows, (likelihood - other) / n_windows)


def fine_grid(likelihoods: NDArray[np.float64]) -> NDArray[np.float64]:
    """Interpolate between the knots; float64, shape (2, 81, 81): tails, stay and step in hundredths."""
    factors = ([(_STEPS - other) / (knot - other) for other in KNOTS if other != knot] for knot in KNOTS)
    weights = np.stack([np.prod(of_knot, axis=0) for of_knot in factors], axis=1)
    found: NDArray[np.float64] = weights @ likelihoods.reshape(2, len(KNOTS), len(KNOTS)) @ weights.T
    return found
