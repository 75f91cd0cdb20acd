"""Levels from the sums of a round: weighted moments, shrunk towards a prior of similar k-mers."""

import numpy as np
from numpy.typing import NDArray

from f5py.core.kmers import kmer_digits
from f5py.pore_model.model import PoreModel
from f5py.training.sums import plain_ranks

#: A k-mer with that many events teaches the prior.
WELL_SEEN = 100
#: Smallest standard deviation of a level, in pA.
MIN_STDV = 1.0
_MOST_PLAIN = 0.2
#: What a k-mer has of its own, against what places and bases explain: both are some picoampere.
_RIDGE = 1.0
_CHUNK = 1 << 17


def _methylated_features(codes: NDArray[np.int8], methylated: int, canonical: int) -> NDArray[np.float32]:
    """Encode the places of methylated bases, with one base before and two after each; summed over a k-mer."""
    k = codes.shape[1]
    is_m = codes == methylated
    plain = np.where(is_m, canonical, codes)
    parts = [is_m.astype(np.float32)]
    padded = np.pad(plain, ((0, 0), (1, 2)), constant_values=-1)
    for near in (padded[:, :k], padded[:, 3:]):
        parts += [(is_m & (near == letter)).astype(np.float32) for letter in range(5) if letter != methylated]
    return np.concatenate(parts, axis=1)


