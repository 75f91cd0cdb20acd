"""Whole runs on a machine with many cores and a GPU, this version beside an earlier one.

    git archive COMMIT | tar -x -C OLD
    python benchmarks/whole_machine.py READ_SET --old OLD --scratch /mnt/ram [--only calls,index] -o FOLDER

READ_SET is as for `large_set.py`. All files lie in the scratch folder, best in memory. Every run's output is compared
with the first one of its kind and version. `FOLDER/runs.json` gets a line for each run at once, with the times that
the run itself has told; `FOLDER/tables.md` the tables.
"""

from __future__ import annotations

import argparse
import filecmp
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from large_set import make_sets
from measure import CommandFailed, Usage, measure
from report import ROOT, machine, table

_TIME = re.compile(r"([\w ()/-]+?) time: ([\d.]+) sec")
_SIZES = {"x1": 1, "x8": 8, "x60": 60, "x240": 240, "x480": 480}


@dataclass
class Bench:
    """State and results that all parts share."""

    source: Path
    scratch: Path
    folders: dict[str, Path]  # of the versions
    ends_at: float
    log: Path
    rounds: int = 1
    uses: tuple[str, ...] = ("on", "auto", "off")
    runs: list[dict] = field(default_factory=list)

    def set_of(self, size: str, *formats: str) -> Path:
        """Find the folder of a set of that size, or make it if it is not there."""
        folder = self.scratch / size
        if not folder.exists():
            started = time.perf_counter()
            make_sets(self.source, folder, _SIZES[size], formats or ("blow5",))
            print(f"{size} made in {time.perf_counter() - started:.1f} s", flush=True)
        return folder

    def command(self, version: str, *arguments: object) -> tuple[list[str], dict[str, str]]:
        """Make a command of f5py of that version, and its environment."""
        path = os.pathsep.join([str(self.folders[version]), os.environ.get("PYTHONPATH", "")])
        return [sys.executable, "-m", "f5py", *map(str, arguments)], {"PYTHONPATH": path}

    def run(
        self, part: str, what: str, version: str, arguments: list, output: Path, same_as: str = "", **environment: str
    ) -> Usage | None:
        """Measure one run, unless the time is over."""
        if time.monotonic() > self.ends_at:
            print(f"no time for {part} {what} {version}", flush=True)
            return None
        command, variables = self.command(version, *arguments)
        output.unlink(missing_ok=True)
        log = self.scratch / "log.txt"
        row: dict = {"part": part, "what": what, "version": version}
        try:
            # elsewhere than in a checkout, whose folder Python would take first
            used = measure(command, None, log, cwd=self.scratch, environment=variables | environment)
        except CommandFailed as problem:
            row["failed"] = str(problem)[-600:]
            used = None
        else:
            row |= used._asdict() | {"cores": used.cpu / used.wall}
            row["times"] = {name.strip(): float(seconds) for name, seconds in _TIME.findall(log.read_text())}
            row["said"] = [line for line in log.read_text().splitlines() if "advis" in line or "WARN" in line][-6:]
            row["bytes"] = output.stat().st_size if output.is_file() else 0
            if same_as and output.is_file():
                kept = self.scratch / f"expected.{same_as}.{version}"
                if not kept.exists():
                    os.replace(output, kept)
                row["same"] = not output.exists() or filecmp.cmp(output, kept, shallow=False)
        self.runs.append(row)
        with self.log.open("a") as out:
            out.write(json.dumps(row) + "\n")
        shown = f"{used.wall:.2f} s wall, {row['cores']:.2f} cores, {used.peak_rss >> 20} MB" if used else row["failed"]
        print(f"{part} | {what} | {version} | {shown} | same: {row.get('same', '-')}", flush=True)
        return used


def _calls(folder: Path, *options: object, reads: bool = True, signals: tuple = ()) -> list:
    of_reads = ["-r", folder / "reads.fasta"] if reads else ["--slow5", folder / "reads.blow5"]
    return ["call-methylation", *of_reads, "-b", folder / "reads.bam", "-g", folder / "ref.fa", *signals, *options]


