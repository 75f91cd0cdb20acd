"""Fits of ``f5py train --unlabeled`` to simulated reads, and calls of R10.4.1 reads that deviate from the model.

    python benchmarks/shifts.py FOLDER                # FOLDER gets the simulated reads

Reads of three sets of shifts that are not the built-in ones are fitted with 250, 1,000 and 3,000 groups, and others
with 3,000: without methylation, with all or a few sites methylated, or with the built-in shifts. Calls are those of
reads of ``simulate --realistic`` with true shifts by place, or by place and the base before; half of the sites are
methylated. Writes a Markdown report to results/shifts.md, or where --output says.
"""

from __future__ import annotations

import argparse
import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from report import ROOT

import f5py
from f5py.core.noise import CALIBRATION
from f5py.errors import F5pyError
from f5py.evaluation.ratios import area_under_curve
from f5py.pore_model.model import R10_CPG_SHIFTS, Shifts
from f5py.pore_model.shift_file import shift_text

_NUCLEOTIDE = "r10.4.1_400bps.nucleotide.9mer"
_TRUTHS = (
    (0.5, 0.5, -0.5, 0.0, -3.0, -7.0, -16.0, -5.0, 2.0),
    (1.0, -0.5, 0.0, 0.5, 0.0, -13.0, -10.0, -1.0, 0.0),
    (0.0, 0.0, 1.0, -1.5, -3.5, -9.5, -9.0, -5.0, 2.5),
)
_MIXED = "beta:8:2*3,0.05"
#: Shifts that are too small, means over few k-mers; and a dependence on the base before.
_TOO_SMALL = Shifts.of_places((0.0, 0.0, 0.0, 0.0, 0.0, -2.3, -7.9, 0.75, 1.8))
_BASE_BEFORE = Shifts(R10_CPG_SHIFTS.by_place, (0.0, 0.0, 0.0, 0.0, 0.5, -1.0, 2.0, 3.5, 0.0))
_FACTORS = np.round(np.arange(0.6, 2.6, 0.02), 2)
_BINS, _SAMPLES = 10, 200


def written(folder: Path, name: str, shifts: Shifts) -> Path:
    """Write a short model file."""
    path = folder / f"{name}.model"
    path.write_text(shift_text(_NUCLEOTIDE, shifts, ([0.0] * 9, [0.0] * 9), None, "made"))
    return path


def simulated(folder: Path, **settings: Any) -> dict[str, Any]:
    """Simulate reads, unless that is done; return the arguments that name them."""
    size = {"n_reads": 60, "genome_length": 300_000, "gc": 0.41, "fixed_length": 12_000, "site_rates": _MIXED}
    if not (folder / "truth.tsv").exists():
        f5py.simulate(output=folder, pore="r10", signal_format="blow5", **size | settings)
    return {"genome": folder / "ref.fa", "slow5": folder / "reads.blow5", "gpu": "off"}


def fit_row(name: str, folder: Path, truth: tuple[float, ...], groups: int, **settings: Any) -> str:
    """Simulate, unless that is done, and fit; return a row of the table."""
    inputs = simulated(folder, **settings)
    began = time.process_time()
    verdict, shifts, share, before = "", None, None, ""
    for force in (False, True):
        try:
            found = f5py.train(
                **inputs, unlabeled=[folder / "reads.bam"], groups=groups, output=folder / "fit.model", force=force
            )
        except F5pyError as problem:
            verdict = "refused: " + str(problem).split(" (")[0]
            continue
        verdict = verdict or found.verdict
        shifts, share = found.model.shifts, found.share
        before = "taken" if found.report["second_stage"]["taken"] else ""
        break
    seconds = time.process_time() - began
    assert shifts is not None
    assert share is not None
    error = np.array(shifts.by_place) - truth
    counts = pd.read_csv(folder / "truth.tsv", sep="\t")
    true_share = counts.n_methylated.sum() / counts.n_reads.sum()
    return (
        f"| {name} | {groups:,} | {error[5]:+.2f} | {error[6]:+.2f} | {np.sqrt((error**2).mean()):.2f} | {share:.2f} | "
        f"{true_share:.2f} | {before} | {verdict} | {seconds:.0f} |"
    )


def labeled(folder: Path, inputs: dict[str, Any], **options: Any) -> tuple[NDArray, NDArray, NDArray]:
    """Call; return the ratios of groups or sites of one state, these states, and the numbers of the reads."""
    calls = f5py.call_methylation(**inputs, bam=folder / "reads.bam", returns="pandas", accurate=True, **options)
    truth = pd.read_csv(folder / "truth_reads.tsv", sep="\t")
    numbers = {name: i for i, name in enumerate(truth.read_name.unique())}
    read = truth.read_name.map(numbers).to_numpy()
    place = read << 32 | truth.position.to_numpy()
    order = np.argsort(place)
    place, before = place[order], np.concatenate([[0], np.cumsum(truth.methylated.to_numpy()[order])])
    called = calls.read_name.astype(str).map(numbers).to_numpy()
    first = np.searchsorted(place, called << 32 | calls.start.to_numpy(), side="left")
    last = np.searchsorted(place, called << 32 | calls.end.to_numpy(), side="right")
    share = (before[last] - before[first]) / np.maximum(last - first, 1)
    known = (last > first) & ((share == 0) | (share == 1))
    return calls.log_lik_ratio.to_numpy(np.float64)[known], share[known] == 1, called[known]


