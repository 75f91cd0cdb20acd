"""Constants of the noise by read against those of all reads: likelihoods of windows held out, and calls.

    python benchmarks/noise_by_read.py FOLDER            # FOLDER gets the simulated reads

The noise of a read is estimated as `f5py.training.noise` estimates that of all reads: from windows without any site,
with the weight of some windows of the other reads besides. Every other window of a read is held out; the score there
is the log-likelihood of a window against that with the noise estimated from all other reads. For calls of CpG groups
all plain windows are used, and the noise is the best of the grid's. Intervals are of 95 %, by bootstrap over reads.
Writes a Markdown report to results/noise_by_read.md, or where --output says.
"""

from __future__ import annotations

import argparse
import platform
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pysam
from numpy.typing import NDArray
from report import ROOT

import f5py
from f5py.commands import call_methylation as command
from f5py.compute import methylation as stage
from f5py.core.batch import ReadBatch
from f5py.core.motifs import Motif, motif_named
from f5py.core.noise import GAUSSIAN, STUDENT
from f5py.core.offsets import used_elements
from f5py.evaluation.ratios import area_under_curve
from f5py.methylation.calls import call_methylation
from f5py.options.signal_commands import CallOptions
from f5py.pore_model.model import PoreModel, Shifts, nucleotides_of, with_methylation
from f5py.training.noise import CANDIDATES, KNOTS, fine_grid, plain_windows, window_motif

DATA = ROOT.parent / "shared" / "data"
#: Weight of the other reads, in windows.
_WEIGHTS = (0, 50, 200, 1000)
_SAMPLES = 400
_HIDDEN = [motif_named(name) for name in ("cpg", "dam", "dcm")]


class Measured(NamedTuple):
    """Of a set of reads.

    Attributes
    ----------
    n : float64, shape (n_reads, 2)
        Plain windows of either half.
    plain : float64, shape (n_reads, 2, n_candidates)
        Logarithms of their likelihoods.
    read : int64, shape (n_calls,)
    ratio : float32, shape (n_calls, n_candidates)
        Log-likelihood ratios of CpG groups; the last column has those with the constants of the chemistry.
    record, first : int64, shape (n_calls,)
    """

    n: NDArray[np.float64]
    plain: NDArray[np.float64]
    read: NDArray[np.int64]
    ratio: NDArray[np.float32]
    record: NDArray[np.int64]
    first: NDArray[np.int64]


