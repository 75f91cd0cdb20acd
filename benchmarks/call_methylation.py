"""Benchmark of ``f5py call-methylation``: against nanopolish, its outputs, its memory, and its start-up.

The comparison replicates a read set, indexes it with each tool, and then runs the two callers in turn,
several times, on the same files. f5py has run once before, so that its compiled code is in the cache. The
tables of the two are compared, so that speed is never reported for different answers.
"""

from __future__ import annotations

import argparse
import filecmp
import hashlib
import platform
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from compare import TOLERANCE, compare_calls, reads_with_secondary
from measure import CommandFailed, Usage, measure
from replicate import replicate_set
from report import ROOT, cpu, first_line, least, machine, median, megabytes, one_line, spread, table, wall

RESULTS = Path(__file__).resolve().parent / "results"
# The compressed .index and its .gzi depend on the compressor; what they hold is compared through the .fai.
INDEX_FILES = (".index.fai", ".index.readdb")


class Caller:
    """A methylation caller with its own copy of the index, in a folder of its own."""

    def __init__(self, name: str, command: Sequence[str], read_set: Path, threads: int, cwd: Path | None = None):
        self.name = name
        self.command = list(command)
        self.read_set = read_set
        self.threads = threads
        # nanopolish, like f5c, does not count hard-clipped bases; the ratios are compared on the same positions.
        self.extra = ["--hard-clips=no"] if name == "f5py" else []
        self.cwd = cwd
        self.folder = read_set.with_name(f"{read_set.name}_{name}")
        self.folder.mkdir()
        self.reads = self.folder / "reads.fasta"
        self.reads.symlink_to(read_set / "reads.fasta")
        self.calls = self.folder / "calls.tsv"
        self.log = self.folder / "log.txt"

    def index(self) -> Usage:
        """Index the reads."""
        arguments = ["index", "-d", str(self.read_set / "fast5"), str(self.reads)]
        return measure([*self.command, *arguments], log=self.log, cwd=self.cwd)

    def call(self, environment: dict[str, str] | None = None) -> Usage:
        """Call methylation into `calls`, the messages into `log`."""
        bam, genome = self.read_set / "reads.bam", self.read_set / "ref.fa"
        arguments = ["-t", str(self.threads), "-r", str(self.reads), "-b", str(bam), "-g", str(genome)]
        return measure(
            [*self.command, "call-methylation", *self.extra, *arguments], self.calls, self.log, self.cwd, environment
        )


