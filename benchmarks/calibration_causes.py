"""Causes of too careful or too sure calls of simulated reads: shift, scale, var or the widths of the levels.

    python benchmarks/calibration_causes.py FOLDER            # FOLDER gets the simulated reads

Each simulated read is methylated throughout or not at all. The reads of R9.4 follow the built-in model, those of
R10.4.1 deviate from it as real ones do. CpG groups are called with the scaling of the run, and with parts of it
replaced. These are fitted to the levels of the true states, as by `f5py.methylation.rescale`; and with a factor of
var, which is one of the widths of all levels as well. Both states have a half of the weight. Slope and intercept are
those of a logistic regression of the state on the ratio: with 1 and 0 the ratios are calibrated, and an intercept
above 0 says that more is methylated than they tell. Writes a Markdown report to results/calibration_causes.md, or
where --output says.
"""

from __future__ import annotations

import argparse
import platform
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pysam
from numpy.typing import NDArray
from report import ROOT

import f5py
from f5py.commands import call_methylation as command
from f5py.compute import methylation as stage
from f5py.core.batch import ReadBatch, Scaling
from f5py.core.motifs import Motif
from f5py.core.noise import CALIBRATION
from f5py.core.offsets import used_elements
from f5py.evaluation.agreement import LabelledRatios
from f5py.methylation.calls import call_methylation
from f5py.methylation.rescale import rescale_reads, use_scaling
from f5py.options.signal_commands import CallOptions
from f5py.pore_model.model import PoreModel

#: Logarithms of the odds of methylation that a true state counts as.
_SURE = 100.0
_PORES = {"r9": "R9.4", "r10": "R10.4.1"}


def variants(run: Scaling, truth: Scaling) -> dict[str, Scaling]:
    """Scalings by their true parts."""

    def less(scaling: Scaling, factor: float) -> Scaling:
        return scaling._replace(var=scaling.var * np.float32(factor))

    placed = truth._replace(var=run.var)
    return {
        "as it is": run,
        "true shift": run._replace(shift=truth.shift),
        "true scale": run._replace(scale=truth.scale),
        "true shift and scale": placed,
        "true var": run._replace(var=truth.var),
        "all three true": truth,
        "0.85 times var": less(run, 0.85),
        "0.7 times var": less(run, 0.7),
        "true shift and scale, 0.85 times var": less(placed, 0.85),
        "true shift and scale, 0.7 times var": less(placed, 0.7),
    }


def measured(folder: Path, state_of: NDArray[np.int64]) -> tuple[dict[tuple[str, str], NDArray[np.float64]], str]:
    """Ratios and states by variant and noise; the fits of the scaling, in words."""
    found: dict[tuple[str, str], list[NDArray[np.float64]]] = defaultdict(list)
    fits: list[NDArray[np.float64]] = []
    measured_batches: set[int] = set()

    def call(batch: ReadBatch, motif: Motif, model: PoreModel, pool: Any, *others: Any, **more: Any) -> float:
        seconds = call_methylation(batch, motif, model, pool, *others, **more)
        if batch.number in measured_batches:  # called again, with the other scaling
            return seconds
        measured_batches.add(batch.number)
        read = np.repeat(np.arange(len(batch)), batch.calls.n)
        used = np.flatnonzero(used_elements(batch.calls.offsets, batch.calls.n))
        state = state_of[batch.read_index]
        known = replace(batch)
        methylated, unmethylated = (
            np.where(state == one, np.float32(_SURE), np.float32(0)).repeat(np.diff(batch.calls.offsets))
            for one in (1, 0)
        )
        known.calls = known.calls._replace(methylated=methylated, unmethylated=unmethylated)
        truth, _ = rescale_reads(known, motif, model, pool, 200)
        for name, scaling in variants(batch.scaling, truth).items():
            for noise in ("independent", "correlated"):
                one = replace(batch)
                with use_scaling(one, scaling):
                    call_methylation(one, motif, model, pool, noise=more["noise"] if noise == "correlated" else None)
                ratio = (one.calls.methylated[used] - one.calls.unmethylated[used]).astype(np.float64)
                found[name, noise].append(np.stack([ratio, state[read]]))
        is_ok = batch.calls.n > 0
        fits.append(np.stack([state, *batch.scaling, *truth])[:, is_ok])
        return seconds

    real = stage.call_methylation
    stage.call_methylation = call  # type: ignore[assignment]
    try:
        command.run(
            CallOptions(
                output="/dev/null", threads=2, gpu="off", noise="correlated", rescale=True,
                bam=str(folder / "reads.bam"),
                genome=str(folder / "ref.fa"), slow5=(str(folder / "reads.blow5"),),
            )
        )  # fmt: skip
    finally:
        stage.call_methylation = real  # type: ignore[assignment]
    fit = np.concatenate(fits, axis=1)
    words = []
    for state, name in enumerate(("unmethylated", "methylated")):
        _, shift, scale, var, true_shift, true_scale, true_var = fit[:, fit[0] == state]
        words.append(
            f"{name}: shift {(shift - true_shift).mean():+.2f} pA, scale times {(scale / true_scale).mean():.3f}, var "
            f"{var.mean():.2f}, true {true_var.mean():.2f}"
        )
    return {key: np.concatenate(parts, axis=1) for key, parts in found.items()}, "; ".join(words)


