"""Comparison of a trained model with its start on held-out data."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.evaluation.ratios import area_under_curve
from f5py.pore_model.model import PoreModel
from f5py.training.update import WELL_SEEN

#: Ratios of this size and more are called, as by default in f5c's and our tables of frequencies.
THRESHOLD = 2.5
#: Areas and shares of errors that differ by less are taken for the same, and levels in pA.
_SAME, _SAME_LEVEL = 0.001, 0.02
#: A model with a larger share of wrong calls is of no use, if so many calls say so.
_MOST_WRONG, _ENOUGH_CALLS = 0.2, 20
#: If more calls are wrong than right, the labels are probably exchanged; or if the built-in model has a smaller area.
_EXCHANGED, _EXCHANGED_AREA = 0.5, 0.3


class ModelQuality(NamedTuple):
    """Quality of a model on held-out data."""

    calls: int  # calls of known state
    auc: float | None  # area under their ROC curve; None if there are not both states
    error_rate: float | None  # share of wrong calls among those beyond `THRESHOLD`; None without such
    share_of_calls: float | None  # share of calls beyond it
    # root mean square, over events, of the difference between a k-mer's mean level and the model's, in pA
    kmer_deviation: float | None


def quality_of(
    model: PoreModel, labels: NDArray[np.bool_], ratios: NDArray[np.float64], held: NDArray[np.float64]
) -> ModelQuality:
    """Measure the quality of a model by the states and ratios of calls, and by `held` of `KmerSums`."""
    beyond = np.abs(ratios) >= THRESHOLD
    n = held[:, 0]
    seen = n > 0
    off = held[seen, 1] / n[seen] - model.level_mean[seen]
    return ModelQuality(
        len(labels),
        area_under_curve(labels, ratios),
        float(((ratios > 0) != labels)[beyond].mean()) if beyond.any() else None,
        float(beyond.mean()) if len(beyond) else None,
        float(np.sqrt((n[seen] * off**2).sum() / n[seen].sum())) if seen.any() else None,
    )


def compared(start: ModelQuality, trained: ModelQuality) -> str:
    """Return ``better``, ``worse``, ``as good`` or ``not compared`` for the trained model.

    The first measure that differs decides: the area under the ROC curve, the share of wrong calls, the levels of
    k-mers.
    """
    differences = [
        (trained.auc, start.auc, _SAME),
        (start.error_rate, trained.error_rate, _SAME),
        (start.kmer_deviation, trained.kmer_deviation, _SAME_LEVEL),
    ]
    known = [(a - b, same) for a, b, same in differences if a is not None and b is not None]
    if not known:
        return "not compared"
    for gain, same in known:
        if abs(gain) > same:
            return "better" if gain > 0 else "worse"
    return "as good"


def too_many_wrong(start: ModelQuality, trained: ModelQuality, known_auc: float | None) -> str | None:
    """Explain that too many held-out calls are wrong, or that the labels look exchanged.

    None if neither is true, or few calls are held out. `known_auc` is the area under the built-in model's ROC curve.
    """
    wrong = trained.error_rate
    if wrong is None or trained.calls * (trained.share_of_calls or 0.0) < _ENOUGH_CALLS:
        return None
    exchanged = "the labels look exchanged: are methylated reads given as unmethylated ones, or the reverse?"
    words = f"{100 * wrong:.1f} % of the calls beyond {THRESHOLD:g} that were held out are wrong"
    if known_auc is not None and known_auc < _EXCHANGED_AREA:
        return f"{exchanged} The built-in model has an area under the ROC curve of {known_auc:.4f}"
    if wrong <= _MOST_WRONG:
        return None
    if max(wrong, start.error_rate or 0.0) > _EXCHANGED:
        return f"{words}; {exchanged}"
    return f"{words}; give more reads, or controls of which more is known"


def words_of(start: ModelQuality, trained: ModelQuality) -> str:
    """Format both models' figures for messages."""
    parts = []
    if start.auc is not None and trained.auc is not None:
        parts.append(f"area under the ROC curve {start.auc:.4f} with the start model, {trained.auc:.4f} trained")
    if start.error_rate is not None and trained.error_rate is not None:
        parts.append(f"wrong beyond {THRESHOLD:g}: {100 * start.error_rate:.2f} % and {100 * trained.error_rate:.2f} %")
    if start.kmer_deviation is not None and trained.kmer_deviation is not None:
        parts.append(f"levels of k-mers off by {start.kmer_deviation:.2f} and {trained.kmer_deviation:.2f} pA")
    return ", ".join(parts)


def as_report(name: str, start: ModelQuality, trained: ModelQuality) -> dict[str, Any]:
    """Format the comparison for the report."""
    return {
        "verdict": compared(start, trained),
        "start": {"name": name, **start._asdict()},
        "trained": trained._asdict(),
        "threshold": THRESHOLD,
    }


def of_few(report: dict[str, Any]) -> list[str]:
    """Warn of too few data for a report."""
    return [
        f"few data: only {kmers['well_seen']:,} of {kmers['seen']:,} {name} k-mers that occur have at least "
        f"{WELL_SEEN} events; the levels of the others rest on those of similar k-mers"
        for name, kmers in report["kmers"].items()
        if kmers["well_seen"] < 0.5 * kmers["seen"]
    ]
