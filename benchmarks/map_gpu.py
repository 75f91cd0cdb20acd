"""Whole runs of `f5py map` on a machine with a GPU: without it, with it from the start, and minimap2 with samtools.

    python benchmarks/map_gpu.py DATA [-n 240] [-t 16] [-K BASES] [--fastq] [--rounds 2] [--uses off on] [-o FILE]

DATA is the folder with `ecoli_r94`. Its 112 reads (0.6 Mbases) are repeated under other names, as FASTA, or as FASTQ
with qualities drawn from those of `rna004_lacz`. A round is each use once, and once more in the opposite order;
before, each runs once, which fills the caches of compiled code. The records of all runs are compared with those of
the first one. Where ``minimap2`` and ``samtools`` are on the path, they do the same work with as many threads, once a
round.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
from map import records_of, write_reads
from measure import Usage, measure
from report import machine, table

from f5py.io.bam.bam_blocks import inflate_portions
from f5py.io.bam.bam_records import header_size

_THEIRS = "minimap2 -t {t} -ax map-ont --MD {reference} {reads} | samtools sort -@ {t} -o {output} -"


def _records_sum(path: Path) -> str:
    """Checksum of the records as they are before compression: the header has the command line in it."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        left = header_size(file)
        file.seek(0)
        with closing(inflate_portions(file)) as portions:
            for portion in portions:
                digest.update(portion[min(left, len(portion)) :])
                left = max(left - len(portion), 0)
    return digest.hexdigest()


def _write_fastq(bases: Path, qualities: Path, target: Path, times: int) -> None:
    """Write reads so many times under other names, with qualities drawn from those of a FASTQ file."""
    reads = [(name, text.replace("\n", "")) for name, text in records_of(bases)]
    found = np.frombuffer("".join(qualities.read_text().splitlines()[3::4]).encode(), np.uint8)
    rng = np.random.default_rng(1)
    with target.open("w") as out:
        for i in range(times):
            drawn = rng.choice(found, sum(len(text) for _, text in reads)).tobytes().decode()
            at = 0
            for name, text in reads:
                out.write(f"@{name}_{i}\n{text}\n+\n{drawn[at : at + len(text)]}\n")
                at += len(text)


def _device() -> str:
    try:
        import cupy

        return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    except Exception as problem:
        return f"no GPU ({type(problem).__name__})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the read sets")
    parser.add_argument("-n", "--times", type=int, default=240)
    parser.add_argument("-t", "--threads", type=int, default=16)
    parser.add_argument("-K", "--batch-bases", help="bases of a batch, instead of what f5py takes by itself")
    parser.add_argument("--fastq", action="store_true", help="reads with qualities")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--uses", nargs="+", default=["off", "on"], help="values of --gpu")
    parser.add_argument("--folder", type=Path, help="for the reads and the output; best in memory, such as /dev/shm")
    parser.add_argument("-o", "--output", type=Path, help="Markdown file")
    options = parser.parse_args()
    usages: dict[str, list[Usage]] = {f"f5py --gpu {use}": [] for use in options.uses}
    stages: dict[str, list[dict[str, float]]] = {name: [] for name in usages}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        reads, output, report = folder / "reads.fasta", folder / "out.bam", folder / "report.json"
        reference, source = options.data / "ecoli_r94" / "ref.fa", options.data / "ecoli_r94" / "reads.fasta"
        n_bases = options.times * sum(len(line) for line in source.read_text().splitlines() if line[0] != ">")
        if options.fastq:
            reads = folder / "reads.fastq"
            _write_fastq(source, options.data / "rna004_lacz" / "reads.fastq", reads, options.times)
        else:
            write_reads(source, reads, options.times)
        print(f"{n_bases / 1e6:.1f} Mbases", flush=True)
        ours = [sys.executable, "-m", "f5py", "map", "-t", str(options.threads), "--report", str(report)]
        ours += [] if options.batch_bases is None else ["-K", options.batch_bases]
        ours += [str(reference), str(reads), "-o", str(output), "--gpu"]
        log = folder / "log.txt"
        for use in options.uses:
            first = measure([*ours, use], log=log)
            print(f"first run, --gpu {use}: {first.wall:.1f} s", flush=True)
        expected = _records_sum(output)
        for _ in range(options.rounds):
            for use in [*options.uses, *reversed(options.uses)]:
                usage = measure([*ours, use], log=log)
                usages[f"f5py --gpu {use}"].append(usage)
                stages[f"f5py --gpu {use}"].append(json.loads(report.read_text())["run"]["seconds"])
                print(f"--gpu {use}: {usage.wall:.2f} s, {usage.cpu:.1f} s of processors", flush=True)
                print("  ", "; ".join(line for line in log.read_text().splitlines() if "batches mapped" in line))
                if _records_sum(output) != expected:
                    raise SystemExit(f"--gpu {use}: other records")
            try:
                theirs = _THEIRS.format(t=options.threads, reference=reference, reads=reads, output=output)
                usage = measure(["bash", "-c", f"set -o pipefail; {theirs}"])
                usages.setdefault("minimap2, samtools sort", []).append(usage)
                print(f"minimap2 and samtools: {usage.wall:.2f} s, {usage.cpu:.1f} s of processors", flush=True)
            except Exception as problem:
                print(f"minimap2 and samtools were not run: {problem}", flush=True)
    rows = [
        [
            name, ", ".join(f"{one.wall:.1f}" for one in these), ", ".join(f"{one.cpu:.1f}" for one in these),
            f"{max(one.peak_rss for one in these) / 1e9:.2f}",
        ]
        for name, these in usages.items()
    ]  # fmt: skip
    names = list(dict.fromkeys(name for runs in stages.values() for seconds in runs for name in seconds))
    of_stages = [
        [stage.replace("_", " "), *(f"{statistics.median(one.get(stage, 0.0) for one in runs):.2f}" for runs in
         stages.values())]
        for stage in names
    ]  # fmt: skip
    lines = [
        "# Mapping on a GPU, whole runs", "", *machine(), f"* {_device()}",
        f"* the 112 reads of the R9.4 E. coli set {options.times} times under other names: {n_bases / 1e6:.1f} Mbases "
        f"of {reads.suffix[1:].upper()} to sorted BAM, {options.threads} threads, code compiled before; in turn; "
        "all records alike", "",
        *table(["", "wall, s", "processor time, s", "memory, GB"], rows), "",
        "Stages, median of the runs, wall seconds; several batches may be in one at the same time.", "",
        *table(["stage", *stages], of_stages), "",
    ]  # fmt: skip
    text = "\n".join(lines)
    print(text)
    if options.output is not None:
        options.output.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
