"""Runs in parts: the cost of --resume, losses of killed runs, and the speed of joining.

Every run is a process of its own. The set is made from one with BLOW5 signals by repeating its reads under new names.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pysam
from measure import Usage, measure
from report import ROOT, machine, megabytes, table
from scaling import make_set

PROGRAM = [sys.executable, "-m", "f5py"]
ENVIRONMENT = {"PYTHONPATH": str(ROOT)}
OUTPUTS = {
    "call-methylation": ["-o", "calls.tsv"],
    "call-methylation, all outputs": [
        "-o", "calls.tsv", "--modbam", "m.bam", "--bedmethyl", "s.bed.gz", "--failed-reads", "failed.tsv",
    ],
    "eventalign": ["-o", "events.tsv"],
    "eventalign, Parquet": ["-o", "events.parquet"],
    "resquiggle": ["-o", "moves.tsv"],
}  # fmt: skip
FILES = ("calls.tsv", "m.bam", "s.bed.gz", "s.bed.gz.tbi", "failed.tsv")
SECTIONS = ("plan", "joining", "cost", "kills")


def indexed_set(read_set: Path, folder: Path, replicates: int, cwd: Path) -> int:
    """Make a set of repeated reads and its index; return its number of bases."""
    n_bases = make_set(read_set, folder, replicates)
    run(["index", "--slow5", str(folder / "reads.blow5"), str(folder / "reads.fasta")], cwd)
    return n_bases


def inputs(folder: Path, threads: int, command: str = "") -> list[str]:
    names = {"-r": "reads.fasta", "-b": "reads.bam", "-g": "ref.fa", "--slow5": "reads.blow5"}
    named = [word for option, name in names.items() for word in (option, str(folder / name))]
    if command == "resquiggle":
        named = [str(folder / "reads.fasta"), str(folder / "reads.blow5")]
    return [*named, "-t", str(threads), "--disable-cuda=yes"]


def run(words: list[str], cwd: Path) -> Usage:
    return measure([*PROGRAM, *words], log=cwd / "log", cwd=cwd, environment=ENVIRONMENT)


def checksums(folder: Path, names: tuple[str, ...] = FILES) -> dict[str, str]:
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def cost(folder: Path, cwd: Path, threads: int, n_runs: int, commands: list[str]) -> list[list[str]]:
    """Wall time of a run, and of the same in parts, alternately; medians."""
    rows = []
    for what in commands:
        command = what.partition(",")[0]
        words = [command, *inputs(folder, threads, command), *OUTPUTS[what]]
        resumable = ["--resume"] if command == "resquiggle" else ["--resume", "--partitions", "16"]
        run(words, cwd)  # fills the caches
        seconds: dict[str, list[float]] = {"one": [], "parts": []}
        for _ in range(n_runs):
            seconds["one"].append(run(words, cwd).wall)
            seconds["parts"].append(run([*words, *resumable], cwd).wall)
        one, parts = (statistics.median(seconds[name]) for name in ("one", "parts"))
        spread = max(seconds["one"]) / min(seconds["one"]) - 1
        rows.append([what, f"{one:.2f}", f"{parts:.2f}", f"{100 * (parts / one - 1):+.1f} %", f"{100 * spread:.0f} %"])
        for path in cwd.iterdir():
            if path.name != "log":
                path.unlink()
    return rows


def kill_rounds(folder: Path, cwd: Path, threads: int, n_rounds: int, seed: int) -> tuple[list[list[str]], int]:
    """Kill processes of runs in parts at random and compare all outputs; return rows and wrong rounds."""
    words = ["call-methylation", *inputs(folder, threads), *OUTPUTS["call-methylation, all outputs"]]
    run(words, cwd)
    expected = checksums(cwd)
    chance = random.Random(seed)
    counts: dict[tuple[int, int], list[int]] = {}
    wrong = 0
    for i in range(n_rounds):
        n_parts, n_processes = (1, 2, 7, 64)[i % 4], chance.randint(1, 4)
        for name in FILES:
            (cwd / name).unlink()
        # the command line in the modBAM is that of the run without these two
        run([*words, "--plan", "plan", "--partitions", str(n_parts)], cwd)
        n_kills = work_and_kill(cwd, n_parts, n_processes, chance)
        run(["finish", "plan", "--remove"], cwd)
        found = checksums(cwd)
        is_right = found == expected and not (cwd / "plan").exists()
        wrong += not is_right
        entry = counts.setdefault((n_parts, n_processes), [0, 0, 0])
        entry[0] += 1
        entry[1] += n_kills
        entry[2] += not is_right
        print(i, n_parts, n_processes, n_kills, is_right, flush=True)
    rows = [[*map(str, key), *map(str, entry)] for key, entry in sorted(counts.items())]
    return rows, wrong


def work_and_kill(cwd: Path, n_parts: int, n_processes: int, chance: random.Random) -> int:
    """Let processes work on parts in any order, and kill them at random until all are done; return the kills."""
    n_kills = 0
    while True:
        done = {path.name for path in (cwd / "plan" / "parts").iterdir()}
        missing = [number for number in range(n_parts) if str(number) not in done]
        if not missing:
            return n_kills
        chance.shuffle(missing)
        processes = []
        for at in range(n_processes):
            if mine := missing[at::n_processes]:
                command = [*PROGRAM, "run-part", "plan", *map(str, mine)]
                with (cwd / "log").open("ab") as log:
                    processes.append(subprocess.Popen(command, cwd=cwd, stderr=log, env=_environment()))
        victims = [process for process in processes if n_kills < 6 and chance.random() < 0.6]
        for victim in victims:
            time.sleep(chance.uniform(0.2, 4.0))
            if victim.poll() is None:
                victim.send_signal(signal.SIGKILL)
                n_kills += 1
        for process in processes:
            process.wait()


def _environment() -> dict[str, str]:
    return {**os.environ, **ENVIRONMENT}


def large_plan(cwd: Path, folder: Path, n_records: int, n_parts: int) -> tuple[Usage, int]:
    """Plan parts of a sorted BAM file with that many records."""
    header = pysam.AlignmentHeader.from_dict(
        {"HD": {"VN": "1.6", "SO": "coordinate"}, "SQ": [{"SN": "c", "LN": 2_000_000_000}]}
    )
    path = cwd / "large.bam"
    record = pysam.AlignedSegment(header)
    chance = random.Random(1)
    genome = "".join(chance.choices("ACGT", k=1_000_000))
    record.cigarstring, record.mapping_quality, record.reference_id = "500M", 60, 0
    with pysam.AlignmentFile(str(path), "wb", header=header) as bam:
        for i in range(n_records):
            record.query_name = f"{chance.getrandbits(128):032x}"
            begin = chance.randrange(999_500)
            record.query_sequence = genome[begin : begin + 500]
            record.query_qualities = pysam.qualitystring_to_array(chance.randbytes(250).hex())
            record.reference_start = i * (1_900_000_000 // n_records)
            bam.write(record)
    pysam.index(str(path), "-c")
    words = [
        "call-methylation", "-b", str(path), "-g", str(folder / "ref.fa"), "--slow5", str(folder / "reads.blow5"),
        "-o", "calls.tsv", "--plan", "large", "--partitions", str(n_parts),
    ]  # fmt: skip
    used = run(words, cwd)
    size = path.stat().st_size
    shutil.rmtree(cwd / "large")
    path.unlink()
    return used, size


def joining(folder: Path, cwd: Path, threads: int) -> list[list[str]]:
    """Let cat join the parts of a large table, and finish, in this order."""
    words = ["eventalign", *inputs(folder, threads), "-o", "events.tsv", "--plan", "plan", "--partitions", "40"]
    run(words, cwd)
    for parts in ("20-39", "0-19"):  # so that finish must copy
        run(["run-part", "plan", parts], cwd)
    tables = sorted((cwd / "plan" / "tables").iterdir())
    rows = []
    for _ in range(2):  # alternately, as the first to write may wait for the disk
        os.sync()
        with (cwd / "events.tsv").open("wb") as out:
            started = time.perf_counter()
            subprocess.run(["cat", *map(str, tables)], stdout=out, check=True)
            seconds = time.perf_counter() - started
        (cwd / "events.tsv").unlink()
        os.sync()
        used = run(["finish", "plan"], cwd)
        size = (cwd / "events.tsv").stat().st_size
        (cwd / "events.tsv").unlink()
        rows.append(_rate("cat of the parts of two processes", size, seconds))
        rows.append(_rate("finish, the same parts", size, used.wall, megabytes(used.peak_rss)))
    shutil.rmtree(cwd / "plan")
    run(words, cwd)
    run(["run-part", "plan"], cwd)
    os.sync()
    named = run(["finish", "plan"], cwd)
    shutil.rmtree(cwd / "plan")
    (cwd / "events.tsv").unlink()
    return [*rows, _rate("finish, parts of one process", size, named.wall, megabytes(named.peak_rss))]


def _rate(what: str, size: int, seconds: float, memory: str = "") -> list[str]:
    return [what, f"{size / 1e9:.2f}", f"{seconds:.1f}", f"{size / 1e6 / seconds:.0f}", memory]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("read_set", type=Path)
    parser.add_argument("-n", "--replicates", type=int, default=60)
    parser.add_argument("--large", type=int, default=240, help="replicates of the set whose runs take longer; 0: none")
    parser.add_argument("--commands", choices=list(OUTPUTS), nargs="+", default=list(OUTPUTS))
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-r", "--runs", type=int, default=5)
    parser.add_argument("-k", "--kill-rounds", type=int, default=50)
    parser.add_argument("--parts", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-d", "--folder", type=Path, help="where the files of the runs go")
    parser.add_argument("--only", choices=SECTIONS, nargs="+", default=SECTIONS, help="what is measured")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks" / "results" / "parts.md")
    options = parser.parse_args()
    lines = ["# Runs in parts", "", *machine()]
    wrong = 0
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        folder, cwd = Path(made) / "set", Path(made) / "runs"
        cwd.mkdir()
        n_bases = indexed_set(options.read_set, folder, options.replicates, cwd)
        lines += [
            "",
            f"`{options.read_set.name}` x {options.replicates}: {n_bases / 1e6:.1f} Mbases, BLOW5, "
            f"-t {options.threads}, no GPU.",
        ]
        if "plan" in options.only:
            used, size = large_plan(cwd, folder, 1_000_000, options.parts)
            lines += [
                "",
                f"A plan of {options.parts:,} parts of a BAM file of {size / 1e6:.0f} MB with an index: "
                f"{used.wall:.1f} s, {megabytes(used.peak_rss)} MB.",
            ]
        if "joining" in options.only:
            joined = joining(folder, cwd, options.threads)
            lines += ["", "Joining a table of events:", ""]
            lines += table(["what", "GB", "s", "MB/s", "peak memory, MB"], joined)
        if "cost" in options.only:
            header = ["command", "one run, s", "in parts, s", "cost", "spread of one run"]
            rows = cost(folder, cwd, options.threads, options.runs, options.commands)
            lines += ["", f"What `--resume` costs; medians of {options.runs} runs each, alternately:", ""]
            lines += table(header, rows)
        if "cost" in options.only and options.large:
            large = Path(made) / "large"
            n_large = indexed_set(options.read_set, large, options.large, cwd)
            rows = cost(large, cwd, options.threads, options.runs, list(OUTPUTS)[:2])
            lines += ["", f"The same with x {options.large}, {n_large / 1e6:.0f} Mbases:", "", *table(header, rows)]
        if "kills" in options.only:
            kills, wrong = kill_rounds(folder, cwd, options.threads, options.kill_rounds, options.seed)
            lines += [
                "",
                f"Runs in parts whose processes are killed (SIGKILL) at random, {options.kill_rounds} rounds; table, "
                "modBAM, bedMethyl with its index and list of failed reads are compared with those of one run, byte "
                "for byte:",
                "",
                *table(["parts", "processes", "rounds", "kills", "wrong"], kills),
            ]
    options.output.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    if wrong:
        sys.exit("outputs differ")


if __name__ == "__main__":
    main()
