"""Calls of single sites by the evidence of their read: the power of the evidence, and the prior of one state.

    python benchmarks/agreement.py FOLDER            # FOLDER gets the simulated reads

`f5py.methylation.per_site` learns from a read how probable it is that the sites of a group agree. Here the likelihoods
of groups and of single sites are computed once, and the calls of sites in groups of several from them, for several
powers and priors. Real reads are those of E. coli, without methylated CpGs, whole and in pieces of 300 bases. Intervals
are of 95 %, by bootstrap over reads, of the difference from a power of one half and a prior of 0.99. Writes a Markdown
report to results/agreement.md, or where --output says.
"""

from __future__ import annotations

import argparse
import platform
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pysam
from report import ROOT
from single_sites import ECOLI, THRESHOLD, pieces

import f5py
from f5py.commands import call_methylation as command
from f5py.compute import methylation as stage
from f5py.core.batch import ReadBatch
from f5py.core.motifs import Motif
from f5py.core.offsets import used_elements
from f5py.evaluation.ratios import area_under_curve
from f5py.methylation.calls import call_methylation
from f5py.options.signal_commands import CallOptions
from f5py.pore_model.model import PoreModel

_SETTINGS = ((0.5, 0.99), (0.75, 0.99), (1.0, 0.99), (0.5, 0.9), (1.0, 0.9), (0.5, 0.999), (1.0, 0.999))
_SAMPLES = 300
#: As in `f5py.methylation.per_site`.
_UNIFORM_SHARE, _DIFFERING_POWER, _POINTS = 0.995, 3.0, 50


def likelihoods(inputs: dict[str, Any]) -> pd.DataFrame:
    """Of every site: those of its group and its own, whatever the other sites are."""
    parts: list[pd.DataFrame] = []

    def call(batch: ReadBatch, motif: Motif, model: PoreModel, pool: Any, *others: Any, **more: Any) -> float:
        groups, sites = replace(batch), replace(batch)
        call_methylation(groups, motif, model, pool, noise=more["noise"])
        seconds = call_methylation(sites, motif, model, pool, True, 0.0, noise=more["noise"])
        of_group = np.flatnonzero(used_elements(groups.calls.offsets, groups.calls.n))
        n = groups.calls.sites[of_group]
        of_group, at = np.repeat(of_group, n), np.flatnonzero(used_elements(sites.calls.offsets, sites.calls.n))
        parts.append(
            pd.DataFrame(
                {
                    "record": batch.read_index[np.repeat(np.arange(len(batch)), sites.calls.n)],
                    "position": sites.calls.first[at],
                    "first": np.append(0, np.cumsum(n)[:-1]).repeat(n) == np.arange(len(at)),
                    "n": np.repeat(n, n),
                    "group_1": groups.calls.methylated[of_group].astype(float),
                    "group_0": groups.calls.unmethylated[of_group].astype(float),
                    "site_1": sites.calls.methylated[at].astype(float),
                    "site_0": sites.calls.unmethylated[at].astype(float),
                }
            )
        )
        batch.__dict__.update(sites.__dict__)
        return seconds

    real = stage.call_methylation
    stage.call_methylation = call  # type: ignore[assignment]
    try:
        command.run(
            CallOptions(
                output="/dev/null",
                threads=2,
                gpu="off",
                noise="correlated",
                **{name: str(path) for name, path in inputs.items()},
            )
        )
    finally:
        stage.call_methylation = real  # type: ignore[assignment]
    found = pd.concat(parts, ignore_index=True)
    return found[found["n"] > 1].reset_index(drop=True)


def shares(table: pd.DataFrame, power: float, uniform: float) -> np.ndarray:
    """Compute the result of `learn_agreement` for each site's read."""
    groups = table[table["first"]]
    odds = (
        np.logaddexp(groups["group_1"], groups["group_0"]) - np.logaddexp(groups["site_1"], groups["site_0"])
    ).to_numpy()
    read, reads = pd.factorize(groups["record"])
    share = np.append((np.arange(_POINTS) + 0.5) / _POINTS, _UNIFORM_SHARE)
    prior = np.append((1 - uniform) * (_DIFFERING_POWER + 1) / _POINTS * (1 - share[:-1]) ** _DIFFERING_POWER, uniform)
    evidence = [np.bincount(read, np.logaddexp(np.log(one) + odds, np.log1p(-one)), len(reads)) for one in share]
    weights = power * np.stack(evidence, axis=1) + np.log(prior)
    weights = np.exp(weights - weights.max(axis=1, keepdims=True))
    learned = pd.Series(weights @ share / weights.sum(axis=1), index=reads)
    return learned[table["record"]].to_numpy()