def _ridge(
    ranks: NDArray[np.int64], target: NDArray[np.float64], weight: NDArray[np.float64], features_of, n_features: int
) -> NDArray[np.float64]:
    """Coefficients of a ridge regression of `target` on the features of those k-mers."""
    weight = weight / (weight + WELL_SEEN)  # more events say no more of other k-mers
    gram, moment = np.zeros((n_features, n_features)), np.zeros(n_features)
    for begin in range(0, len(ranks), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        features = features_of(ranks[part]).astype(np.float64)
        weighted = features * weight[part, None]
        gram += weighted.T @ features
        moment += weighted.T @ target[part]
    return np.linalg.solve(gram + _RIDGE * np.eye(n_features), moment).astype(np.float64)


def _predicted(n_kmers: int, features_of, beta: NDArray[np.float64], which: NDArray[np.bool_]) -> NDArray[np.float64]:
    found = np.zeros(n_kmers)
    ranks = np.flatnonzero(which)
    for begin in range(0, len(ranks), _CHUNK):
        part = ranks[begin : begin + _CHUNK]
        found[part] = features_of(part) @ beta
    return found


def _anchored(
    level: NDArray[np.float64], start: NDArray[np.float64], weight: NDArray[np.float64]
) -> tuple[float, float]:
    """Fit offset and gain of `level` against `start` by least squares.

    Reads are scaled by the levels estimated from them, so that both might drift together.
    """
    if weight.sum() <= 0 or (weight > 0).sum() < 10:
        return 0.0, 1.0
    gain, offset = np.polyfit(start, level, 1, w=np.sqrt(weight))
    return (float(offset), float(gain)) if gain > 0.5 else (0.0, 1.0)


def _in_units_of(
    first_stdv: NDArray[np.float64], variance: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Scale variances so that standard deviations equal, on average, those of the first model.

    A read's var is estimated against them, so their common size is arbitrary, and would shrink from round to round.
    """
    counted = (weight > 0) & (variance > 0)
    if not counted.any():
        return variance
    ratio = np.log(first_stdv[counted]) - 0.5 * np.log(variance[counted])
    return variance * np.exp(2 * np.average(ratio, weights=weight[counted]))


def updated(
    model: PoreModel, start: PoreModel, sums: NDArray[np.float64], share: NDArray[np.float64], canonical: str,
    prior_events: float, trains_plain: bool, trains_methylated: bool,
) -> tuple[PoreModel, NDArray[np.float64], float]:  # fmt: skip
    """Estimate the levels from the `sums` of `f5py.training.sums.KmerSums`.

    Return the model of the round, the shares of plain events of methylated k-mers, and the mean absolute change of the
    levels by numbers of events, in pA, of plain or of methylated k-mers, whichever is larger.

    The prior of a plain k-mer is its level in `start` plus the effects of bases by place, learned from well-seen
    k-mers; that of a methylated one is its plain k-mer's level plus the effects of the places of M and their neighbors.
    It counts as `prior_events`.
    """
    k, n_letters, n_kmers = model.k, len(model.alphabet), len(model.level_mean)
    plain = plain_ranks(k, model.alphabet, canonical)
    is_plain = plain < 0
    weight = sums[:, 0]
    seen = weight > 0
    mean = np.divide(sums[:, 1], weight, out=np.zeros(n_kmers), where=seen)
    spread = np.divide(
        sums[:, 4] - 2 * mean * sums[:, 3] + mean**2 * sums[:, 2], weight, out=np.zeros(n_kmers), where=seen
    )
    first_mean, first_stdv = start.level_mean.astype(np.float64), start.level_stdv.astype(np.float64)
    level, stdv = model.level_mean.astype(np.float64), model.level_stdv.astype(np.float64)

    # The common size of standard deviations says nothing, so this may come before a change of gain, too.
    spread = _in_units_of(first_stdv, spread, weight * (is_plain & (weight >= WELL_SEEN)))

    if trains_plain:
        teachers = np.flatnonzero(is_plain & (weight >= WELL_SEEN))
        prior = first_mean.copy()
        if len(teachers) > 10:
            offset, gain = _anchored(mean[teachers], first_mean[teachers], weight[teachers])
            mean = (mean - offset) / gain

            def features(ranks: NDArray[np.int64]) -> NDArray[np.float32]:
                """Encode k-mers as a constant, and which base is where."""
                encoded = np.ones((len(ranks), 1 + k * (n_letters - 1)), np.float32)
                is_base = kmer_digits(ranks, k, n_letters)[:, :, None] == np.arange(1, n_letters)
                encoded[:, 1:] = is_base.reshape(len(ranks), -1)
                return encoded

            beta = _ridge(
                teachers, mean[teachers] - first_mean[teachers], weight[teachers], features, 1 + k * (n_letters - 1)
            )
            prior += _predicted(n_kmers, features, beta, is_plain)
        level, stdv = _shrunk(level, stdv, is_plain, (weight, mean, spread), (prior, first_stdv), prior_events)

    if trains_methylated:
        of_plain = np.maximum(plain, 0)
        teachers = np.flatnonzero(~is_plain & (weight >= WELL_SEEN))
        prior, prior_stdv = level[of_plain], stdv[of_plain]
        if len(teachers) > 10:
            methylated, replaced = model.alphabet.index("M"), model.alphabet.index(canonical)

            def of_m(ranks: NDArray[np.int64]) -> NDArray[np.float32]:
                return _methylated_features(kmer_digits(ranks, k, n_letters), methylated, replaced)

            beta = _ridge(teachers, (mean - prior)[teachers], weight[teachers], of_m, k * 9)
            prior = prior + _predicted(n_kmers, of_m, beta, ~is_plain)
        elif start.alphabet == model.alphabet:
            prior = prior + (first_mean - first_mean[of_plain])
        level, stdv = _shrunk(level, stdv, ~is_plain, (weight, mean, spread), (prior, prior_stdv), prior_events)
        total = weight + sums[:, 5]
        # shares of few events say little: those of all methylated k-mers together count as some more
        overall = sums[~is_plain, 5].sum() / max(total[~is_plain].sum(), 1.0)
        found = (sums[:, 5] + prior_events * overall) / np.maximum(total + prior_events, 1e-9)
        share = np.where(is_plain, 0.0, np.minimum(found, _MOST_PLAIN))
    new = PoreModel(model.name, k, model.alphabet, level.astype(np.float32), stdv.astype(np.float32))
    change = np.abs(level - model.level_mean) * weight
    kinds = (change[these].sum() / max(weight[these].sum(), 1.0) for these in (is_plain, ~is_plain))
    return new, share, float(max(kinds))


def _shrunk(
    level: NDArray[np.float64], stdv: NDArray[np.float64], which: NDArray[np.bool_],
    seen: tuple[NDArray[np.float64], ...], prior: tuple[NDArray[np.float64], ...], prior_events: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
    """Levels and standard deviations of `which` between observed and prior ones."""
    weight, mean, spread = seen
    prior_mean, prior_stdv = prior
    of_prior = np.where(weight + prior_events > 0, prior_events, 1.0)  # k-mers without an event have the prior
    total = weight + of_prior
    new_level = (weight * mean + of_prior * prior_mean) / total
    variance = (weight * spread + of_prior * prior_stdv**2) / total
    new_stdv = np.sqrt(np.maximum(variance, MIN_STDV**2))
    return np.where(which, new_level, level), np.where(which, new_stdv, stdv)
