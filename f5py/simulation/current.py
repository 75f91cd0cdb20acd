"""Simulated raw signal of a molecule."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from f5py.core.noise import FREEDOM_LESS_TWO, STUDENT
from f5py.pore_model.model import PoreModel
from f5py.simulation.settings import SimulationSettings

_NEGLIGIBLE = 1e-4


def kmer_ranks(codes: NDArray[np.uint8], k: int, n_letters: int) -> NDArray[np.int64]:
    """Rank of every k-mer of a sequence of alphabet indices; int64, shape (len(codes) - k + 1,)."""
    n_kmers = len(codes) - k + 1
    ranks = np.zeros(n_kmers, dtype=np.int64)
    for i in range(k):
        ranks *= n_letters
        ranks += codes[i : i + n_kmers]
    return ranks


def dwell_times(n: int, mean: float, shape: float, rng: np.random.Generator, sigma: float = 0.0) -> NDArray[np.int64]:
    """Draw the samples of `n` k-mers: 1 plus a gamma or lognormal variate, randomly rounded.

    The rounding preserves the mean.
    """
    if sigma > 0:
        times = 1 + rng.lognormal(-0.5 * sigma**2, sigma, size=n) * (mean - 1)
    else:
        times = 1 + rng.standard_gamma(shape, size=n) * ((mean - 1) / shape)
    return (times + rng.random(n)).astype(np.int64)


def level_deviations(n: int, settings: SimulationSettings, rng: np.random.Generator) -> NDArray[np.float32]:
    """Draw the deviations of `n` successive bases from their levels, of variance 1; float32.

    With a correlation rho each is rho times the previous one plus ``sqrt(1 - rho ** 2)`` times a new variate, as
    `f5py.core.noise` models the residuals of steps.
    """
    rho = settings.level_correlation
    # Deviations so far back that they no longer count; the first ones would else have a smaller variance.
    n_before = 0 if rho == 0.0 else math.ceil(math.log(_NEGLIGIBLE) / math.log(abs(rho)))
    if settings.level_tails == STUDENT:
        new = rng.standard_t(FREEDOM_LESS_TWO + 2, n + n_before).astype(np.float32)
        new *= np.float32(math.sqrt(FREEDOM_LESS_TWO / (FREEDOM_LESS_TWO + 2)))
    else:
        new = rng.standard_normal(n + n_before, dtype=np.float32)
    if rho == 0.0:
        return new
    weights = (math.sqrt(1 - rho**2) * rho ** np.arange(n_before + 1)).astype(np.float32)
    return np.convolve(new, weights, "valid")


def _sample_noise(n: int, settings: SimulationSettings, rng: np.random.Generator) -> NDArray[np.float32]:
    """Noise of `n` samples, of variance 1; float32."""
    rho = settings.sample_correlation
    if rho == 0.0:
        return rng.standard_normal(n, dtype=np.float32)
    # A variate and a share of the one before, whose correlation is share / (1 + share ** 2).
    share = (1 - math.sqrt(1 - 4 * rho**2)) / (2 * rho)
    new = rng.standard_normal(n + 1, dtype=np.float32)
    return (new[1:] + np.float32(share) * new[:-1]) * np.float32(1 / math.sqrt(1 + share**2))


def simulate_signal(
    codes: NDArray[np.uint8],
    model: PoreModel,
    settings: SimulationSettings,
    offset: float,
    slow: bool,
    rng: np.random.Generator,
) -> NDArray[np.int16]:
    """Simulate the raw samples of one molecule; int16 with ``pA = (raw + offset) * signal_range / digitisation``.

    Every k-mer has level_mean plus `level_noise` times level_stdv times a `level_deviations` for its dwell time;
    samples scatter around it by `sample_noise`, and the whole read is scaled and shifted.

    Parameters
    ----------
    codes : uint8, shape (n,)
        The molecule from its 5' end, as indices into the model's alphabet; n >= k. RNA passes from its 3' end.
    offset : float
        The digitizer's offset, in raw units.
    slow : bool
        The read's bases take `slow_factor` times longer.
    """
    ranks = kmer_ranks(codes, model.k, len(model.alphabet))
    if settings.chemistry.rna:
        ranks = ranks[::-1]
    mean_dwell = settings.sampling_rate / settings.bases_per_second * (settings.slow_factor if slow else 1.0)
    dwell = dwell_times(len(ranks), mean_dwell, settings.dwell_shape, rng, settings.dwell_sigma)
    level = model.level_mean[ranks].astype(np.float32)
    level += np.float32(settings.level_noise) * model.level_stdv[ranks] * level_deviations(len(ranks), settings, rng)
    shift, scale = rng.normal((0.0, 1.0), (settings.shift_sd, settings.scale_sd))
    to_raw = settings.digitisation / settings.signal_range
    level = ((level * scale + shift) * to_raw - offset).astype(np.float32)
    samples = np.repeat(level, dwell)
    samples += _sample_noise(len(samples), settings, rng) * np.float32(settings.sample_noise * scale * to_raw)
    limits = np.iinfo(np.int16)
    return np.rint(np.clip(samples, limits.min, limits.max, out=samples), out=samples).astype(np.int16)
