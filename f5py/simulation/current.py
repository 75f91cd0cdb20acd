"""Simulated raw signal and basecalls of a molecule, with their true alignment."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from f5py.core.noise import FREEDOM_LESS_TWO, STUDENT
from f5py.pore_model.model import PoreModel
from f5py.simulation.settings import SimulationSettings

_NEGLIGIBLE = 1e-4
MATCH, INSERTION, DELETION = 0, 1, 2  # operation numbers of SAM; a mismatch is a MATCH
_MISMATCH_SHARE, _INSERTION_SHARE = 0.40, 0.25
_WRONG_QUALITY = 6.0
_QUALITY_SD = 3.0


@dataclass(frozen=True)
class Basecall:
    """A basecalled read in the molecule's own direction."""

    codes: NDArray[np.uint8]  # shape (n,): called bases, 0 A, 1 C, 2 G, 3 T
    qualities: NDArray[np.uint8]  # shape (n,): Phred scores
    # operations, lengths: shape (m,): CIGAR along the molecule (to be reversed for the reverse strand)
    operations: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    edit_distance: int  # mismatches plus inserted plus deleted bases


def basecall(molecule: NDArray[np.uint8], error_rate: float, rng: np.random.Generator) -> Basecall:
    """Call the bases of a molecule (codes 0 to 3, at least one) with `error_rate` errors per base.

    The first and the last base are always right, and an insertion never touches a deletion, so that the
    CIGAR starts and ends with M and has no adjacent I and D.
    """
    n = len(molecule)
    draw = rng.random(n)
    draw[0] = draw[-1] = 1.0
    to_mismatch = _MISMATCH_SHARE * error_rate
    to_insertion = to_mismatch + _INSERTION_SHARE * error_rate
    mismatch = draw < to_mismatch
    inserted = (draw >= to_mismatch) & (draw < to_insertion)  # before this base
    deleted = (draw >= to_insertion) & (draw < error_rate)
    inserted[1:] &= ~deleted[:-1]
    run = np.where(inserted, rng.geometric(0.7, size=n), 0)

    called = molecule.copy()
    called[mismatch] = (called[mismatch] + rng.integers(1, 4, size=int(mismatch.sum()))) & 3
    # one cell per CIGAR column: the inserted bases of a molecule's base, then the base itself
    cells = run + 1
    ends = np.cumsum(cells)
    n_cells = int(ends[-1])
    operation = np.full(n_cells, INSERTION, dtype=np.uint8)
    operation[ends - 1] = np.where(deleted, DELETION, MATCH)
    base = rng.integers(0, 4, size=n_cells).astype(np.uint8)
    base[ends - 1] = called
    wrong = operation == INSERTION
    wrong[ends - 1] = mismatch
    present = operation != DELETION

    right_quality = min(-10 * np.log10(max(error_rate, 1e-4)), 40.0)
    quality = np.where(wrong[present], _WRONG_QUALITY, right_quality)
    quality = quality + _QUALITY_SD * rng.standard_normal(len(quality))
    change = np.flatnonzero(np.diff(operation)) + 1
    bounds = np.concatenate(([0], change, [n_cells]))
    return Basecall(
        codes=base[present],
        qualities=np.clip(quality, 1, 50).astype(np.uint8),
        operations=operation[bounds[:-1]],
        lengths=np.diff(bounds),
        edit_distance=int(mismatch.sum() + run.sum() + deleted.sum()),
    )


def kmer_ranks(codes: NDArray[np.uint8], k: int, n_letters: int) -> NDArray[np.int64]:
    """Rank of every k-mer of a sequence of alphabet indices; int64, shape (len(codes) - k + 1,)."""
    ranks: NDArray[np.int64] = np.convolve(codes, n_letters ** np.arange(k), "valid")
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
    codes: NDArray[np.uint8], model: PoreModel, settings: SimulationSettings, offset: float, slow: bool,
    rng: np.random.Generator,
) -> NDArray[np.int16]:  # fmt: skip
    """Simulate the raw samples of one molecule; ``pA = (raw + offset) * signal_range / digitisation``.

    Every k-mer has level_mean plus `level_noise` times level_stdv times a `level_deviations` for its dwell time;
    samples scatter around it by `sample_noise`, and the whole read is scaled and shifted.

    `codes` are the molecule from its 5' end, as indices into the model's alphabet; RNA passes from its 3' end. `offset`
    is the digitizer's, in raw units.
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