def error_of(ratios: NDArray, states: NDArray, weights: NDArray, factor: float) -> float:
    """Compute the expected calibration error of the probabilities of methylation."""
    p = 1 / (1 + np.exp(-np.clip(ratios * factor, -500, 500)))
    at = np.minimum((p * _BINS).astype(np.int64), _BINS - 1)
    return float(np.abs(np.bincount(at, weights * (p - states), _BINS)).sum() / weights.sum())


def call_row(names: str, ratios: NDArray, states: NDArray, reads: NDArray) -> str:
    """Write a row of the table of calls."""
    rng = np.random.default_rng(1)
    _, reads = np.unique(reads, return_inverse=True)
    members = [np.flatnonzero(reads == read) for read in range(reads.max() + 1)]
    areas = []
    for _ in range(_SAMPLES):
        drawn = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        areas.append(area_under_curve(states[drawn], ratios[drawn]))
    low, high = np.quantile(np.array(areas, float), (0.025, 0.975))
    weights = np.where(states, 0.5 / states.mean(), 0.5 / (1 - states.mean()))
    beyond = np.abs(ratios) > 2
    loss = [float((weights * np.logaddexp(0, np.where(states, -1, 1) * ratios * factor)).sum()) for factor in _FACTORS]
    best = float(_FACTORS[int(np.argmin(loss))])
    constant = CALIBRATION["r10"]
    return (
        f"| {names} | {area_under_curve(states, ratios):.4f} [{low:.4f}, {high:.4f}] | {beyond.mean():.1%} | "
        f"{((ratios > 0) != states)[beyond].mean():.2%} | {best:.2f} | {error_of(ratios, states, weights, 1.0):.3f} | "
        f"{error_of(ratios, states, weights, constant):.3f} | {error_of(ratios, states, weights, best):.3f} |"
    )


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "shifts.md")
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    fits = []
    for number, truth in enumerate(_TRUTHS, 1):
        for groups in (250, 1000, 3000):
            words = ",".join(map(str, truth))
            fits.append(fit_row(f"shifts {words}", folder / f"truth{number}", truth, groups, shifts=words, seed=number))
            print(fits[-1], flush=True)
    own = R10_CPG_SHIFTS.by_place
    settings: dict[str, dict[str, Any]] = {
        "built-in shifts": {"seed": 11},
        "built-in shifts, realistic": {"seed": 12, "realistic": True},
        "first of these shifts, realistic": {"seed": 13, "realistic": True, "shifts": ",".join(map(str, _TRUTHS[0]))},
        "built-in shifts and the base before, realistic": {
            "seed": 14, "realistic": True, "shifts": str(written(folder, "before", _BASE_BEFORE)),
        },
        "nothing methylated": {"seed": 15, "site_rates": "0"},
        "nothing methylated, levels off by 2.1 pA": {"seed": 16, "site_rates": "0", "level_bias": 2.1},
        "all methylated": {"seed": 17, "site_rates": "1"},
        "5 % methylated": {"seed": 18, "site_rates": "0.05"},
    }  # fmt: skip
    for name, options in settings.items():
        truth = _TRUTHS[0] if name.startswith("first") else own
        fits.append(fit_row(name, folder / name.replace(" ", "_"), truth, 3000, **options))
        print(fits[-1], flush=True)
    models: dict[str, Path | None] = {"too small": written(folder, "too_small", _TOO_SMALL), "built-in": None}
    calls = []
    for name, truth in (("built-in shifts", None), ("and the base before", folder / "before.model")):
        place = folder / f"calls{name}".replace(" ", "_")
        mixed = {"site_rates": "0,1", "n_reads": 80, "genome_length": 1_000_000, "realistic": True, "seed": 21}
        inputs = simulated(place, **mixed, **({} if truth is None else {"shifts": truth}))
        fitted = place / "fit.model"
        f5py.train(**inputs, unlabeled=[place / "reads.bam"], output=fitted)
        for kind, model in {**models, "fitted": fitted}.items():
            for per_site in (False, True):
                for rescale in (False, True):
                    options = {"per_site": per_site, "rescale": rescale, "meth_model": model}
                    unit, scaling = "sites" if per_site else "groups", "yes" if rescale else "no"
                    row = call_row(f"{name} | {kind} | {unit} | {scaling}", *labeled(place, inputs, **options))
                    calls.append(row)
                    print(row, flush=True)
    report = [
        "# Shifts of methylated R10.4.1 k-mers",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, f5py {f5py.__version__}; 60 simulated reads of 12,000 "
        "bases. Errors of places 5 and 6 and root mean squares of all nine in pA; of refused fits they are those with "
        "--force. Seconds of processor time are of the whole run, or of both.",
        "",
        "| reads | groups | place 5 | place 6 | all | share | true share | base before | verdict | seconds |",
        "|---|---:|---:|---:|---:|---:|---:|---|---|---:|",
        *fits,
        "",
        "Calls with --accurate of 80 reads of simulate --realistic, half of the sites methylated. Intervals are of "
        "95 %, by bootstrap over reads; best factor and calibration errors with half of the weight at methylated ones.",
        "",
        "| true shifts | model | unit | rescaled | area under the ROC curve | beyond 2 | of these wrong | best factor "
        f"| error as it is | with {CALIBRATION['r10']:g} | with the best factor |",
        "|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|",
        *calls,
    ]
    arguments.output.write_text("\n".join(report) + "\n")
    print(*report, sep="\n")


if __name__ == "__main__":
    main()
