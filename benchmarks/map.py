"""Measure `f5py map` against minimap2 and samtools: processor time and memory from reads to a sorted BAM file.

    python benchmarks/map.py DATA [-n 60] [--rounds 3] [--f5py COMMAND [COMMAND ...]] [-o benchmarks/results/map_cpu.md]

DATA is the folder with `ecoli_r94` and `map_ecoli`. The reads of `ecoli_r94`, so many times under other names, are
mapped to its reference, and to E. coli K12; the reads of `map_ecoli`, simulated with repeats and structural changes,
to theirs. The programs run in turn, with two threads, after one run of f5py that fills the cache of compiled code. A
run of one read is measured apart: the start.
"""

from __future__ import annotations

import argparse
import gzip
import shlex
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from measure import Usage, measure
from report import ROOT, first_line, machine, table

_OLD = "minimap2 -t 2 -ax map-ont --MD {reference} {reads} | samtools sort -@ 2 -o {output} -"
_NEW = "{program} map -t 2 --gpu off {reference} {reads} -o {output}"


class _Set(NamedTuple):
    """Reads, how often they are repeated, and their reference."""

    name: str
    reference: str
    reads: str
    times: int


def _text(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


def records_of(path: Path) -> Iterator[tuple[str, str]]:
    """Names and bases of a FASTA file."""
    for record in _text(path).split(">")[1:]:
        head, _, bases = record.partition("\n")
        yield head.split()[0], bases


def write_reads(source: Path, target: Path, times: int) -> None:
    """Write reads so many times under other names."""
    records = list(records_of(source))
    with open(target, "w") as out:
        for i in range(times):
            out.writelines(f">{name}_{i}\n{bases}" for name, bases in records)


def _measured(command: str) -> Usage:
    return measure(["bash", "-c", f"set -o pipefail; {command}"])


def _cells(usages: list[Usage]) -> list[str]:
    """Median and range of the processor time, and peak memory of the largest process."""
    seconds = [usage.cpu for usage in usages]
    memory = max(usage.peak_rss for usage in usages)
    return [f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})", f"{memory / 1e9:.2f}"]


def _rows(one: _Set, data: Path, folder: Path, programs: list[str], rounds: int) -> list[list[str]]:
    """Measure all programs on one set."""
    reads, output, reference = folder / "reads.fasta", folder / "out.bam", folder / "ref.fa"
    write_reads(data / one.reads, reads, one.times)
    reference.write_text(_text(data / one.reference))
    names = {"reference": reference, "reads": reads, "output": output}
    commands = {"minimap2, samtools sort": _OLD.format(**names)}
    for program in programs:
        commands[program] = _NEW.format(program=shlex.quote(program), **names)
        _measured(commands[program])
    usages: dict[str, list[Usage]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            usages[name].append(_measured(command))
    megabases = sum(len(bases) - bases.count("\n") for _, bases in records_of(reads)) / 1e6
    theirs = statistics.median(usage.cpu for usage in usages["minimap2, samtools sort"])
    rows = []
    for name, these in usages.items():
        ratio = statistics.median(usage.cpu for usage in these) / theirs
        rows.append([one.name, f"{megabases:.1f}", name, *_cells(these), f"{ratio:.2f}"])
        print(rows[-1], flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the read sets")
    parser.add_argument("-n", "--times", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--f5py", nargs="+", default=["f5py"], help="programs to compare")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks" / "results" / "map_cpu.md")
    options = parser.parse_args()
    ecoli, stress = "ecoli_r94/reads.fasta", "map_ecoli/stress_reads.fa.gz"
    sets = (
        _Set("start: 112 reads", "ecoli_r94/ref.fa", ecoli, 1),
        _Set("E. coli", "ecoli_r94/ref.fa", ecoli, options.times),
        _Set("E. coli K12", "map_ecoli/k12.fa.gz", ecoli, options.times),
        _Set("simulated, repeats", "map_ecoli/stress_ref.fa.gz", stress, options.times),
    )
    lines = ["# From reads to a sorted BAM file on two cores", "", *machine()]
    versions = [first_line(["bash", "-c", f"{program} --version | head -1"]) for program in ("minimap2", "samtools")]
    lines += [f"* minimap2 {versions[0]}, {versions[1]}", ""]
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for one in sets:
            rows += _rows(one, options.data, Path(name), options.f5py, options.rounds)
    head = ["set", "Mbases", "program", "processor time, s", "memory, GB", "of minimap2 and samtools"]
    lines += [*table(head, rows), ""]
    options.output.write_text("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
