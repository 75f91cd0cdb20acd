"""Histograms of log-likelihood ratios in hundredths, the resolution of tables of calls."""

import numpy as np
from numpy.typing import NDArray

#: Bound of counted ratios.
MOST = 100.0
_STEP = 0.01
_HALF = round(MOST / _STEP)
#: Ratios of the bins.
VALUES = np.arange(-_HALF, _HALF + 1) * _STEP
#: Thresholds of reports.
THRESHOLDS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0)
_MOST_POINTS = 200


def area_under_curve(states: NDArray[np.bool_], scores: NDArray[np.floating]) -> float | None:
    """Compute the area under the ROC curve, or None if a state does not occur."""
    return area_of_counts(*_counts(states, scores))


def area_of_counts(methylated: NDArray[np.integer], unmethylated: NDArray[np.integer]) -> float | None:
    """Compute the area under the ROC curve from counts by ascending score; ties count half."""
    n, m = int(methylated.sum()), int(unmethylated.sum())
    if not n or not m:
        return None
    lower = np.cumsum(unmethylated) - unmethylated
    return float((methylated * (lower + 0.5 * unmethylated)).sum() / n / m)


def roc_points(states: NDArray[np.bool_], scores: NDArray[np.floating]) -> dict[str, list[float]]:
    """Return points of the ROC curve: rates of false and true positives, ascending."""
    return roc_of_counts(*_counts(states, scores))


def roc_of_counts(methylated: NDArray[np.integer], unmethylated: NDArray[np.integer]) -> dict[str, list[float]]:
    """Return points of the ROC curve from counts by ascending score."""
    used = np.flatnonzero(methylated + unmethylated)[::-1]
    true = np.concatenate([[0], np.cumsum(methylated[used])])
    false = np.concatenate([[0], np.cumsum(unmethylated[used])])
    points = np.unique(np.append(np.arange(len(true))[:: max(len(used) // _MOST_POINTS, 1)], len(used)))
    return {
        "false_positive_rate": (false[points] / max(false[-1], 1)).round(5).tolist(),
        "true_positive_rate": (true[points] / max(true[-1], 1)).round(5).tolist(),
    }


def _counts(states: NDArray[np.bool_], scores: NDArray[np.floating]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count methylated and unmethylated calls by ascending score."""
    distinct, which = np.unique(scores, return_inverse=True)
    n = len(distinct)
    return np.bincount(which[states], minlength=n), np.bincount(which[~states], minlength=n)


class RatioCounts:
    """Numbers of calls by ratio."""

    def __init__(self) -> None:
        self.counts = np.zeros(2 * _HALF + 1, np.int64)  # of `VALUES`
        self.n_undefined = 0  # calls with the ratio NaN, which are not counted

    @property
    def n(self) -> int:
        """Number of calls."""
        return int(self.counts.sum())

    def add(self, ratios: NDArray[np.floating]) -> None:
        """Count calls."""
        defined = ~np.isnan(ratios)
        self.n_undefined += int(len(ratios) - defined.sum())
        at = np.rint(np.clip(ratios[defined], -MOST, MOST) / _STEP).astype(np.int64) + _HALF
        self.counts += np.bincount(at, minlength=len(self.counts))

    def methylated(self, threshold: float) -> int:
        """Count calls with a ratio above 0 of at least `threshold`."""
        return int(self.counts[_HALF + max(_steps(threshold), 1) :].sum())

    def unmethylated(self, threshold: float) -> int:
        """Count calls with a ratio of at most minus `threshold`."""
        return int(self.counts[: _HALF + 1 - _steps(threshold)].sum())

    def passing(self, threshold: float) -> int:
        """Count calls with an absolute ratio of at least `threshold`."""
        return self.methylated(threshold) + self.unmethylated(threshold)

    def histogram(self, edges: NDArray[np.floating]) -> NDArray[np.int64]:
        """Count calls between edges; the first and last bins include calls beyond."""
        at = np.clip(np.searchsorted(edges, VALUES + _STEP / 2) - 1, 0, len(edges) - 2)
        return np.bincount(at, self.counts, len(edges) - 1).astype(np.int64)


def _steps(threshold: float) -> int:
    """Convert a threshold to hundredths, rounded up."""
    return int(np.ceil(min(threshold, MOST) / _STEP - 1e-6))


def probability(ratios: NDArray[np.floating], prior: float = 0.5, calibration: float = 1.0) -> NDArray[np.float64]:
    """Compute the probability of methylation; for `calibration` see `f5py.core.noise.CALIBRATION`."""
    return 1 / (1 + np.exp(-np.clip(calibration * ratios + np.log(prior) - np.log1p(-prior), -700, 700)))