class Benchmark:
    """The settings of a run and its scratch folder; each method makes one section of the report."""

    def __init__(self, options: argparse.Namespace, scratch: Path):
        self.options = options
        self.scratch = scratch
        self.f5py_command = shlex.split(options.f5py) if options.f5py else [sys.executable, "-m", "f5py"]
        # "-m f5py" finds this checkout from its root, installed or not.
        self.f5py_cwd = None if options.f5py else ROOT
        self.failures: list[str] = []

    def f5py(self, read_set: Path) -> Caller:
        """f5py on a read set."""
        return Caller("f5py", self.f5py_command, read_set, self.options.threads, self.f5py_cwd)

    def read_set(self, replicates: int) -> tuple[Path, str]:
        """Make a replicated set; return its folder, alone in a new one, and a description."""
        folder = Path(tempfile.mkdtemp(dir=self.scratch)) / f"x{replicates}"
        say(f"replicating the read set {replicates} times")
        counts = replicate_set(self.options.read_set, folder, replicates)
        return folder, (
            f"`{self.options.read_set.resolve().name}` x {replicates}: {counts.reads:,} reads, "
            f"{counts.alignments:,} alignments, {counts.bases / 1e6:.2f} Mbases, multi-read fast5 (gzip)"
        )

    def compare(self) -> list[str]:
        """nanopolish and f5py in turn."""
        folder, description = self.read_set(self.options.replicates)
        nanopolish = Caller("nanopolish", shlex.split(self.options.nanopolish), folder, self.options.threads)
        f5py = self.f5py(folder)
        index = {}
        for caller in (nanopolish, f5py):
            say(f"{caller.name} index")
            index[caller.name] = caller.index()
        same_index = all(
            filecmp.cmp(f"{nanopolish.reads}{suffix}", f"{f5py.reads}{suffix}", shallow=False) for suffix in INDEX_FILES
        )
        say("f5py call-methylation, not timed, to fill the cache of compiled code")
        f5py.call()
        runs: dict[str, list[Usage]] = {nanopolish.name: [], f5py.name: []}
        f5py_logs: list[str] = []
        f5py_outputs = set()
        for round_number in range(1, self.options.rounds + 1):
            for caller in (nanopolish, f5py):
                runs[caller.name].append(caller.call())
                say(f"round {round_number}: {caller.name:10s} {one_line(runs[caller.name][-1])}")
            f5py_outputs.add(digest(f5py.calls))
            f5py_logs.append(f5py.log.read_text(errors="replace"))

        reference, ours = runs[nanopolish.name], runs[f5py.name]
        wall_ratio = median(reference, wall) / median(ours, wall)
        cpu_ratio = median(reference, cpu) / median(ours, cpu)
        say(f"nanopolish / f5py: wall {wall_ratio:.2f}, CPU {cpu_ratio:.2f}")
        rows = []
        for caller in (nanopolish, f5py):
            usages = runs[caller.name]
            rows.append(
                [
                    f"{caller.name} call-methylation",
                    *(f"{median(usages, of):.2f} ({least(usages, of):.2f})" for of in (wall, cpu)),
                    megabytes(max(usage.peak_rss for usage in usages)),
                ]
            )
        rows.append(
            [
                "**nanopolish / f5py**",
                f"**{wall_ratio:.2f}** ({least(reference, wall) / least(ours, wall):.2f})",
                f"**{cpu_ratio:.2f}** ({least(reference, cpu) / least(ours, cpu):.2f})",
                "",
            ]
        )
        all_rounds = "; ".join(
            f"{name} " + ", ".join(f"{usage.wall:.2f}" for usage in usages) for name, usages in runs.items()
        )
        index_times = ", ".join(f"{name} {usage.wall:.2f}" for name, usage in index.items())
        lines = [
            "## f5py against nanopolish",
            "",
            f"{description}; `-t {self.options.threads}`; rounds: {self.options.rounds}, the two in turn.",
            "Median (minimum) of the rounds; peak memory is the largest of the rounds.",
            "",
            *table(["", "wall, s", "user + system, s", "peak memory, MB"], rows),
            "",
            f"All rounds, wall seconds: {all_rounds}.",
            f"Index, wall seconds, once: {index_times}; the .fai and .readdb files are "
            f"{'byte-equal' if same_index else '**not** equal'}.",
            "",
            *self._agreement(nanopolish.calls, f5py.calls, folder / "reads.bam", len(f5py_outputs) == 1),
            "",
            "Messages of f5py's fastest round:",
            "",
            "```",
            *self._messages(f5py_logs[ours.index(min(ours, key=wall))]),
            "```",
        ]
        if not same_index:
            self.failures.append("the index files differ")
        return lines

    def _agreement(self, theirs: Path, ours: Path, bam: Path, repeatable: bool) -> list[str]:
        say("comparing the calls")
        agreement = compare_calls(theirs, ours, reads_with_secondary(bam))
        if not agreement.same_keys:
            self.failures.append("the two tables have different rows")
        if agreement.other_columns:
            self.failures.append(f"{agreement.other_columns} rows differ in motif count or sequence")
        if not repeatable:
            self.failures.append("f5py's output differs from round to round")
        shared = max(agreement.shared, 1)
        if agreement.within / shared < 0.999:
            self.failures.append(f"fewer than 99.9 % of the ratios agree within {TOLERANCE}")
        rows = [
            ["rows, nanopolish", f"{agreement.rows_first:,}"],
            ["rows, f5py", f"{agreement.rows_second:,}"],
            [
                "rows only in nanopolish (of reads with secondary alignments)",
                f"{agreement.only_first:,} ({agreement.only_first_secondary:,})",
            ],
            ["rows only in f5py", f"{agreement.only_second:,}"],
            ["shared rows with another motif count or sequence", f"{agreement.other_columns:,}"],
            [f"log_lik_ratio within {TOLERANCE}", f"{100 * agreement.within / shared:.3f} %"],
            ["log_lik_ratio equal as printed", f"{100 * agreement.identical / shared:.2f} %"],
            [
                "log_lik_ratio difference, mean and largest",
                f"{agreement.mean:.4f}, {agreement.largest:.2f}",
            ],
            ["f5py's output the same bytes in every round", "yes" if repeatable else "**no**"],
        ]
        return table(["agreement", ""], rows)

    def _messages(self, log: str) -> list[str]:
        """Return the last lines of a log, without the scratch folder's name and terminal control characters."""
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", log).replace(str(self.scratch), "SCRATCH")
        return [line.split("\r")[-1] for line in text.strip().splitlines()[-40:]]

    def outputs(self) -> list[str]:
        """Measure the cost of outputs beside the table, all in turn."""
        folder, description = self.read_set(self.options.replicates)
        f5py = self.f5py(folder)
        f5py.index()
        f5py.call()
        modbam, bedmethyl, parquet = (str(f5py.folder / name) for name in ("calls.bam", "calls.bed", "calls.parquet"))
        kinds = {
            "table": [],
            "table, modBAM": ["--modbam", modbam],
            "table, bedMethyl": ["--bedmethyl", bedmethyl],
            "table, modBAM, bedMethyl": ["--modbam", modbam, "--bedmethyl", bedmethyl],
            "Parquet": ["-o", parquet],
        }
        runs: dict[str, list[Usage]] = {what: [] for what in kinds}
        for round_number in range(1, self.options.rounds + 1):
            for what, f5py.extra in kinds.items():
                runs[what].append(f5py.call())
                say(f"round {round_number}: {what}: {one_line(runs[what][-1])}")
        rows = [
            [
                what,
                *(f"{median(usages, of):.2f} ({least(usages, of):.2f})" for of in (wall, cpu)),
                f"{100 * (median(usages, wall) / median(runs['table'], wall) - 1):+.1f} %",
                megabytes(max(usage.peak_rss for usage in usages)),
            ]
            for what, usages in runs.items()
        ]
        return [
            "## Outputs",
            "",
            f"{description}; `-t {self.options.threads}`; rounds: {self.options.rounds}, all in turn. "
            "Median (minimum) of the rounds.",
            "",
            *table(["outputs", "wall, s", "user + system, s", "wall, against the table", "peak memory, MB"], rows),
        ]

    def memory(self) -> list[str]:
        """Peak memory of f5py with few and with many replicates."""
        sizes = self.options.memory_replicates
        rows, peaks = [], []
        for replicates in sizes:
            folder, description = self.read_set(replicates)
            f5py = self.f5py(folder)
            f5py.index()
            if not peaks:
                say("f5py call-methylation, not measured, to fill the cache of compiled code")
                f5py.call()
            for options in ([], ["-B", "1M"]):
                f5py.extra = options
                usage = f5py.call()
                say(f"x{replicates} {' '.join(options)}: {one_line(usage)}")
                if options:
                    peaks.append(usage.peak_rss)
                batches = re.findall(r"Entries \(([\d.]+)M bases\)", f5py.log.read_text())
                largest = max(float(bases) for bases in batches)
                described = f"{description}, {' '.join(options) or 'defaults'}"
                row = [described, f"{largest:.1f}", megabytes(usage.peak_rss), f"{usage.wall:.2f}", f"{usage.cpu:.2f}"]
                rows.append(row)
            shutil.rmtree(folder.parent)
        growth = 100 * (peaks[-1] / peaks[0] - 1)
        return [
            "## Peak memory of f5py call-methylation",
            "",
            f"`-t {self.options.threads}`, compiled code in the cache.",
            "",
            *table(["read set", "largest batch, Mbases", "peak memory, MB", "wall, s", "user + system, s"], rows),
            "",
            "Memory follows the largest batch: at the defaults batches end after 512 reads, however long these are. "
            f"With batches of one size, the peak changes by {growth:+.1f} % from {sizes[0]} to {sizes[-1]} replicates.",
        ]

    def startup(self) -> list[str]:
        """Time of the help, of the first run after installation, and of the next ones."""
        rows = []
        for arguments in (["--help"], ["call-methylation", "--help"]):
            command = [*self.f5py_command, *arguments]
            usages = [measure(command, cwd=self.f5py_cwd) for _ in range(10)]
            text = " ".join(["f5py", *arguments])
            rows.append([f"`{text}`, median (minimum) of 10", spread(usages), megabytes(usages[0].peak_rss)])
            say(f"{text}: {median(usages, wall):.3f} s")
        folder, description = self.read_set(1)
        f5py = self.f5py(folder)
        f5py.index()
        environment = {"NUMBA_CACHE_DIR": str(self.scratch / "numba_cache")}
        cold = f5py.call(environment)
        say(f"cold: {one_line(cold)}")
        if not any((self.scratch / "numba_cache").rglob("*.nbi")):
            self.failures.append("the run with an empty NUMBA_CACHE_DIR left nothing there; was it cold?")
        warm = [f5py.call(environment) for _ in range(self.options.rounds)]
        say(f"warm: {median(warm, wall):.2f} s")
        rows.append(["`f5py call-methylation`, cold", f"{cold.wall:.2f}", megabytes(cold.peak_rss)])
        rows.append(
            [
                f"`f5py call-methylation`, warm, median (minimum) of {len(warm)}",
                spread(warm),
                megabytes(max(usage.peak_rss for usage in warm)),
            ]
        )
        return [
            "## Start-up",
            "",
            f"{description}; `-t {self.options.threads}`. Cold: the first run with an empty cache of "
            "compiled code. Wall time from the start of the process to its end.",
            "",
            *table(["", "wall, s", "peak memory, MB"], rows),
        ]

    def header(self) -> list[str]:
        """Machine, date and versions."""
        versions = [first_line([*self.f5py_command, "--version"], self.f5py_cwd)]
        if Benchmark.compare in self.options.sections:
            versions.append(first_line([*shlex.split(self.options.nanopolish), "--version"]))
        if not self.options.f5py:
            versions.append(f"Python {platform.python_version()}")
            versions += [f"{name} {metadata.version(name)}" for name in ("numpy", "numba", "h5py", "pysam")]
        return [
            "# call-methylation",
            "",
            *machine(),
            f"* versions: {', '.join(versions)}",
            f"* made by: `python benchmarks/call_methylation.py {' '.join(self.options.shown)}`",
            "",
        ]


