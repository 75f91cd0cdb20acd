"""Cost of a reference of many contigs: processor time and memory of a run over a few reads.

    python benchmarks/many_contigs.py ../shared/data --f5py OLD/.venv/bin/f5py .venv/bin/f5py

The reads are those of `ecoli_r94`; to their one contig so many more are added, in the reference, its index and the
header of the alignments. The programs run alternately.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pysam

_BASES = "ACGT" * 8


def make_inputs(data: Path, folder: Path, n_contigs: int) -> None:
    """Write reference, its index and alignments."""
    with open(folder / "ref.fa", "w") as out:
        out.write((data / "ref.fa").read_text().rstrip("\n") + "\n")
        out.writelines(f">scaffold_{i}\n{_BASES}\n" for i in range(n_contigs))
    pysam.faidx(str(folder / "ref.fa"))
    with pysam.AlignmentFile(str(data / "reads8.bam")) as file:
        header = file.header.to_dict()
        header["SQ"] += [{"SN": f"scaffold_{i}", "LN": len(_BASES)} for i in range(n_contigs)]
        with pysam.AlignmentFile(str(folder / "reads.bam"), "wb", header=header) as out:
            for record in file.fetch(until_eof=True):
                out.write(record)


def cost_of(command: list[str]) -> tuple[float, float]:
    """Processor seconds and peak memory, in GB, of a command, which must succeed."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)}: ended with status {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024**2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the read sets")
    parser.add_argument("--f5py", nargs="+", required=True, help="programs to compare")
    parser.add_argument("--contigs", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    data = (options.data / "ecoli_r94").resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_inputs(data, folder, options.contigs)
        inputs = ["-b", str(folder / "reads.bam"), "-g", str(folder / "ref.fa"), "-t", "2", "--gpu", "off"]
        inputs += ["--slow5", str(data / "formats" / "reads.blow5"), "-o", str(folder / "calls.tsv")]
        print("| program | processor time, s | peak memory, GB |\n| --- | ---: | ---: |")
        for _ in range(options.runs):
            for program in options.f5py:
                seconds, memory = cost_of([program, "call-methylation", *inputs])
                print(f"| {program} | {seconds:.2f} | {memory:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