def ratios(table: pd.DataFrame, share: np.ndarray) -> np.ndarray:
    """Of the sites, as the table of a run has them."""
    agree, differ = np.log(share), np.log1p(-share)
    one, zero = (
        np.logaddexp(agree + table[f"group_{state}"], differ + table[f"site_{state}"]).to_numpy() for state in (1, 0)
    )
    return np.round(one - zero, 2)


def lines(name: str, table: pd.DataFrame) -> list[str]:
    """Write a row of the report for each setting."""
    state = table["methylated"].to_numpy() == 1
    read, reads = pd.factorize(table["record"])
    rng = np.random.default_rng(1)
    drawn = rng.multinomial(len(reads), np.full(len(reads), 1 / len(reads)), _SAMPLES).astype(float)
    rows, first = [], None
    for power, uniform in _SETTINGS:
        ratio = ratios(table, shares(table, power, uniform))
        wrong, sure = (ratio > 0) != state, np.abs(ratio) > THRESHOLD
        sums = np.stack([np.bincount(read, one, len(reads)) for one in (sure, sure & wrong)], axis=1)
        share = (drawn @ sums)[:, 1] / (drawn @ sums)[:, 0]
        first = share if first is None else first
        low, high = 100 * np.quantile(share - first, (0.025, 0.975))
        area = area_under_curve(state, ratio)
        rows.append(
            f"| {name} | {len(reads):,} | {power:g} | {uniform:g} | {wrong.mean():.2%} | {sure.mean():.1%} "
            f"| {(sure & wrong).sum() / sure.sum():.2%} | {'' if share is first else f'{low:+.2f} to {high:+.2f}'} "
            f"| {'' if area is None else f'{area:.4f}'} |"
        )
    return rows


def labeled(folder: Path, **options: Any) -> pd.DataFrame:
    """Simulate reads with the noise of real ones."""
    shape = {"genome_length": 300_000, "gc": 0.55, "seed": 77, "signal_format": "blow5"}
    f5py.simulate(output=folder, force=True, **{**shape, **options})
    table = likelihoods({"bam": folder / "reads.bam", "genome": folder / "ref.fa", "slow5": folder / "reads.blow5"})
    with pysam.AlignmentFile(str(folder / "reads.bam")) as file:
        names = np.array([record.query_name for record in file])
    truth = pd.read_csv(folder / "truth_reads.tsv", sep="\t")[["read_name", "position", "methylated"]]
    return table.assign(read_name=names[table["record"]]).merge(truth, on=["read_name", "position"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "agreement.md")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    rows: list[str] = []
    if ECOLI.is_dir():
        signals = {"slow5": ECOLI / "formats" / "reads.blow5", "genome": ECOLI / "ref.fa"}
        cut = pieces(ECOLI / "reads.bam", arguments.folder / "pieces.bam")
        for name, bam in (("E. coli", ECOLI / "reads.bam"), ("E. coli, 300 bases", cut)):
            rows += lines(name, likelihoods({**signals, "bam": bam}).assign(methylated=0))
    for length, n in ((300, 1500), (800, 600), (2500, 200)):
        for name, options in {
            "one state a read": {"methylation": "per-read"},
            "one state, four fifths complete": {"methylation": "per-read", "complete": 0.8},
            "independent sites": {"linked_within": 0, "site_rates": "0.5"},
        }.items():
            folder = arguments.folder / f"{name.replace(' ', '_').replace(',', '')}_{length}"
            rows += lines(
                f"simulated, {length} bases, {name}", labeled(folder, n_reads=n, fixed_length=length, **options)
            )
    report = [
        "# What calls of single sites take from their read",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, f5py {f5py.__version__}; R9.4, CpG, sites in groups of "
        "several, correlated noise, simulated reads with the noise of real ones. Wrong: by the sign of the ratio; "
        f"beyond: of an absolute value above {THRESHOLD:g}. The difference (percentage points) is that from the first "
        "row of the set, over the same reads.",
        "",
        "| reads | number | power | prior of one state | wrong | beyond | of these wrong | difference "
        "| area under the ROC curve |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        *rows,
    ]
    arguments.output.write_text("\n".join(report) + "\n")
    print(*report, sep="\n")


if __name__ == "__main__":
    main()
