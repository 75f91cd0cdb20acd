"""``python -m tests.fuzz.kills``: kills runs at random times.

What stands under a final name must be complete and right. The next run of the same command must then
succeed, and leave nothing unfinished.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

import pysam

from .base import Base, git_version, make_base
from .runner import redirected, run_here, without_gpu

#: Arguments of one or more runs, one after the other.
Commands = tuple[tuple[str, ...], ...]

_READS = ("-r", "reads.fa.gz", "-b", "tags.bam", "-g", "ref.fa", "-t", "2", "-K", "1", "--slow5", "svb.blow5")
_PLANNED = ("calls.parts.tsv", "parts.bam", "parts.bed.gz", "parts.bed.gz.tbi", "failed.parts.tsv")
_OUTPUTS = ("-o", _PLANNED[0], "--modbam", _PLANNED[1], "--bedmethyl", _PLANNED[2], "--failed-reads", _PLANNED[4])
_PLAN = ("call-methylation", *_READS, *_OUTPUTS, "--plan", "killed_plan", "--partitions", "4")
#: What is run before in a folder, and not killed.
BEFORE: dict[str, Commands] = {"run-part and finish": (_PLAN,), "finish": (_PLAN, ("run-part", "killed_plan"))}
#: Commands, which may be several runs, with their outputs.
COMMANDS: dict[str, tuple[Commands | tuple[str, ...], tuple[str, ...]]] = {
    "call-methylation": (
        ("call-methylation", *_READS, "-o", "calls.tsv.new", "--modbam", "out.bam", "--bedmethyl", "out.bed.gz",
         "--failed-reads", "failed.tsv"),
        ("calls.tsv.new", "out.bam", "out.bed.gz", "out.bed.gz.tbi", "failed.tsv"),
    ),
    "call-methylation to Parquet": (
        ("call-methylation", *_READS, "-o", "out.parquet", "--output-format", "parquet"), ("out.parquet",),
    ),
    "eventalign": (
        ("eventalign", *_READS, "-o", "events.tsv.gz", "--summary", "summary.tsv"), ("events.tsv.gz", "summary.tsv"),
    ),
    "eventalign to BAM": (("eventalign", *_READS, "-o", "events.bam", "--sam"), ("events.bam",)),
    "index": (
        ("index", "--slow5", "none.blow5", "plain.fa"),
        ("plain.fa.index", "plain.fa.index.gzi", "plain.fa.index.fai", "plain.fa.index.readdb"),
    ),
    "indices beside the inputs": (
        ("call-methylation", *_READS, "-o", "/dev/null"), ("svb.blow5.idx", "ref.fa.fai"),
    ),
    "map": (
        ("map", "ref.fa", "tags.bam", "-t", "2", "-K", "400", "-o", "mapped.bam", "--report", "mapped.html"),
        ("mapped.bam", "mapped.bam.bai"),
    ),
    "map to compressed PAF": (("map", "ref.fa", "reads.fastq", "-t", "2", "-o", "mapped.paf.gz"), ("mapped.paf.gz",)),
    "index of map": (("map", "ref.fa", "-d", "mapped.f5i", "-t", "2"), ("mapped.f5i",)),
    "meth-freq": (("meth-freq", "-i", "calls.tsv", "-o", "freq.out.gz"), ("freq.out.gz",)),
    "call-methylation --resume": (
        ("call-methylation", *_READS, *_OUTPUTS, "--resume", "--partitions", "4"), _PLANNED,
    ),
    "run-part and finish": ((("run-part", "killed_plan"), ("finish", "killed_plan")), _PLANNED),
    "finish": ((("finish", "killed_plan"),), _PLANNED),
    "resquiggle --resume": (
        ("resquiggle", "--resume", "-t", "2", "-K", "1", "-o", "out.tsv", "reads.fastq", "svb.blow5"), ("out.tsv",),
    ),
    "index --resume": (
        ("index", "--resume", "-d", "single", "plain.fa"),
        ("plain.fa.index", "plain.fa.index.gzi", "plain.fa.index.fai", "plain.fa.index.readdb"),
    ),
    "--watch": (
        ("call-methylation", "--watch", "run", "--watch-until-idle", "0.001", "--watch-interval", "0.02", "--slow5",
         "svb.blow5", "-g", "ref.fa", "-t", "2", "-K", "1", "-o", "killed.tsv", "--bedmethyl", "killed.bed"),
        ("killed.tsv", "killed.bed"),
    ),
}  # fmt: skip

#: Outputs that a watch refreshes: they are whole, but of the reads until then.
GROWING = {"killed.bed"}


class Killer:
    """Kills runs on the sound inputs.

    Parameters
    ----------
    base : Base
    folder : Path
        Where the runs get their folders.
    names : list of str
        Of the commands.
    """

    def __init__(self, base: Base, folder: Path, names: list[str]) -> None:
        self._names = names
        self._base = base
        self._folder = folder
        self._sound: dict[str, tuple[dict[str, bytes], float]] = {}

    def prepare(self) -> None:
        """Run every command whole, twice: the second run tells how long it takes."""
        for name in self._names:
            command, outputs = COMMANDS[name]
            for _ in range(2):
                folder = self._linked(name)
                began = time.monotonic()
                messages = b"".join(redirected(folder, one)[1] for one in _each(command))
                seconds = time.monotonic() - began
                found = _outputs(folder, outputs)
                if b"ERROR]" in messages or len(found) != len(outputs):
                    raise RuntimeError(f"{name}: {messages.decode()} {sorted(found)}")
            self._sound[name] = found, seconds

    def kill(self, name: str, seed: int) -> str:
        """Kill a run of a command; return what is wrong afterwards, "" if nothing is."""
        command, outputs = COMMANDS[name]
        sound, seconds = self._sound[name]
        folder = self._linked(name)
        process = os.fork()
        if process == 0:
            os.setpgid(0, 0)
            try:
                for one in _each(command):
                    run_here(folder, one)
            finally:
                os._exit(0)
        time.sleep(random.Random(seed).uniform(0, 1.5 * seconds))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        for output, content in _outputs(folder, outputs).items():
            if content != sound[output] and output not in GROWING:
                return f"{output} is not complete: {len(content)} bytes instead of {len(sound[output])}"
        process = os.fork()
        if process == 0:
            status = 1
            try:
                status = max(run_here(folder, one) for one in _each(command))
            finally:
                os._exit(status)
        _, status = os.waitpid(process, 0)
        if status:
            return f"the next run ended with status {status}: {(folder / 'messages').read_text()[-2000:]}"
        if _outputs(folder, outputs) != sound:
            return "the next run's outputs are not the same"
        left = [path.name for path in folder.iterdir() if "unfinished" in path.name]
        return f"left: {', '.join(left)}" if left else ""

    def _linked(self, name: str) -> Path:
        folder = self._folder / f"kill-{os.getpid()}"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._base.folder, folder, copy_function=os.link)
        for output in COMMANDS[name][1]:
            (folder / output).unlink(missing_ok=True)
        kept = self._folder / f"before {name}"
        if not kept.exists():
            for command in BEFORE.get(name, ()):
                _, messages = redirected(folder, command)
                if b"ERROR]" in messages:
                    raise RuntimeError(f"{name}: {messages.decode()}")
            if name in BEFORE:
                shutil.copytree(folder / "killed_plan", kept)
        elif name in BEFORE:
            shutil.copytree(kept, folder / "killed_plan")
        return folder


def _each(command: Commands | tuple[str, ...]) -> Commands:
    return (command,) if isinstance(command[0], str) else command  # type: ignore[return-value]


def _outputs(folder: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}


def kill_runs(kills: int, seed: int, names: list[str]) -> tuple[Counter[str], list[str]]:
    """Kill so many runs of some commands; return how many of each, and what was wrong."""
    from f5py.commands import resquiggle

    resquiggle.READS_PER_PART = 1  # there are few
    counts: Counter[str] = Counter()
    problems = []
    with tempfile.TemporaryDirectory(prefix="f5py-kills-") as place:
        base = make_base(Path(place) / "base")
        _make_run_folder(base.folder)
        killer = Killer(base, Path(place), names)
        killer.prepare()
        for number in range(seed, seed + kills):
            name = names[number % len(names)]
            if problem := killer.kill(name, number):
                problems.append(f"{name}, seed {number}: {problem}")
                print(problems[-1], flush=True)
            counts[name] += 1
    return counts, problems


def _make_run_folder(folder: Path) -> None:
    """Make what a sequencer would leave: alignments of other reads in every file."""
    (folder / "run").mkdir()
    with pysam.AlignmentFile(str(folder / "reads.bam")) as source:
        records = list(source.fetch(until_eof=True))
        for i in range(3):
            with pysam.AlignmentFile(str(folder / "run" / f"pass_{i}.bam"), "wb", template=source) as out:
                for record in records[i::3]:
                    out.write(record)


def main() -> int:
    """Run what was asked for; status 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--command", action="append", choices=COMMANDS, help="only this command; repeatable")
    parser.add_argument("--report", type=Path, help="write a Markdown table here")
    chosen = parser.parse_args()
    without_gpu()
    counts, problems = kill_runs(chosen.kills, chosen.seed, chosen.command or list(COMMANDS))
    lines = [
        "# Runs killed at random times",
        "",
        f"{chosen.kills:,} runs ended by SIGKILL, {datetime.now(timezone.utc):%Y-%m-%d}, {platform.machine()}, "
        f"commit {git_version()}. After each, files under final names must be complete and right;",
        "the same command must then succeed, give the same bytes and leave nothing unfinished.",
        "",
        "| command | kills |",
        "|---|---:|",
        *(f"| {name} | {count:,} |" for name, count in counts.items()),
        "",
        f"Wrong: {len(problems)}.",
        *problems,
    ]
    print("\n".join(lines))
    if chosen.report is not None:
        chosen.report.write_text("\n".join(lines) + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
