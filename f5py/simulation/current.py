"""The raw signal of a molecule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.pore_model.model import PoreModel
from f5py.simulation.settings import SimulationSettings


def kmer_ranks(codes: NDArray[np.uint8], k: int, n_letters: int) -> NDArray[np.int64]:
    """Rank of every k-mer of a sequence of alphabet indices; int64, shape (len(codes) - k + 1,)."""
    n_kmers = len(codes) - k + 1
    ranks = np.zeros(n_kmers, dtype=np.int64)
    for i in range(k):
        ranks *= n_letters
        ranks += codes[i : i + n_kmers]
    return ranks


def dwell_times(n: int, mean: float, shape: float, rng: np.random.Generator, sigma: float = 0.0) -> NDArray[np.int64]:
    """Samples that each of `n` k-mers stays in the pore: 1 plus a gamma or lognormal variate, rounded at random.

    The random rounding keeps the mean, which a plain one would change for times as short as these.
    """
    if sigma > 0:
        times = 1 + rng.lognormal(-0.5 * sigma**2, sigma, size=n) * (mean - 1)
    else:
        times = 1 + rng.standard_gamma(shape, size=n) * ((mean - 1) / shape)
    return (times + rng.random(n)).astype(np.int64)


def simulate_signal(
    codes: NDArray[np.uint8],
    model: PoreModel,
    settings: SimulationSettings,
    offset: float,
    slow: bool,
    rng: np.random.Generator,
) -> NDArray[np.int16]:
    """Make the raw samples of one molecule.

    Every k-mer holds the level ``N(level_mean, (level_noise * level_stdv)^2)`` for its dwell time, samples
    scatter around it by `sample_noise`, and the whole read is scaled and shifted.

    Parameters
    ----------
    codes : uint8, shape (n,)
        The molecule from its 5' end, as indices into the model's alphabet; n >= k. RNA passes from its 3' end.
    offset : float
        The digitiser's offset, in raw units.
    slow : bool
        True for a read whose bases take `slow_factor` times longer.

    Returns
    -------
    int16, shape (n_samples,)
        DAC values; ``pA = (raw + offset) * signal_range / digitisation``.
    """
    ranks = kmer_ranks(codes, model.k, len(model.alphabet))
    if settings.chemistry.rna:
        ranks = ranks[::-1]
    mean_dwell = settings.sampling_rate / settings.bases_per_second * (settings.slow_factor if slow else 1.0)
    dwell = dwell_times(len(ranks), mean_dwell, settings.dwell_shape, rng, settings.dwell_sigma)
    level = model.level_mean[ranks].astype(np.float32)
    level += (
        np.float32(settings.level_noise) * model.level_stdv[ranks] * rng.standard_normal(len(ranks), dtype=np.float32)
    )
    shift, scale = rng.normal((0.0, 1.0), (settings.shift_sd, settings.scale_sd))
    to_raw = settings.digitisation / settings.signal_range
    level = ((level * scale + shift) * to_raw - offset).astype(np.float32)
    samples = np.repeat(level, dwell)
    samples += rng.standard_normal(len(samples), dtype=np.float32) * np.float32(settings.sample_noise * scale * to_raw)
    limits = np.iinfo(np.int16)
    return np.rint(np.clip(samples, limits.min, limits.max, out=samples), out=samples).astype(np.int16)
