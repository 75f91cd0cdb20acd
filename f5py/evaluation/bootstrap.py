"""Confidence intervals by bootstrap over reads, as the calls of a read are not independent.

In each sample a read has a Poisson weight of mean 1 from a hash of its name. So intervals are reproducible, calls of a
read may be anywhere, and memory does not grow with the calls.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.evaluation.ratios import area_of_counts, probability

SAMPLES = 200
_TAIL = 0.025  # of each side of a 95 % interval
#: Resolution and bound of counted ratios.
_STEP, _MOST = 0.05, 20.0
_HALF = round(_MOST / _STEP)
_VALUES = np.arange(-_HALF, _HALF + 1) * _STEP
_BINS = 10
_CUMULATIVE = np.cumsum([math.exp(-1) / math.factorial(i) for i in range(8)])
_NAME_BYTES = 64


def read_weights(names: NDArray[Any], samples: int = SAMPLES) -> NDArray[np.uint8]:
    """Compute the weights of reads in each sample, shape (n, samples)."""
    encoded = np.char.encode(names.astype(str), "utf-8").astype(f"S{_NAME_BYTES}")
    words = encoded.view(np.uint64).reshape(len(names), _NAME_BYTES // 8)
    value = np.zeros(len(names), np.uint64)
    for column in words.T:
        value = _mixed(value ^ column)
    of_samples = np.arange(1, samples + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    uniform = (_mixed(value[:, None] + of_samples) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return np.searchsorted(_CUMULATIVE, uniform, "right").astype(np.uint8)


def _mixed(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix bits as splitmix64."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


class ReadBootstrap:
    """Counts of the ratios of calls with a known state, in every sample."""

    def __init__(self) -> None:
        self._counts = np.zeros((SAMPLES, 2, len(_VALUES)), np.int64)

    def add(self, names: Any, ratios: NDArray[np.floating], states: NDArray[np.integer]) -> None:
        """Count calls with a state of 0 or 1 and a ratio; `names` of their reads are a `pyarrow.Array`."""
        encoded = names.dictionary_encode()
        weights = read_weights(encoded.dictionary.to_numpy(zero_copy_only=False))
        used = ((states == 0) | (states == 1)) & ~np.isnan(ratios)
        read = encoded.indices.to_numpy(zero_copy_only=False)[used]
        at = np.rint(np.clip(ratios[used], -_MOST, _MOST) / _STEP).astype(np.int64) + _HALF
        at += states[used].astype(np.int64) * len(_VALUES)
        for sample in range(SAMPLES):
            found = np.bincount(at, weights[read, sample], 2 * len(_VALUES))
            self._counts[sample] += found.astype(np.int64).reshape(2, -1)

    def intervals(self, prior: float, threshold: float, calibration: float = 1.0) -> dict[str, Any]:
        """Compute intervals of the area under the ROC curve, calibration error, and shares kept and wrong.

        The latter two are of a threshold. An interval is None if a sample lacks the measure.
        """
        found: dict[str, list[float | None]] = {"auc": [], "expected_calibration_error": [], "kept": [], "wrong": []}
        predicted = probability(_VALUES, prior, calibration)
        bins = np.minimum((predicted * _BINS).astype(np.int64), _BINS - 1)
        kept = np.abs(_VALUES) >= threshold - 1e-9
        for unmethylated, methylated in self._counts:
            total = unmethylated + methylated
            n = total.sum()
            found["auc"].append(area_of_counts(methylated, unmethylated))
            error = np.abs(np.bincount(bins, predicted * total - methylated, _BINS)).sum()
            found["expected_calibration_error"].append(float(error / n) if n else None)
            n_kept = total[kept].sum()
            wrong = methylated[kept & (_VALUES <= 0)].sum() + unmethylated[kept & (_VALUES > 0)].sum()
            found["kept"].append(float(n_kept / n) if n else None)
            found["wrong"].append(float(wrong / n_kept) if n_kept else None)
        return {"samples": SAMPLES, "threshold": threshold} | {name: _bounds(values) for name, values in found.items()}


def _bounds(values: list[float | None]) -> list[float] | None:
    defined = [value for value in values if value is not None]
    if len(defined) < len(values):
        return None
    return [float(bound) for bound in np.quantile(defined, (_TAIL, 1 - _TAIL))]
