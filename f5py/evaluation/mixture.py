"""Estimates of the errors of calls without known truth, from their log-likelihood ratios.

* By the ratios. With the share p of methylated sites, a correct ratio r gives methylation the probability
  ``logistic(r + logit(p))``; p is the mean of these. A call is wrong with the probability of the other state.
* By their distribution. ``arcsinh(r / s)``, which shortens the tails, is a mixture of two normal components, fitted by
  expectation maximization. They must fit, lie on both sides of 0 and apart, and both hold calls.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from f5py.evaluation.ratios import VALUES, RatioCounts, probability

#: Values of s to try: ratios of well separated states are nearly normal without a transformation.
_SOFTNESS = (4.0, 16.0)
_MAX_ROUNDS = 1000
_SETTLED = 1e-7
_LEAST_SEPARATION = 2.0  # Ashman's D
_LEAST_WEIGHT = 0.02  # of the smaller component
_LEAST_CALLS = 200
_GREATEST_MISFIT = 0.05  # Kolmogorov's distance


@dataclass(frozen=True)
class Mixture:
    """Normal components of unmethylated and methylated calls, on the scale ``arcsinh(ratio / softness)``."""

    weight: tuple[float, float]  # share of the calls
    mean: tuple[float, float]
    stdv: tuple[float, float]
    misfit: float  # Kolmogorov's distance between the ratios and the mixture
    problem: str | None  # reason why the components are not states
    softness: float = _SOFTNESS[0]

    @property
    def centres(self) -> tuple[float, float]:
        """Means of the components as ratios."""
        low, high = (self.softness * math.sinh(mean) for mean in self.mean)
        return low, high

    @property
    def separation(self) -> float:
        """Distance of the means in standard deviations (Ashman's D)."""
        return _separation(self.mean, self.stdv)

    def error_rate(self, threshold: float) -> float:
        """Estimate the share of wrong calls beyond a threshold."""
        reach = math.asinh(threshold / self.softness)
        below = [_normal((-reach - mean) / stdv) for mean, stdv in zip(self.mean, self.stdv, strict=True)]
        above = [_normal((mean - reach) / stdv) for mean, stdv in zip(self.mean, self.stdv, strict=True)]
        wrong = self.weight[0] * above[0] + self.weight[1] * below[1]
        kept = sum(weight * (low + high) for weight, low, high in zip(self.weight, below, above, strict=True))
        return wrong / kept if kept > 0 else 0.0


def fit_mixture(ratios: RatioCounts) -> Mixture | None:
    """Fit two components; None for too few calls."""
    used = np.flatnonzero(ratios.counts)
    counts = ratios.counts[used].astype(np.float64)
    n = counts.sum()
    if n < _LEAST_CALLS or len(used) < 10:
        return None
    fits = [_fit(VALUES[used], counts, softness) for softness in _SOFTNESS]
    return min(fits, key=lambda fit: (fit.problem is not None, fit.misfit))


def _fit(ratios: NDArray[np.floating], counts: NDArray[np.float64], softness: float) -> Mixture:
    n = counts.sum()
    x = np.arcsinh(ratios / softness)
    cumulative = np.cumsum(counts) / n
    low, high = x[np.searchsorted(cumulative, (0.02, 0.98))]
    weight = np.array([[0.5], [0.5]])
    mean = np.array([[min(0.7 * low, -0.1)], [max(0.7 * high, 0.1)]])
    stdv = np.full((2, 1), max(0.5 * _spread(x, counts), 0.05))
    for _ in range(_MAX_ROUNDS):
        # one row of values for each component
        density = weight * np.exp(-0.5 * ((x - mean) / stdv) ** 2) / stdv + 1e-300
        share = density / (density[0] + density[1]) * counts
        total = _sums(share) + 1e-9
        before, weight = weight, total / total.sum()
        mean = _sums(share * x) / total
        stdv = np.sqrt(_sums(share * (x - mean) ** 2) / total + 1e-4)
        if np.abs(weight - before).max() < _SETTLED:
            break
    order = np.argsort(mean[:, 0])
    weight, mean, stdv = weight[order, 0], mean[order, 0], stdv[order, 0]
    ends = x + 0.005 / np.hypot(ratios, softness)  # upper bounds of the hundredths
    fitted = sum(weight[i] * np.array([_normal(z) for z in (ends - mean[i]) / stdv[i]]) for i in range(2))
    misfit = float(np.abs(fitted - cumulative).max())
    weights, means, stdvs = ((float(values[0]), float(values[1])) for values in (weight, mean, stdv))
    return Mixture(weights, means, stdvs, misfit, _problem(weights, means, stdvs, misfit), softness)


def _sums(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum each row in order; shape (2, 1)."""
    return np.cumsum(rows, axis=1)[:, -1:]


def _problem(
    weight: tuple[float, float], mean: tuple[float, float], stdv: tuple[float, float], misfit: float
) -> str | None:
    """Return the reason why the components are not states."""
    if misfit > _GREATEST_MISFIT:
        return f"two components do not fit the ratios (difference of the distributions: {misfit:.2f})"
    if not mean[0] < 0 < mean[1]:
        return "two components fit the ratios, but lie on the same side of 0"
    if min(weight) < _LEAST_WEIGHT:
        return f"two components fit the ratios, but one holds only {100 * min(weight):.1f} % of the calls"
    if _separation(mean, stdv) < _LEAST_SEPARATION:
        return f"two components fit the ratios, but lie only {_separation(mean, stdv):.1f} standard deviations apart"
    return None


def share_by_ratios(ratios: RatioCounts, calibration: float = 1.0) -> float:
    """Solve for the share of methylated calls that equals the mean of their posterior probabilities."""
    counts = ratios.counts / max(ratios.n, 1)
    share = 0.5
    for _ in range(_MAX_ROUNDS):
        before, share = share, float((probability(VALUES, share, calibration) * counts).sum())
        share = min(max(share, 1e-6), 1 - 1e-6)
        if abs(share - before) < _SETTLED:
            break
    return share


def error_by_ratios(ratios: RatioCounts, share: float, threshold: float, calibration: float = 1.0) -> float:
    """Compute the expected share of wrong calls beyond a threshold if the calibrated ratios are correct."""
    kept = np.where(np.abs(VALUES) >= threshold - 1e-9, ratios.counts, 0)
    methylated = probability(VALUES, share, calibration)
    wrong = np.where(VALUES > 0, 1 - methylated, methylated)
    return float((kept * wrong).sum() / max(kept.sum(), 1))


def _normal(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def _spread(x: NDArray[np.float64], counts: NDArray[np.float64]) -> float:
    mean = np.average(x, weights=counts)
    return float(np.sqrt(np.average((x - mean) ** 2, weights=counts)))


def _separation(mean: tuple[float, float], stdv: tuple[float, float]) -> float:
    return abs(mean[1] - mean[0]) / math.sqrt((stdv[0] ** 2 + stdv[1] ** 2) / 2)
