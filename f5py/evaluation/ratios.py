"""Log-likelihood ratios of many calls as counts of hundredths, which tables of calls have: memory stays small."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Ratios beyond count as this.
MOST = 100.0
_STEP = 0.01
_HALF = round(MOST / _STEP)
#: The ratios that are counted, ascending.
VALUES = np.arange(-_HALF, _HALF + 1) * _STEP
#: Thresholds that tables show.
THRESHOLDS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0)


class RatioCounts:
    """Numbers of calls by ratio, in hundredths.

    Attributes
    ----------
    counts : int64, shape (20001,)
        Of the ratios in `VALUES`.
    n_undefined : int
        Calls whose ratio is not a number; they are not among the counts.
    """

    def __init__(self) -> None:
        self.counts = np.zeros(2 * _HALF + 1, np.int64)
        self.n_undefined = 0

    @property
    def n(self) -> int:
        """Number of calls."""
        return int(self.counts.sum())

    def add(self, ratios: NDArray[np.floating]) -> None:
        """Count more calls."""
        defined = ~np.isnan(ratios)
        self.n_undefined += int(len(ratios) - defined.sum())
        at = np.rint(np.clip(ratios[defined], -MOST, MOST) / _STEP).astype(np.int64) + _HALF
        self.counts += np.bincount(at, minlength=len(self.counts))

    def methylated(self, threshold: float) -> int:
        """Count calls of a ratio of at least `threshold`, above 0."""
        return int(self.counts[_HALF + max(_steps(threshold), 1) :].sum())

    def unmethylated(self, threshold: float) -> int:
        """Count calls of a ratio of at most minus `threshold`; those of 0 are among them for a threshold of 0."""
        return int(self.counts[: _HALF + 1 - _steps(threshold)].sum())

    def passing(self, threshold: float) -> int:
        """Count calls whose ratio has at least that size."""
        return self.methylated(threshold) + self.unmethylated(threshold)

    def histogram(self, edges: NDArray[np.floating]) -> NDArray[np.int64]:
        """Count calls between edges; the outermost are among those of the first and the last bin."""
        at = np.clip(np.searchsorted(edges, VALUES + _STEP / 2) - 1, 0, len(edges) - 2)
        return np.bincount(at, self.counts, len(edges) - 1).astype(np.int64)


def _steps(threshold: float) -> int:
    """Count the hundredths of the threshold, rounded up."""
    return int(np.ceil(min(threshold, MOST) / _STEP - 1e-6))


def probability(ratios: NDArray[np.floating], prior: float = 0.5, calibration: float = 1.0) -> NDArray[np.float64]:
    """Probability of methylation by the ratio, if sites are methylated with probability `prior` beforehand.

    `calibration` is a factor of the ratios; see `f5py.core.noise.CALIBRATION`.
    """
    return 1 / (1 + np.exp(-np.clip(calibration * ratios + np.log(prior) - np.log1p(-prior), -700, 700)))
