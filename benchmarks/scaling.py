"""Speed of call-methylation and eventalign by the number of threads, on a replicated read set.

For machines with many cores. Every run is a process of its own with its output in a folder in memory; the tables of all
runs are compared. The set is made from one BLOW5 file by repeating its reads under new names.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pysam
from measure import Usage, measure
from replicate import replicate_id
from report import ROOT, machine, megabytes, table

COMMANDS = {
    "call-methylation": [],
    "eventalign": [],
    "eventalign, Parquet": ["--output-format", "parquet"],
}


def make_set(source: Path, target: Path, times: int) -> int:
    """Repeat a read set with BLOW5 signals; return its number of bases."""
    import pyslow5

    target.mkdir(parents=True)
    shutil.copy(source / "ref.fa", target / "ref.fa")
    original = pyslow5.Open(str(source / "formats" / "reads.blow5"), "r")
    records = list(original.seq_reads())
    known = original.get_all_headers()
    signals = pyslow5.Open(str(target / "reads.blow5"), "w", rec_press="zstd", sig_press="svb_zd")
    header = signals.get_empty_header()
    signals.write_header({key: str(known.get(key) or "") for key in header})
    for replicate in range(times):
        for record in records:
            signals.write_record({**record, "read_id": replicate_id(record["read_id"], replicate)})
    signals.close()
    n_bases = 0
    with pysam.FastxFile(str(source / "reads.fasta")) as file:
        reads = [(read.name, read.sequence) for read in file]
    with (target / "reads.fasta").open("w") as out:
        for replicate in range(times):
            for name, bases in reads:
                out.write(f">{replicate_id(name, replicate)}\n{bases}\n")
                n_bases += len(bases)
    with (
        pysam.AlignmentFile(str(source / "reads.bam")) as alignments,
        pysam.AlignmentFile(str(target / "reads.bam"), "wb", header=alignments.header) as out,
    ):
        for record in alignments.fetch(until_eof=True):
            name = record.query_name
            for replicate in range(times):
                record.query_name = replicate_id(name, replicate)
                out.write(record)
    pysam.index(str(target / "reads.bam"))
    return n_bases


def run(folder: Path, memory: Path, what: str, threads: int, log: Path) -> tuple[Usage, str]:
    """Run a command once; return its usage and a checksum of its output."""
    out = memory / "out"
    command = [
        sys.executable, "-m", "f5py", what.partition(",")[0], "-t", str(threads), "--disable-cuda=yes",
        "-r", str(folder / "reads.fasta"), "-b", str(folder / "reads.bam"), "-g", str(folder / "ref.fa"),
        "--slow5", str(folder / "reads.blow5"), "-o", str(out), *COMMANDS[what],
    ]  # fmt: skip
    used = measure(command, log=log, environment={"PYTHONPATH": str(ROOT)})
    with out.open("rb") as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
    out.unlink()
    return used, checksum


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("read_set", type=Path)
    parser.add_argument("-n", "--replicates", type=int, default=60)
    parser.add_argument("-t", "--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("-c", "--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks" / "results" / "scaling.md")
    options = parser.parse_args()
    lines = ["# Speed by the number of threads", "", *machine(), ""]
    rows, same = [], True
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory(dir=shared) as memory:
        folder, log = Path(made) / "set", Path(made) / "log"
        n_bases = make_set(options.read_set, folder, options.replicates)
        environment = {"PYTHONPATH": str(ROOT)}
        index = [sys.executable, "-m", "f5py", "index", "--slow5", str(folder / "reads.blow5")]
        measure([*index, str(folder / "reads.fasta")], log=log, environment=environment)
        for what in options.commands:
            run(folder, Path(memory), what, max(options.threads), log)  # fills the cache of compiled code
            results = {threads: run(folder, Path(memory), what, threads, log) for threads in options.threads}
            same = same and len({checksum for _, checksum in results.values()}) == 1
            slowest = results[min(results)][0].wall
            for threads, (used, _) in results.items():
                busy = used.cpu / used.wall / min(threads, os.cpu_count() or 1)
                rows.append(
                    [what, str(threads), f"{used.wall:.2f}", f"{n_bases / 1e6 / used.wall:.1f}",
                     f"{slowest / used.wall:.1f}", f"{100 * busy:.0f} %", megabytes(used.peak_rss)]
                )  # fmt: skip
    lines += [
        f"`{options.read_set.name}` x {options.replicates}: {n_bases / 1e6:.1f} Mbases, BLOW5, output to a file in "
        "memory, no GPU; one run each, after one that fills the cache of compiled code.",
        "",
        *table(["command", "threads", "wall, s", "Mbases/s", "speed-up", "cores busy", "peak memory, MB"], rows),
        "",
        f"Output the same bytes for every number of threads: {'yes' if same else '**no**'}.",
    ]
    options.output.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    if not same:
        sys.exit("the outputs differ")


if __name__ == "__main__":
    main()