def regression(
    ratio: NDArray[np.float64], state: NDArray[np.float64], weight: NDArray[np.float64]
) -> tuple[float, ...]:
    """Slope and intercept, by Newton's method."""
    x, found = np.stack([ratio, np.ones(len(ratio))]), np.array([1.0, 0.0])
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(found @ x, -500, 500)))
        found = found + np.linalg.solve((x * weight * p * (1 - p)) @ x.T, x @ (weight * (state - p)))
    return tuple(found)


def lines(pore: str, of: str, table: dict[tuple[str, str], NDArray[np.float64]]) -> list[str]:
    """Write a row of the report for each variant and noise."""
    rows = []
    for (name, noise), (ratio, state) in table.items():
        weight = np.where(state == 1, 0.5 / state.mean(), 0.5 / (1 - state.mean()))
        shares = []
        for factor in (1.0, CALIBRATION[pore]):
            p = 1 / (1 + np.exp(-np.clip(factor * ratio, -500, 500)))
            for low in (0.4, 0.5, 0.6):
                here = (p >= low) & (p < low + 0.1)
                shares.append(f"{(weight * state)[here].sum() / weight[here].sum():.0%}")
        counts = LabelledRatios()
        counts.add(ratio, state.astype(np.int64))
        reliability = counts.reliability(0.5, is_balanced=True)
        assert reliability is not None
        slope, intercept = regression(ratio, state, weight)
        calibrated = " | ".join(shares[3:]) if noise == "correlated" else " | | "
        rows.append(
            f"| {of} | {name} | {noise} | {' | '.join(shares[:3])} "
            f"| {reliability['expected_calibration_error']:.3f} | {slope:.2f} | {intercept:+.2f} | {counts.area():.4f} "
            f"| {calibrated} |"
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reads", type=int, default=300)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "calibration_causes.md")
    arguments = parser.parse_args()
    rows, fits = [], []
    for pore, name in _PORES.items():
        folder = arguments.folder / pore
        folder.mkdir(parents=True, exist_ok=True)
        f5py.simulate(
            output=folder, force=True, genome_length=300_000, gc=0.5, seed=42, signal_format="blow5", pore=pore,
            methylation="per-read", fixed_length=4000, n_reads=arguments.reads, realistic=pore == "r10",
        )  # fmt: skip
        truth = pd.read_csv(folder / "truth_reads.tsv", sep="\t").groupby("read_name")["methylated"].max()
        with pysam.AlignmentFile(str(folder / "reads.bam")) as file:
            state_of = np.array([truth.get(record.query_name, 0) for record in file])
        table, words = measured(folder, state_of)
        rows += lines(pore, name, table)
        fits.append(f"* {name}: {words}.")
    report = [
        "# What makes calls too careful or too sure",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, f5py {f5py.__version__}; {arguments.reads} simulated "
        "reads of 4,000 bases each, CpG groups, half of the weight at methylated ones. Shares are of methylated ones "
        "among those of a probability around that in the head; the last three with the factor of the chemistry "
        f"({CALIBRATION['r9']:g} and {CALIBRATION['r10']:g}). The run's scaling against the true one:",
        "",
        *fits,
        "",
        "| reads | scaling | noise | 0.45 | 0.55 | 0.65 | error | slope | intercept | area under the ROC curve "
        "| 0.45, factor | 0.55, factor | 0.65, factor |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        *rows,
    ]
    arguments.output.write_text("\n".join(report) + "\n")
    print(*report, sep="\n")


if __name__ == "__main__":
    main()