def _indexed(bench: Bench, size: str) -> Path:
    """Find the folder of a set with an index of the last version."""
    folder = bench.set_of(size, "blow5")
    if not (folder / "reads.fasta.index").exists():
        out = bench.scratch / "out.tsv"
        arguments = ["index", "--slow5", folder / "reads.blow5", folder / "reads.fasta"]
        bench.run("index", f"{size}", list(bench.folders)[-1], arguments, out)
    return folder


def warm(bench: Bench, cores: int) -> None:
    """Compile the code of the others, on a small set."""
    folder = bench.set_of("x1", "blow5", "pod5", "gzip", "vbz")
    out = bench.scratch / "out.tsv"
    for version in bench.folders:
        bench.run("warm", "index", version, ["index", "--slow5", folder / "reads.blow5", folder / "reads.fasta"], out)
        for gpu in ("off", "on"):
            for options in ([], ["--per-site"], ["--accurate"], ["--accurate", "--per-site"]):
                arguments = _calls(folder, "-o", out, f"--gpu={gpu}", *options)
                bench.run("warm", " ".join(["calls", gpu, *options]), version, arguments, out)
        given = _calls(folder, "-o", out, "--gpu=off")[1:]
        bench.run("warm", "eventalign", version, ["eventalign", *given], out)


def index(bench: Bench, cores: int) -> None:
    """Index the large set; that of the last version stays."""
    folder, out = bench.set_of("x480", "blow5"), bench.scratch / "out.tsv"
    for version in bench.folders:
        for old in folder.glob("reads.fasta.*"):
            old.unlink()
        (folder / "reads.blow5.idx").unlink(missing_ok=True)
        arguments = ["index", "--slow5", folder / "reads.blow5", folder / "reads.fasta", "-t", cores]
        bench.run("index", "x480", version, arguments, out)


def calls(bench: Bench, cores: int, size: str = "x480") -> None:
    """call-methylation of the large set."""
    folder, out = _indexed(bench, size), bench.scratch / "out.tsv"
    for _ in range(bench.rounds):
        for gpu in bench.uses:
            for version in bench.folders:
                options = "-o", out, f"--gpu={gpu}", "-t", cores
                bench.run("calls", f"{size} -r --gpu {gpu} -t {cores}", version, _calls(folder, *options), out, size)


def no_reads(bench: Bench, cores: int) -> None:
    """Run with bases from the records instead of the reads."""
    folder, out = bench.set_of("x480", "blow5"), bench.scratch / "out.tsv"
    for gpu in ("on", "off"):
        for version in bench.folders:
            options = "-o", out, f"--gpu={gpu}", "-t", cores
            arguments = _calls(folder, *options, reads=False)
            bench.run("calls", f"x480 --gpu {gpu} -t {cores}, no -r", version, arguments, out, "x480")


def sizes(bench: Bench, cores: int) -> None:
    """Small sets, where starting a GPU costs more than it gives."""
    out = bench.scratch / "out.tsv"
    for size in ("x1", "x8", "x60"):
        folder = _indexed(bench, size)
        for _ in range(2):
            for gpu in ("off", "on", "auto"):
                for version in bench.folders:
                    options = "-o", out, f"--gpu={gpu}", "-t", cores
                    bench.run("sizes", f"{size} --gpu {gpu}", version, _calls(folder, *options), out, size)


def threads(bench: Bench, cores: int) -> None:
    """One thread against all."""
    folder, out = _indexed(bench, "x60"), bench.scratch / "out.tsv"
    version = list(bench.folders)[-1]
    for n in (1, cores):
        options = "-o", out, "--gpu=off", "-t", n
        bench.run("threads", f"x60 --gpu off -t {n}", version, _calls(folder, *options), out, "x60")


