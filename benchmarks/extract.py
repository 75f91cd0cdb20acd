"""Benchmark of ``f5py extract`` against ``samtools view`` of the same modBAM.

A small modBAM is repeated under new names: once with all its calls, once with every tenth, as dense as CpG sites of a
human genome. All commands run in turn, bound to the same cores, and write to a file and to nothing.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import pysam
from measure import CommandFailed, Usage, measure
from replicate import replicate_id
from report import ROOT, cpu, first_line, least, machine, median, megabytes, one_line, table, wall

RESULTS = Path(__file__).resolve().parent / "results"
NOWHERE = "/dev/null"


def thin_calls(record: pysam.AlignedSegment, step: int) -> None:
    """Keep every `step`-th call of a record with one kind of modification."""
    entry, *skips = record.get_tag("MM").rstrip(";").split(",")
    kept, passed = [], 0
    for i, skip in enumerate(skips):
        passed += int(skip)
        if i % step == 0:
            kept.append(str(passed))
            passed = 0
        else:
            passed += 1
    values = record.get_tag("ML")[::step]
    record.set_tag("MM", ",".join([entry, *kept]) + ";")
    record.set_tag("ML", values)


def make_modbam(source: Path, target: Path, times: int, step: int) -> int:
    """Write a modBAM repeated `times` times; return the number of its calls at aligned bases."""
    n_calls = 0
    with pysam.AlignmentFile(str(source)) as file, pysam.AlignmentFile(str(target), "wb", template=file) as out:
        records = [record for record in file if record.has_tag("MM")]
        names = [record.query_name or "" for record in records]
        for record in records:
            thin_calls(record, step)
            aligned = {base for base, _ in record.get_aligned_pairs(matches_only=True)}
            n_calls += sum(base in aligned for calls in (record.modified_bases or {}).values() for base, _ in calls)
        for replicate in range(times):
            for record, name in zip(records, names, strict=True):
                record.query_name = replicate_id(name, replicate)
                out.write(record)
    return n_calls * times


def count_rows(path: Path) -> int:
    """Count the lines after the header."""
    with path.open("rb") as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b"")) - 1


def compare(options: argparse.Namespace, scratch: Path) -> list[str]:
    """Measure both programs on both files; return the lines of the report."""
    rows = []
    for density, step in (("all calls", 1), ("every tenth call", 10)):
        modbam, sam, calls = scratch / f"{step}.bam", scratch / "out.sam", scratch / "out.tsv"
        say(f"making a modBAM with {density}")
        n_calls = make_modbam(options.modbam, modbam, options.times, step)
        runs: dict[tuple[str, int, bool], list[Usage]] = {}
        for round_number in range(options.rounds + 1):
            for n_cores in options.cores:
                cores = ["taskset", "-c", ",".join(map(str, range(n_cores)))]
                for to_file in (True, False):
                    commands = {
                        "samtools view": ["samtools", "view", "-o", str(sam) if to_file else NOWHERE, str(modbam)],
                        "f5py extract": [
                            sys.executable, "-m", "f5py", "extract", "--quiet",
                            "-o", str(calls) if to_file else NOWHERE, str(modbam),
                        ],
                    }  # fmt: skip
                    for name, command in commands.items():
                        usage = measure([*cores, *command], log=scratch / "log.txt", cwd=ROOT)
                        say(f"round {round_number}: {name} on {n_cores} cores: {one_line(usage)}")
                        if round_number:  # the first one compiles, and reads the file into the page cache
                            runs.setdefault((name, n_cores, to_file), []).append(usage)
        if (found := count_rows(calls)) != n_calls:
            raise ValueError(f"{found:,} rows of {n_calls:,} calls")
        sizes = {"samtools view": sam.stat().st_size, "f5py extract": calls.stat().st_size}
        for (name, n_cores, to_file), usages in runs.items():
            peer = runs["samtools view", n_cores, to_file]
            ratios = [f"{least(usages, of) / least(peer, of):.2f}" for of in (wall, cpu)]
            per_byte = least(usages, cpu) / sizes[name] / (least(peer, cpu) / sizes["samtools view"])
            rows.append(
                [
                    density, name, str(n_cores), "a file" if to_file else "nothing", megabytes(sizes[name]),
                    *(f"{median(usages, of):.2f} ({least(usages, of):.2f})" for of in (wall, cpu)), *ratios,
                    f"{per_byte:.2f}", megabytes(max(usage.peak_rss for usage in usages)),
                ]
            )  # fmt: skip
    heads = [
        "calls", "program", "cores", "to", "output, MB", "wall, s", "user + system, s", "wall / samtools'",
        "processor / samtools'", "processor per byte / samtools'", "peak memory, MB",
    ]  # fmt: skip
    return [
        f"The modBAM of `call-methylation` on READ_SET, {options.times} times; rounds: {options.rounds}, all in turn, "
        "each bound to its cores; samtools uses one. Median (minimum); ratios are of minima. extract's start (Python, "
        "numba) is included. Its rows equal the calls that pysam counts.",
        "",
        *table(heads, rows),
    ]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modbam", type=Path, help="a modBAM of call-methylation")
    parser.add_argument("-n", "--times", type=int, default=400, help="copies of each read (default: 400)")
    parser.add_argument("--rounds", type=int, default=3, help="timed runs of each (default: 3)")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2], metavar="N", help="(default: 1 2)")
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="where to put temporary files")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", default=RESULTS / "extract.md")
    options = parser.parse_args()
    if not all(map(shutil.which, ("taskset", "samtools"))):
        sys.exit("extract.py: needs samtools and taskset on the path")
    lines = ["# extract", "", *machine()]
    versions = [[sys.executable, "-m", "f5py", "--version"], ["samtools", "--version"]]
    lines += [f"* versions: {', '.join(first_line(one, ROOT) for one in versions)}"]
    lines += [f"* made by: `python benchmarks/extract.py MODBAM -n {options.times}`", ""]
    try:
        with tempfile.TemporaryDirectory(prefix="f5py_benchmark_", dir=options.scratch) as scratch:
            lines += compare(options, Path(scratch).resolve())
    except (CommandFailed, OSError, ValueError) as problem:
        sys.exit(f"extract.py: {problem}")
    options.output.write_text("\n".join(lines) + "\n")
    say(f"written to {options.output}")


if __name__ == "__main__":
    main()