def digest(path: Path) -> str:
    with path.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("read_set", type=Path, help="folder of the read set, see replicate.py")
    parser.add_argument("--memory", action="store_true", help="measure f5py's peak memory instead")
    parser.add_argument("--outputs", action="store_true", help="measure what further outputs cost instead")
    parser.add_argument("--startup", action="store_true", help="measure help, cold and warm start instead")
    parser.add_argument("--all", action="store_true", help="all of these in one report")
    parser.add_argument("-n", "--replicates", type=int, default=8, help="for the comparison (default: 8)")
    parser.add_argument("--rounds", type=int, default=3, help="timed runs of each (default: 3)")
    parser.add_argument("-t", "--threads", type=int, default=2, help="for both callers (default: 2)")
    parser.add_argument("--memory-replicates", type=int, nargs="+", default=[8, 40], metavar="N", help="default: 8 40")
    parser.add_argument("--nanopolish", default="nanopolish", metavar="COMMAND", help="default: nanopolish")
    parser.add_argument("--f5py", metavar="COMMAND", help="default: -m f5py of this checkout")
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="where to put temporary files")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: by mode, in results/")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or options.threads < 1:
        parser.error("rounds and threads must be at least 1")
    others = {name: getattr(Benchmark, name) for name in ("outputs", "memory", "startup")}
    chosen = {name: section for name, section in others.items() if options.all or getattr(options, name)}
    options.sections = [] if chosen and not options.all else [Benchmark.compare]
    options.sections += chosen.values()
    if options.output is None:
        suffix = "" if options.all else "".join(f"_{name}" for name in chosen)
        options.output = RESULTS / f"call_methylation{suffix}.md"
    # The command as a reader can repeat it: without the folders of this machine.
    options.shown = ["READ_SET" if text == str(options.read_set) else text for text in arguments]
    return options


def main() -> None:
    options = parse(sys.argv[1:])
    try:
        with tempfile.TemporaryDirectory(prefix="f5py_benchmark_", dir=options.scratch) as scratch:
            benchmark = Benchmark(options, Path(scratch).resolve())
            lines = benchmark.header()
            for section in options.sections:
                lines += [*section(benchmark), ""]
    except (CommandFailed, OSError, ValueError) as problem:
        sys.exit(f"call_methylation.py: {problem}")
    if benchmark.failures:
        lines += ["**Not as it must be:** " + "; ".join(benchmark.failures) + ".", ""]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text("\n".join(lines[:-1]) + "\n")
    say(f"written to {options.output}")
    if benchmark.failures:
        sys.exit("call_methylation.py: " + "; ".join(benchmark.failures))


if __name__ == "__main__":
    main()