def batches(bench: Bench, cores: int) -> None:
    """Other batch sizes, and the same bytes."""
    folder, out = _indexed(bench, "x60"), bench.scratch / "out.tsv"
    version = list(bench.folders)[-1]
    for gpu in ("on", "off"):
        for k, b in (("64", "1M"), ("512", "5M"), ("2048", "20M"), ("4096", "40M"), ("8192", "100M")):
            options = "-o", out, f"--gpu={gpu}", "-t", cores, "-K", k, "-B", b
            bench.run("batches", f"x60 --gpu {gpu} -K {k} -B {b}", version, _calls(folder, *options), out, "x60")


def large_batches(bench: Bench, cores: int) -> None:
    """Batch sizes on the large set."""
    folder, out = _indexed(bench, "x480"), bench.scratch / "out.tsv"
    version = list(bench.folders)[-1]
    for gpu in ("on", "off"):
        for k, b in (("512", "5M"), ("1024", "10M"), ("2048", "20M"), ("4096", "40M")):
            options = "-o", out, f"--gpu={gpu}", "-t", cores, "-K", k, "-B", b
            bench.run("batches", f"x480 --gpu {gpu} -K {k} -B {b}", version, _calls(folder, *options), out, "x480")


def single_sites(bench: Bench, cores: int) -> None:
    """Single sites beside groups, with either noise: each kind against the run without `--per-site`."""
    out = bench.scratch / "out.tsv"
    for size in ("x60", "x480"):
        folder = _indexed(bench, size)
        for noise in ([], ["--accurate"]):
            for gpu in bench.uses:
                for kind in ([], ["--per-site"]):
                    for version in bench.folders:
                        what = " ".join([size, f"--gpu {gpu}", *noise, *kind])
                        options = "-o", out, f"--gpu={gpu}", "-t", cores, *noise, *kind
                        name = "".join([size, *noise, *kind])
                        bench.run("single_sites", what, version, _calls(folder, *options), out, name)


def formats(bench: Bench, cores: int) -> None:
    """Signals in other formats, at defaults."""
    size = "x240"
    folder, out = bench.set_of(size, "blow5", "pod5", "gzip", "vbz"), bench.scratch / "out.tsv"
    version = list(bench.folders)[-1]
    signals = {
        "BLOW5": ["--slow5", folder / "reads.blow5"],
        "POD5": ["--pod5", folder / "pod5"],
        "fast5, VBZ": ["--fast5", folder / "vbz"],
        "fast5, gzip": ["--fast5", folder / "gzip"],
    }
    for gpu in bench.uses[:1]:
        for name, options in signals.items():
            arguments = ["call-methylation", *options, "-b", folder / "reads.bam", "-g", folder / "ref.fa"]
            arguments += ["-o", out, f"--gpu={gpu}", "-t", cores]
            bench.run("formats", f"{size} {name} --gpu {gpu}", version, arguments, out, size)


def eventalign(bench: Bench, cores: int) -> None:
    """Text and Parquet of eventalign, and copying as many bytes."""
    folder = _indexed(bench, "x60")
    given = ["-r", folder / "reads.fasta", "-b", folder / "reads.bam", "-g", folder / "ref.fa", "-t", cores]
    for gpu in bench.uses[:1]:
        for kind in ("tsv", "parquet"):
            out = bench.scratch / f"events.{kind}"
            for version in bench.folders:
                arguments = ["eventalign", *given, "-o", out, f"--gpu={gpu}"]
                bench.run("eventalign", f"x60 {kind} --gpu {gpu}", version, arguments, out, f"events.{kind}")
            out.unlink(missing_ok=True)
    text = bench.scratch / "expected.events.tsv.now"
    if text.exists():
        started = time.perf_counter()
        subprocess.run(["dd", f"if={text}", f"of={bench.scratch / 'copy'}", "bs=4M", "status=none"], check=True)
        print(f"dd of {text.stat().st_size / 1e9:.2f} GB: {time.perf_counter() - started:.2f} s", flush=True)
        bench.runs.append({"part": "eventalign", "what": "dd", "version": "", "wall": time.perf_counter() - started})
        for path in (bench.scratch / "copy", *bench.scratch.glob("expected.events.*")):
            path.unlink(missing_ok=True)


