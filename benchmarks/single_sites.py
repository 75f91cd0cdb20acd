"""Calls of single sites against calls of groups: on reads of one state, real and simulated, and of independent sites.

    python benchmarks/single_sites.py FOLDER            # FOLDER gets the simulated reads
    python benchmarks/single_sites.py SET --cost        # processor time, on a set of large_set.py with its indices

Of sites in groups of several. The real reads are of E. coli, which has no methylated CpG; "pieces" are alignments of
300 bases of them, in which few groups can tell whether sites agree, as in reads of amplicons. Writes a Markdown
report to results/single_sites.md, or where --output says. With --cost only the part on the processor time is written
anew: whole runs on the CPU threads, in turn with those of an earlier version (its checkout is --before).
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pysam
from measure import Usage, measure
from report import ROOT, cpu, first_line, least, machine, table

import f5py
from f5py.evaluation.ratios import area_under_curve

ECOLI = ROOT.parent / "shared" / "data" / "ecoli_r94"
PIECE = 300
THRESHOLD = 2.0
#: Title of the part of the report that --cost writes.
COST = "## Processor time"
#: Normal noise that is less than that of real reads.
QUIET = {
    "level_noise": 0.4, "sample_noise": 1.5, "level_correlation": 0.0, "level_tails": "gaussian",
    "sample_correlation": 0.0,
}  # fmt: skip
#: As `f5py simulate` makes R9.4 reads: with the noise of real ones.
NOISY = dict.fromkeys(QUIET)
#: Noise of the calls.
BOTH = ("independent", "correlated")
KEY = ["read_name", "chromosome", "start"]


def pieces(bam: Path, out: Path) -> Path:
    """Cut every alignment into alignments of 300 bases of the reference, each with the rest of the read clipped."""
    with pysam.AlignmentFile(str(bam)) as source, pysam.AlignmentFile(str(out), "wb", header=source.header) as file:
        for record in source:
            pairs = np.array(record.get_aligned_pairs(matches_only=True))
            query, position = pairs.T
            for first in range(int(position[0]), int(position[-1]) - PIECE, PIECE):
                at = np.flatnonzero((position >= first) & (position < first + PIECE))
                if len(at) < PIECE // 2:
                    continue
                record.reference_start = int(position[at[0]])
                record.cigartuples = _operations(query[at], position[at], record.query_length)
                file.write(record)
    pysam.sort("-o", str(out.with_suffix(".sorted.bam")), str(out))
    pysam.index(str(out.with_suffix(".sorted.bam")))
    return out.with_suffix(".sorted.bam")


def _operations(query: np.ndarray, position: np.ndarray, length: int) -> list[tuple[int, int]]:
    """CIGAR of matches between clipped ends."""
    cigar = [(4, int(query[0]))]
    run = 1
    for inserted, deleted in zip(np.diff(query) - 1, np.diff(position) - 1, strict=True):
        if inserted or deleted:
            cigar.append((0, run))
            cigar += [(code, int(n)) for code, n in ((1, inserted), (2, deleted)) if n]
            run = 0
        run += 1
    cigar += [(0, run), (4, length - int(query[-1]) - 1)]
    return [(code, n) for code, n in cigar if n]


def sites_in_groups(inputs: dict[str, Any], truth: pd.DataFrame | None) -> pd.DataFrame:
    """Ratios by site and by group of every site in a group of several, with its state."""
    groups = f5py.call_methylation(**inputs, returns="pandas")
    sites = f5py.call_methylation(**inputs, per_site=True, returns="pandas")
    by_group = groups.loc[groups.index.repeat(groups["num_motifs"])].reset_index(drop=True)
    if not (len(by_group) == len(sites) and (by_group["read_name"].to_numpy() == sites["read_name"].to_numpy()).all()):
        raise SystemExit("the sites are not those of the groups")
    table = sites[KEY].astype({"read_name": str, "chromosome": str})
    table["site"], table["group"] = sites["log_lik_ratio"], by_group["log_lik_ratio"]
    table = table[by_group["num_motifs"] > 1]
    if truth is None:
        return table.assign(methylated=0)
    return table.merge(truth.rename(columns={"position": "start"}), on=KEY)


def lines(name: str, inputs: dict[str, Any], truth: pd.DataFrame | None, noises: tuple[str, ...]) -> list[str]:
    """Two rows of the report for each noise of the calls."""
    found = []
    for noise in noises:
        found += line(f"{name} | {noise}", sites_in_groups({**inputs, "noise": noise}, truth))
    return found


def line(name: str, table: pd.DataFrame) -> list[str]:
    """Two rows of the report."""
    state = table["methylated"].to_numpy() == 1
    found = []
    for way in ("group", "site"):
        ratio = table[way].to_numpy()
        wrong = (ratio > 0) != state
        area = area_under_curve(state, ratio)
        found.append(
            f"| {name} | {way} | {table['read_name'].nunique():,} | {len(table):,} | {wrong.mean():.2%} "
            f"| {(np.abs(ratio) > THRESHOLD).mean():.1%} | {(wrong & (np.abs(ratio) > THRESHOLD)).mean():.2%} "
            f"| {'' if area is None else f'{area:.4f}'} |"
        )
    return found


def simulated(folder: Path, **options: Any) -> tuple[dict[str, Any], pd.DataFrame]:
    shape = {"genome_length": 300_000, "gc": 0.55, "coverage": 3.0, "seed": 1}
    f5py.simulate(output=folder, force=True, **{**shape, **QUIET, **options})
    inputs = {"bam": folder / "reads.bam", "genome": folder / "ref.fa", "fast5": folder / "fast5", "threads": 2}
    return inputs, pd.read_csv(folder / "truth_reads.tsv", sep="\t")


def cost(data: Path, before: Path | None, rounds: int) -> list[str]:
    """Lines on the processor time of whole runs, and which part of it single sites take."""
    versions = (
        {} if before is None else {first_line(["git", "-C", str(before), "rev-parse", "--short", "HEAD"]): before}
    )
    versions[first_line(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"])] = ROOT
    kinds = [[], ["--accurate"]]
    found: dict[tuple[str, str, bool], list[Usage]] = defaultdict(list)
    report = [
        "",
        COST,
        "",
        *machine(),
        f"* set {data.name}, all processors of the machine, user and system time, least of {rounds} runs in turn",
        "",
    ]
    for turn in range(rounds + 1):
        for kind in kinds:
            for name, folder in versions.items():
                for per_site in (False, True):
                    command = [
                        sys.executable, "-m", "f5py", "call-methylation", "-b", "reads.bam", "-g", "ref.fa", "-r",
                        "reads.fasta", "--slow5", "reads.blow5", "--gpu", "off", "-o", "/dev/null", *kind,
                        *["--per-site"] * per_site,
                    ]  # fmt: skip
                    usage = measure(command, cwd=data, environment={"PYTHONPATH": str(folder)})
                    if turn > 0:  # the first one may compile
                        found[name, " ".join(kind), per_site].append(usage)
    rows = []
    for name in versions:
        for kind in kinds:
            groups, sites = (least(found[name, " ".join(kind), per_site], cpu) for per_site in (False, True))
            of_kind = kind[0] if kind else "independent noise"
            rows.append(
                [name, of_kind, f"{groups:.2f}", f"{sites:.2f}", f"{sites - groups:.2f}", f"{sites / groups:.2f}"]
            )
    head = ["version", "calls", "groups, s", "`--per-site`, s", "more, s", "times"]
    return [*report, *table(head, rows)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "single_sites.md")
    parser.add_argument("--cost", action="store_true", help="measure the processor time of runs on a set")
    parser.add_argument("--before", type=Path, help="checkout of an earlier version, measured in turn")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    written = arguments.output.read_text() if arguments.output.is_file() else ""
    calls, title, times = written.partition(f"\n{COST}\n")
    if arguments.cost:
        lines_of_cost = cost(arguments.folder, arguments.before, arguments.rounds)
        arguments.output.write_text(calls + "\n".join(lines_of_cost) + "\n")
        print(*lines_of_cost, sep="\n")
        return
    arguments.folder.mkdir(parents=True, exist_ok=True)
    rows: list[str] = []
    if ECOLI.is_dir():
        signals = {"slow5": ECOLI / "formats" / "reads.blow5", "genome": ECOLI / "ref.fa", "threads": 2}
        cut = pieces(ECOLI / "reads.bam", arguments.folder / "pieces.bam")
        rows += lines("E. coli", {**signals, "bam": ECOLI / "reads.bam"}, None, BOTH)
        rows += lines("E. coli, pieces", {**signals, "bam": cut}, None, BOTH)
    for name, options in {
        "simulated, one state a read": {"methylation": "per-read"},
        "simulated, one state, 800 bases": {"methylation": "per-read", "fixed_length": 800},
        "simulated, independent sites": {"linked_within": 0, "site_rates": "0.5"},
        "simulated, independent, 2500 bases": {"linked_within": 0, "site_rates": "0.5", "fixed_length": 2500},
        "simulated, independent, 800 bases": {"linked_within": 0, "site_rates": "0.5", "fixed_length": 800},
        "simulated with noise, one state a read": {**NOISY, "methylation": "per-read"},
        "simulated with noise, one state, 800 bases": {**NOISY, "methylation": "per-read", "fixed_length": 800},
        "simulated with noise, independent sites": {**NOISY, "linked_within": 0, "site_rates": "0.5"},
        "simulated with noise, independent, 2500 bases": {
            **NOISY, "linked_within": 0, "site_rates": "0.5", "fixed_length": 2500,
        },
        "simulated with noise, independent, 800 bases": {
            **NOISY, "linked_within": 0, "site_rates": "0.5", "fixed_length": 800,
        },
    }.items():  # fmt: skip
        made = simulated(arguments.folder / name.replace(" ", "_"), **options)
        rows += lines(name, *made, BOTH if "with noise" in name else BOTH[:1])
    report = [
        "# Calls of single sites",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, f5py {f5py.__version__}; R9.4, CpG, sites in groups of "
        'several. Levels and samples of simulated reads scatter less than in real ones, but for those "with noise". '
        f"Wrong: by the sign of the ratio; beyond: of an absolute value above {THRESHOLD:g}.",
        "",
        "| reads | noise of the calls | call of | number of reads | sites | wrong | beyond | wrong and beyond "
        "| area under the ROC curve |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
        *rows,
    ]
    arguments.output.write_text("\n".join(report) + "\n" + title + times)
    print(*report, sep="\n")


if __name__ == "__main__":
    main()