def measured(inputs: dict[str, Any]) -> Measured:
    """Likelihoods of plain windows and ratios of groups with every candidate."""
    parts: list[tuple[NDArray[Any], ...]] = []

    def call(batch: ReadBatch, motif: Motif, model: PoreModel, pool: Any, *others: Any, **more: Any) -> float:
        plain = nucleotides_of(model)
        levels = with_methylation(plain, Shifts.of_places([0.0] * plain.k), plain.name, window_motif().canonical)
        windows, ratios = [], []
        for noise in CANDIDATES:
            one = replace(batch)
            call_methylation(one, window_motif(), levels, pool, noise=noise)
            read = np.repeat(np.arange(len(batch)), one.calls.n)
            used = np.flatnonzero(used_elements(one.calls.offsets, one.calls.n))
            wanted = plain_windows(one, _HIDDEN)
            half = 2 * read[wanted] + np.arange(int(wanted.sum())) % 2
            windows.append(np.bincount(half, one.calls.unmethylated[used[wanted]], 2 * len(batch)))
        n = np.bincount(half, minlength=2 * len(batch))
        for noise in (*CANDIDATES, more["noise"]):
            one = replace(batch)
            seconds = call_methylation(one, motif, model, pool, noise=noise)
            used = np.flatnonzero(used_elements(one.calls.offsets, one.calls.n))
            ratios.append((one.calls.methylated - one.calls.unmethylated)[used])
        read = np.repeat(np.arange(len(batch)), one.calls.n)
        parts.append(
            (n, np.stack(windows, 1), read, np.stack(ratios, 1), batch.read_index[read], one.calls.first[used])
        )
        batch.__dict__.update(one.__dict__)
        return seconds

    real = stage.call_methylation
    stage.call_methylation = call  # type: ignore[assignment]
    try:
        command.run(
            CallOptions(
                output="/dev/null", threads=2, gpu="off", noise="correlated", rescale=False,
                **{name: str(path) for name, path in inputs.items()},
            )
        )  # fmt: skip
    finally:
        stage.call_methylation = real  # type: ignore[assignment]
    before = np.cumsum([0, *(len(part[0]) // 2 for part in parts)])
    n, plain, read, ratio, record, first = (np.concatenate(one) for one in zip(*parts, strict=True))
    read += np.repeat(before[:-1], [len(part[2]) for part in parts])
    return Measured(n.reshape(-1, 2).astype(float), plain.reshape(len(n) // 2, 2, -1), read, ratio, record, first)


def interval(of_reads: NDArray[np.float64], statistic: Any) -> str:
    """Of a statistic of the sums of rows, one a read."""
    rng = np.random.default_rng(1)
    drawn = rng.multinomial(len(of_reads), np.full(len(of_reads), 1 / len(of_reads)), _SAMPLES) @ of_reads
    low, high = np.quantile([statistic(one) for one in drawn], (0.025, 0.975))
    return f"[{low:+.4f}, {high:+.4f}]"


def held_out(name: str, found: Measured) -> list[str]:
    """Write a row of the first table for each weight."""
    surfaces = np.stack([fine_grid(half) for half in found.plain.reshape(-1, len(CANDIDATES))])
    surfaces = surfaces.reshape(*found.n.shape, -1)
    both, n_both = surfaces.sum(axis=1), found.n.sum(axis=1)
    others, n_others = both.sum(axis=0) - both, n_both.sum() - n_both
    used = (found.n > 0).all(axis=1)
    fixed = others.argmax(axis=1)
    rows = []
    for weight in _WEIGHTS:
        sums = np.zeros((len(used), 2))
        for learnt in (0, 1):
            best = (surfaces[:, learnt] + weight * others / n_others[:, None]).argmax(axis=1)
            at = np.arange(len(used))
            sums[:, 0] += surfaces[at, 1 - learnt, best] - surfaces[at, 1 - learnt, fixed]
            sums[:, 1] += found.n[:, 1 - learnt]
        sums = sums[used]
        gain = sums[:, 0].sum() / sums[:, 1].sum()
        rows.append(
            f"| {name} | {used.sum():,} | {np.median(n_both[used]):.0f} | {weight} | {gain:+.4f} "
            f"{interval(sums, lambda one: one[0] / one[1])} | {(sums[:, 0] > 0).mean():.0%} |"
        )
    return rows


def calls(name: str, found: Measured, state: NDArray[np.bool_]) -> list[str]:
    """Write a row of the second table for each way to the noise."""
    plain, n = found.plain.sum(axis=1), found.n.sum(axis=1)
    pooled = plain.sum(axis=0) / n.sum()
    chosen = {
        "constants of the chemistry": np.full(len(n), len(CANDIDATES)),
        "all reads": np.full(len(n), pooled.argmax()),
    }
    for weight in _WEIGHTS:
        chosen[f"by read, weight {weight}"] = (plain + weight * pooled).argmax(axis=1)
    rows, first = [], None
    n_reads = len(n)
    for words, candidate in chosen.items():
        ratio = found.ratio[np.arange(len(found.read)), candidate[found.read]]
        wrong, sure = (ratio > 0) != state, np.abs(ratio) > 2
        sums = np.stack([np.bincount(found.read, one, n_reads) for one in (sure, sure & wrong)], axis=1)
        share = (sums.sum(axis=0)[1] / sums.sum(axis=0)[0]).item()
        if words == "all reads":
            first = sums
        difference = ""
        if first is not None and first is not sums:
            both = np.hstack([sums, first])
            difference = interval(100 * both, lambda one: 100 * (one[1] / one[0] - one[3] / one[2]))
        area = area_under_curve(state, ratio.astype(float))
        rows.append(
            f"| {name} | {words} | {len(ratio):,} | {sure.mean():.1%} | {share:.2%} | {difference} "
            f"| {'' if area is None else f'{area:.4f}'} |"
        )
    return rows


def simulated(folder: Path, correlations: tuple[float | None, ...]) -> tuple[Measured, NDArray[np.bool_]]:
    """Simulate reads of one state, a lot for each correlation of successive levels; None: as in real reads."""
    found, states = [], []
    for i, correlation in enumerate(correlations):
        out = folder / f"{'as_real' if correlation is None else correlation}"
        f5py.simulate(
            output=out, force=True, genome_length=300_000, gc=0.5, seed=90 + i, signal_format="blow5",
            methylation="per-read", fixed_length=5000, n_reads=120 // len(correlations), level_correlation=correlation,
        )  # fmt: skip
        one = measured({"bam": out / "reads.bam", "genome": out / "ref.fa", "slow5": out / "reads.blow5"})
        with pysam.AlignmentFile(str(out / "reads.bam")) as file:
            names = np.array([record.query_name for record in file])
        truth = pd.read_csv(out / "truth_reads.tsv", sep="\t").set_index(["read_name", "position"])["methylated"]
        states.append(truth.loc[list(zip(names[one.record], one.first, strict=True))].to_numpy() == 1)
        found.append(one)
    before = np.cumsum([0, *(len(one.n) for one in found)])
    found = [one._replace(read=one.read + first) for one, first in zip(found, before, strict=False)]
    return Measured(*(np.concatenate(one) for one in zip(*found, strict=True))), np.concatenate(states)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "noise_by_read.md")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    sets: dict[str, tuple[Measured, NDArray[np.bool_]]] = {}
    for name, folder, signals in (
        ("E. coli, R9.4", DATA / "ecoli_r94", "formats/reads.blow5"),
        ("human, amplified, R10.4.1", DATA / "r10_wga", "reads.blow5"),
    ):
        if folder.is_dir():
            one = measured({"bam": folder / "reads.bam", "genome": folder / "ref.fa", "slow5": folder / signals})
            sets[name] = one, np.zeros(len(one.read), np.bool_)
    sets["simulated, R9.4"] = simulated(arguments.folder, (None,))
    sets["simulated, R9.4, correlations 0, 0.3 and 0.6"] = simulated(arguments.folder, (0.0, 0.3, 0.6))
    likely, called = [], []
    for name, (one, state) in sets.items():
        likely += held_out(name, one)
        called += calls(name, one, state)
    report = [
        "# Noise by read",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, f5py {f5py.__version__}; tails {GAUSSIAN} and {STUDENT}, "
        f"correlations from {KNOTS[0]:g} to {KNOTS[-1]:g}. Weight: of the other reads, in windows. Gain: of a held-out "
        "window's log-likelihood against the noise of all other reads.",
        "",
        "| reads | number | windows of a read | weight | gain | reads that gain |",
        "|---|---:|---:|---:|---:|---:|",
        *likely,
        "",
        "CpG groups; the difference is in percentage points of the wrong ones, from the noise of all reads.",
        "",
        "| reads | noise | groups | beyond 2 | of these wrong | difference | area under the ROC curve |",
        "|---|---|---:|---:|---:|---:|---:|",
        *called,
    ]
    arguments.output.write_text("\n".join(report) + "\n")
    print(*report, sep="\n")


if __name__ == "__main__":
    main()
