"""Cost of correlated noise: processor time of the scores of groups and of single sites, with either noise.

    python benchmarks/noise_cost.py [-r READS -b BAM -g GENOME --slow5 FILE]    # f5c's E. coli reads without them

Each batch is scored several times in turn, by one thread, after its events have been aligned; the least time of each
counts. Writes a Markdown report to results/noise_cost.md, or where --output says.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from report import ROOT
from single_sites import ECOLI

import f5py
from f5py.commands import call_methylation as command
from f5py.compute import methylation as stage
from f5py.core.batch import ReadBatch
from f5py.core.motifs import Motif
from f5py.methylation.calls import call_methylation
from f5py.options.signal_commands import CallOptions
from f5py.pore_model.model import PoreModel


def measured(options: CallOptions, rounds: int) -> dict[tuple[bool, bool], float]:
    """Seconds by whether single sites are scored and whether noise is correlated."""
    least: dict[tuple[int, bool, bool], float] = defaultdict(lambda: float("inf"))

    def call(batch: ReadBatch, motif: Motif, model: PoreModel, pool: Any, *others: Any, **more: Any) -> float:
        for turn, per_site, correlated in product(range(rounds + 1), (False, True), (False, True)):
            noise = more["noise"] if correlated else None
            copy = replace(batch)
            started = time.process_time()
            call_methylation(copy, motif, model, pool, per_site, noise=noise)
            seconds = time.process_time() - started
            if turn > 0:  # the first one may compile
                at = batch.number, per_site, correlated
                least[at] = min(least[at], seconds)
        return call_methylation(batch, motif, model, pool, *others, **more)

    real = stage.call_methylation
    stage.call_methylation = call  # type: ignore[assignment]
    try:
        command.run(options)
    finally:
        stage.call_methylation = real  # type: ignore[assignment]
    sums: dict[tuple[bool, bool], float] = defaultdict(float)
    for (_, per_site, correlated), seconds in least.items():
        sums[per_site, correlated] += seconds
    return sums


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-r", help="indexed reads")
    parser.add_argument("-b", default=str(ECOLI / "reads.bam"), help="alignments")
    parser.add_argument("-g", default=str(ECOLI / "ref.fa"), help="reference")
    parser.add_argument("--slow5", nargs="+", default=[str(ECOLI / "formats" / "reads.blow5")])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "noise_cost.md")
    given = parser.parse_args()
    options = CallOptions(
        bam=given.b, reads=given.r, genome=given.g, slow5=tuple(given.slow5), output="/dev/null", threads=1, gpu="off",
        noise="correlated",
    )  # fmt: skip
    seconds = measured(options, given.rounds)
    report = [
        "# Cost of correlated noise",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, one thread, f5py {f5py.__version__}, Python "
        f"{platform.python_version()}; scores of the HMM stage without --rescale, processor time, least of "
        f"{given.rounds} in turn.",
        "",
        "| calls of | independent, s | correlated, s | times |",
        "|---|---:|---:|---:|",
    ]
    for name, per_site in (("groups", False), ("single sites", True)):
        alone, correlated = seconds[per_site, False], seconds[per_site, True]
        report.append(f"| {name} | {alone:.3f} | {correlated:.3f} | {correlated / alone:.2f} |")
    given.output.write_text("\n".join(report) + "\n")
    print(*report, sep="\n")


if __name__ == "__main__":
    main()
