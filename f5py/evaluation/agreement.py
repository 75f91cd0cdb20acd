"""Agreement of calls and frequencies with the truth."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.evaluation.known_sites import KnownSites
from f5py.evaluation.ratios import VALUES, RatioCounts, area_of_counts, probability, roc_of_counts
from f5py.io.bounds import POSITION_BITS

_BINS = 10
_COVERAGE = (1, 5, 10, 20, 50)
_FREQUENCY = np.linspace(0, 1, 6)


class LabelledRatios:
    """Ratios of calls at methylated and unmethylated sites."""

    def __init__(self) -> None:
        self.methylated, self.unmethylated = RatioCounts(), RatioCounts()

    @property
    def n(self) -> int:
        """Number of calls."""
        return self.methylated.n + self.unmethylated.n

    def add(self, ratios: NDArray[np.floating], states: NDArray[np.integer]) -> None:
        """Count calls with a state of 1 or 0."""
        self.methylated.add(ratios[states == 1])
        self.unmethylated.add(ratios[states == 0])

    def area(self) -> float | None:
        """Compute the area under the ROC curve; None if a state does not occur."""
        return area_of_counts(self.methylated.counts, self.unmethylated.counts)

    def roc(self) -> dict[str, list[float]]:
        """Return points of the ROC curve."""
        return roc_of_counts(self.methylated.counts, self.unmethylated.counts)

    def at(self, threshold: float) -> dict[str, float | None]:
        """Compute accuracy, precision, recall, specificity and F1 of the calls beyond a threshold."""
        true, false = self.methylated.methylated(threshold), self.unmethylated.methylated(threshold)
        missed, rejected = self.methylated.unmethylated(threshold), self.unmethylated.unmethylated(threshold)
        kept = true + false + missed + rejected
        precision, recall = _share(true, true + false), _share(true, true + missed)
        f1 = None if not true or precision is None or recall is None else 2 / (1 / precision + 1 / recall)
        return {
            "threshold": threshold,
            "calls": kept,
            "share_of_calls": _share(kept, self.n),
            "accuracy": _share(true + rejected, kept),
            "precision": precision,
            "recall": recall,
            "specificity": _share(rejected, rejected + false),
            "f1": f1,
        }

    def reliability(self, prior: float, is_balanced: bool = False, calibration: float = 1.0) -> dict[str, Any] | None:
        """Compare predicted probabilities, in tenths, with the observed methylation.

        `prior` and `calibration` are those of `f5py.evaluation.ratios.probability`. If `is_balanced`, the classes are
        weighted by the prior, and the result is None if one is empty.
        """
        predicted = probability(VALUES, prior, calibration)
        weights = (1.0, 1.0)
        if is_balanced:
            if not self.methylated.n or not self.unmethylated.n:
                return None
            weights = (prior * self.n / self.methylated.n, (1 - prior) * self.n / self.unmethylated.n)
        methylated, unmethylated = weights[0] * self.methylated.counts, weights[1] * self.unmethylated.counts
        total = methylated + unmethylated
        at = np.minimum((predicted * _BINS).astype(np.int64), _BINS - 1)
        n, expected, observed = (np.bincount(at, values, _BINS) for values in (total, predicted * total, methylated))
        used = n > 0
        error = np.abs(expected - observed)[used].sum() / max(n.sum(), 1)
        brier = ((1 - predicted) ** 2 * methylated + predicted**2 * unmethylated).sum() / max(n.sum(), 1)
        return {
            "prior": prior,
            "calibration": calibration,
            "expected_calibration_error": float(error),
            "brier_score": float(brier),
            "from": (np.flatnonzero(used) / _BINS).tolist(),
            "calls": n[used].round().astype(np.int64).tolist(),
            "predicted": (expected[used] / n[used]).tolist(),
            "observed": (observed[used] / n[used]).tolist(),
        }


def compare_frequencies(
    called: NDArray[np.float64], true: NDArray[np.float64], coverage: NDArray[np.float64]
) -> dict[str, Any]:
    """Compare called and true frequencies of sites, also by coverage and fifths of the truth.

    Measures are means, Pearson's ``correlation`` (None without variation), root mean square (``rms``) and mean absolute
    difference.
    """
    ends = (*_COVERAGE[1:], np.inf)
    fifth = np.clip(np.digitize(true, _FREQUENCY) - 1, 0, len(_FREQUENCY) - 2)
    return {
        **_agreement(called, true),
        "by_coverage": [
            {"from": low, "to": None if end == np.inf else int(end) - 1, **_agreement(called[chosen], true[chosen])}
            for low, end in zip(_COVERAGE, ends, strict=True)
            if (chosen := (coverage >= low) & (coverage < end)).any()
        ],
        "by_frequency": [
            {"from": float(_FREQUENCY[i].round(2)), **_agreement(called[fifth == i], true[fifth == i])}
            for i in range(len(_FREQUENCY) - 1)
            if (fifth == i).any()
        ],
    }


def _agreement(called: NDArray[np.float64], true: NDArray[np.float64]) -> dict[str, Any]:
    if not len(true):
        return {"sites": 0, "true": None, "called": None, "correlation": None, "rms": None, "difference": None}
    varies = len(true) > 1 and called.std() > 0 and true.std() > 0
    return {
        "sites": len(true),
        "true": float(true.mean()),
        "called": float(called.mean()),
        "correlation": float(np.corrcoef(called, true)[0, 1]) if varies else None,
        "rms": float(np.sqrt(((called - true) ** 2).mean())),
        "difference": float(np.abs(called - true).mean()),
    }


def shared_sites(called: KnownSites, true: KnownSites) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices in both of their shared sites."""
    index = {name: i for i, name in enumerate(true.contigs)}
    code = np.array([index.get(name, len(index)) for name in called.contigs], np.int64)
    position = called.place & (1 << POSITION_BITS) - 1
    place = code[called.place >> POSITION_BITS] << POSITION_BITS | position
    _, of_called, of_true = np.intersect1d(place, true.place, return_indices=True)
    return of_called, of_true


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