def dask(bench: Bench, cores: int) -> None:
    """Run a plan with four workers of dask, beside one process."""
    if importlib.util.find_spec("distributed") is None:
        return
    folder, out = _indexed(bench, "x480"), bench.scratch / "out.tsv"
    version = list(bench.folders)[-1]
    plan = bench.scratch / "plan"
    shutil.rmtree(plan, ignore_errors=True)
    options = ["-o", out, "--gpu=off", "--plan", plan, "--engine", "dask", "--workers", 4, "-t", cores // 4]
    bench.run("dask", "x480, 4 workers", version, _calls(folder, *options), out, "x480")
    shutil.rmtree(plan, ignore_errors=True)


def first_run(bench: Bench, cores: int) -> None:
    """Without any code that an earlier run has compiled."""
    folder, out = _indexed(bench, "x1"), bench.scratch / "out.tsv"
    for version in bench.folders:
        for gpu in ("off", "on"):
            fresh = bench.scratch / "fresh"
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            kept = {
                "NUMBA_CACHE_DIR": str(fresh / "numba"),
                "XDG_CACHE_HOME": str(fresh / "cache"),
                "CUPY_CACHE_DIR": str(fresh / "cupy"),
                "CUDA_CACHE_PATH": str(fresh / "cuda"),
            }
            options = "-o", out, f"--gpu={gpu}", "-t", cores
            bench.run("first run", f"x1 --gpu {gpu}", version, _calls(folder, *options), out, "x1", **kept)


PARTS: dict[str, Callable[[Bench, int], None]] = {
    part.__name__: part
    for part in (
        warm, index, calls, no_reads, sizes, threads, batches, large_batches, single_sites, formats, eventalign, dask,
        first_run,
    )
}  # fmt: skip


def _rows(runs: list[dict], part: str) -> Iterator[list[str]]:
    kinds = dict.fromkeys((row["what"], row["version"]) for row in runs if row["part"] == part)
    for what, version in kinds:
        same = [row for row in runs if (row["part"], row["what"], row["version"]) == (part, what, version)]
        done = [row for row in same if "failed" not in row]
        if not done:
            yield [what, version, "failed", "", "", ""]
            continue
        walls = [row["wall"] for row in done]
        equal = {row["same"] for row in done if "same" in row}
        yield [
            what, version, f"{statistics.median(walls):.2f} ({min(walls):.2f})",
            f"{statistics.median(row.get('cores', 0) for row in done):.1f}",
            f"{max(row.get('peak_rss', 0) for row in done) >> 20}",
            "" if not equal else "yes" if equal == {True} else "no",
        ]  # fmt: skip


def tables(runs: list[dict]) -> list[str]:
    """Write the Markdown tables of all parts."""
    lines: list[str] = []
    head = ["run", "version", "wall, s", "cores busy", "memory, MB", "same bytes"]
    for part in dict.fromkeys(row["part"] for row in runs if row["part"] != "warm"):
        lines += [f"## {part}", "", *table(head, list(_rows(runs, part))), ""]
    return lines


def main() -> None:
    """Run the parts and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--old", type=Path, help="folder of an earlier version")
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument(
        "--uses",
        default="on,auto,off",
        help="of the GPU, by the parts `calls` and `single_sites`; the first one by `formats` and `eventalign`",
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="no run begins after so many")
    parser.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("-o", "--output", type=Path, default=Path("."))
    arguments = parser.parse_args()
    about = machine()
    folders = {"before": arguments.old.resolve()} if arguments.old else {}
    folders["now"] = ROOT
    arguments.output.mkdir(parents=True, exist_ok=True)
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    bench = Bench(
        arguments.source.resolve(), arguments.scratch.resolve(), folders, time.monotonic() + arguments.seconds,
        arguments.output / "runs.json", arguments.rounds, tuple(arguments.uses.split(",")),
    )  # fmt: skip
    for name in arguments.only.split(","):
        PARTS[name](bench, arguments.threads)
        text = ["# Whole runs on one machine", "", *about, "", *tables(bench.runs)]
        (arguments.output / "tables.md").write_text("\n".join(text))
    print("\n".join(tables(bench.runs)))


if __name__ == "__main__":
    main()
