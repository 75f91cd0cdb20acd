"""Histograms of log-likelihood ratios in hundredths, the resolution of tables of calls."""

from __future__ import annotations

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
