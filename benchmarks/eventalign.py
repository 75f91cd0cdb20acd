"""Benchmark of ``f5py eventalign``: against nanopolish, its output formats, its writing alone, and its memory.

The comparison replicates a read set, indexes it, and runs the two programs in turn, several times, on the same
files with the same filters. f5py has run once before, so that its compiled code is in the cache. The rows of the two
are compared, so that speed is never reported for different answers.
"""

from __future__ import annotations

import argparse
import platform
import shlex
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import BinaryIO

import numpy as np
from batches import load_batch, repeat
from measure import CommandFailed, Usage, measure
from replicate import replicate_set
from report import ROOT, cpu, first_line, least, machine, median, megabytes, one_line, table, wall

RESULTS = Path(__file__).resolve().parent / "results"
#: nanopolish's defaults: no filter by mapping quality or of secondary alignments, clips not counted.
SAME_FILTERS = ["--min-mapq=0", "--secondary=yes", "--hard-clips=no"]
#: What is expected: wall time against nanopolish's, and MB/s of text from one thread.
MIN_SPEED_UP = 4
MIN_WRITING = 300
#: Columns that say which event is where: contig, position, k-mer, read, strand, event.
KEY_COLUMNS = 6


class Benchmark:
    """The settings of a run and its scratch folder; each method makes one section of the report."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self.options = options
        self.scratch = scratch
        self.f5py = [sys.executable, "-m", "f5py"]
        self.failures: list[str] = []

    def read_set(self, replicates: int) -> tuple[Path, list[str], str]:
        """Make and index a replicated set; return its folder, the input options and a description."""
        folder = Path(tempfile.mkdtemp(dir=self.scratch)) / f"x{replicates}"
        say(f"replicating the read set {replicates} times")
        counts = replicate_set(self.options.read_set, folder, replicates)
        measure([*self.f5py, "index", "-d", str(folder / "fast5"), str(folder / "reads.fasta")], cwd=ROOT)
        inputs = ["-r", "reads.fasta", "-b", "reads.bam", "-g", "ref.fa"]
        inputs = [str(folder / text) if "." in text else text for text in inputs]
        description = (
            f"`{self.options.read_set.resolve().name}` x {replicates}: {counts.reads:,} reads, "
            f"{counts.alignments:,} alignments, {counts.bases / 1e6:.2f} Mbases, multi-read fast5 (gzip)"
        )
        return folder, inputs, description

    def run_f5py(self, inputs: list[str], output: Path, *options: str) -> Usage:
        threads = ["-t", str(self.options.threads)]
        command = [*self.f5py, "eventalign", *inputs, *threads, "-o", str(output), *options]
        return measure(command, log=self.scratch / "log.txt", cwd=ROOT)

    def compare(self) -> list[str]:
        """nanopolish and f5py in turn, and f5py's other outputs."""
        folder, inputs, description = self.read_set(self.options.replicates)
        theirs, ours = folder / "nanopolish.tsv", folder / "f5py.tsv"
        nanopolish = [*shlex.split(self.options.nanopolish), "eventalign", *inputs, "-t", str(self.options.threads)]
        say("f5py eventalign, not timed, to fill the cache of compiled code")
        self.run_f5py(inputs, ours, *SAME_FILTERS)
        runs: dict[str, list[Usage]] = {"nanopolish": [], "f5py": []}
        for round_number in range(1, self.options.rounds + 1):
            runs["nanopolish"].append(measure(nanopolish, theirs, self.scratch / "log.txt"))
            runs["f5py"].append(self.run_f5py(inputs, ours, *SAME_FILTERS))
            for name, usages in runs.items():
                say(f"round {round_number}: {name:10s} {one_line(usages[-1])}")
        rows = [
            [
                f"{name} eventalign",
                *(f"{median(usages, of):.2f} ({least(usages, of):.2f})" for of in (wall, cpu)),
                megabytes(max(usage.peak_rss for usage in usages)),
            ]
            for name, usages in runs.items()
        ]
        ratios = [median(runs["nanopolish"], of) / median(runs["f5py"], of) for of in (wall, cpu)]
        rows.append(["**nanopolish / f5py**", *(f"**{ratio:.2f}**" for ratio in ratios), ""])
        say(f"nanopolish / f5py: wall {ratios[0]:.2f}, CPU {ratios[1]:.2f}")
        if ratios[0] < MIN_SPEED_UP:
            self.failures.append(f"less than {MIN_SPEED_UP} times as fast as nanopolish")
        agreement = self.agreement(theirs, ours)
        theirs.unlink()
        formats = []
        for what, name, options in (
            ("TSV", "out.tsv", []),
            ("TSV, bgzip", "out.tsv.gz", []),
            ("Parquet", "out.parquet", ["--output-format=parquet"]),
            ("TSV, collapsed", "out.tsv", ["--collapse-events"]),
            ("m6anet", "out.tsv", ["--m6anet"]),
            ("PAF", "out.paf", ["--paf"]),
            ("SAM", "out.sam", ["--sam"]),
            ("TSV with samples", "out.tsv", ["--samples", "--signal-index"]),
        ):
            output = folder / name
            usages = [self.run_f5py(inputs, output, *SAME_FILTERS, *options) for _ in range(self.options.rounds)]
            size = f"{output.stat().st_size / 1e6:.0f}"
            formats.append([what, f"{median(usages, wall):.2f}", f"{median(usages, cpu):.2f}", size])
            say(f"{what}: {one_line(usages[-1])}, {size} MB")
            output.unlink()
        return [
            "## f5py against nanopolish",
            "",
            f"{description}; `-t {self.options.threads}`; rounds: {self.options.rounds}, the two in turn; f5py with "
            f"`{' '.join(SAME_FILTERS)}`, as nanopolish does.",
            "Median (minimum) of the rounds; peak memory is the largest of the rounds.",
            "",
            *table(["", "wall, s", "user + system, s", "peak memory, MB"], rows),
            "",
            *agreement,
            "",
            "## Output formats",
            "",
            f"The same set; medians of {self.options.rounds} runs.",
            "",
            *table(["output", "wall, s", "user + system, s", "size, MB"], formats),
        ]

    def agreement(self, theirs: Path, ours: Path) -> list[str]:
        """Compare the rows; nanopolish writes reads in the order in which they are done."""
        say("comparing the rows")
        first, second = places_of_reads(theirs), places_of_reads(ours)
        if first.keys() != second.keys():
            self.failures.append("the tables have different reads")
        n_first = n_second = n = keys = same = 0
        with theirs.open("rb") as left, ours.open("rb") as right:
            for read in sorted(first.keys() & second.keys()):
                rows_left, rows_right = rows_at(left, *first[read]), rows_at(right, *second[read])
                n_first += len(rows_left)
                n_second += len(rows_right)
                n += min(len(rows_left), len(rows_right))
                pairs = list(zip(rows_left, rows_right, strict=False))
                keys += sum(a[:KEY_COLUMNS] == b[:KEY_COLUMNS] for a, b in pairs)
                same += sum(a == b for a, b in pairs)
        if n_first != n_second:
            self.failures.append("the tables differ in their number of rows")
        if keys < 0.999 * n:
            self.failures.append("fewer than 99.9 % of the rows have the same position and event")
        rows = [
            ["rows, nanopolish", f"{n_first:,}"],
            ["rows, f5py", f"{n_second:,}"],
            ["same contig, position, k-mer, read and event", f"{100 * keys / n:.4f} %"],
            ["all columns equal as printed", f"{100 * same / n:.3f} %"],
        ]
        return table(["agreement", ""], rows)

    def writing(self) -> list[str]:
        """Speed of formatting and writing alone, in one thread."""
        from f5py.compute.alignment import AlignmentStage
        from f5py.compute.chemistry import R9_DNA
        from f5py.event_alignment.align import align_events
        from f5py.options.shared import AlignmentOptions
        from f5py.outputs.events.eventalign_table import EventalignTable
        from f5py.outputs.events.table_columns import TableLayout
        from f5py.outputs.formatted_text import pieces

        folder, _, description = self.read_set(1)
        batch = repeat(load_batch(folder), 2)
        stage = AlignmentStage(AlignmentOptions(threads=self.options.threads), R9_DNA, keep_samples=True)
        stage.compute(batch)
        align_events(batch, stage.model, stage.pool, None)
        rows = []
        for what, options in (
            ("default", {}),
            ("read names, scaled events, signal index", dict.fromkeys(_NAMES, True)),
            ("collapsed", {"collapse_events": True}),
            ("samples", {"samples": True}),
        ):
            writer = EventalignTable(["contig"] * (1 + int(batch.contig.max())), stage.model, TableLayout(**options))
            rates: dict[str, list[float]] = {"formatting": [], "writing": []}
            for _ in range(1 + self.options.rounds):  # the first one compiles
                size, formatting = 0, 0.0
                started = time.perf_counter()
                with (folder / "out.tsv").open("wb") as out:
                    for first, end in pieces(batch.rows.n):
                        begin = time.perf_counter()
                        text = writer.format(batch, first, end)
                        formatting += time.perf_counter() - begin
                        out.write(text.data)
                        size += text.nbytes
                rates["formatting"].append(size / 1e6 / formatting)
                rates["writing"].append(size / 1e6 / (time.perf_counter() - started))
            formatted, written = (float(np.median(values[1:])) for values in rates.values())
            rows.append([what, f"{size / 1e6:.0f}", f"{formatted:.0f}", f"{written:.0f}"])
            say(f"{what}: formatting {formatted:.0f} MB/s, with writing {written:.0f} MB/s")
            if written < MIN_WRITING:
                self.failures.append(f"{what}: written with less than {MIN_WRITING} MB/s")
        stage.close()
        return [
            "## Formatting and writing alone",
            "",
            f"{description}, its rows twice; one thread, to a file; median of {self.options.rounds} runs.",
            "",
            *table(["table", "text, MB", "formatting, MB/s", "formatting and writing, MB/s"], rows),
        ]

    def memory(self) -> list[str]:
        """Peak memory with few and with many replicates."""
        rows, peaks = [], []
        for replicates in self.options.memory_replicates:
            folder, inputs, description = self.read_set(replicates)
            for options in ([], ["-B", "1M"]):
                usage = self.run_f5py(inputs, Path("/dev/null"), *options)
                described = f"{description}, {' '.join(options) or 'defaults'}"
                rows.append([described, megabytes(usage.peak_rss), f"{usage.wall:.2f}", f"{usage.cpu:.2f}"])
                say(f"x{replicates} {' '.join(options)}: {one_line(usage)}")
            peaks.append(usage.peak_rss)
            for file in (folder / "fast5").iterdir():
                file.unlink()
        growth = 100 * (peaks[-1] / peaks[0] - 1)
        return [
            "## Peak memory of f5py eventalign",
            "",
            f"`-t {self.options.threads}`, written to nowhere.",
            "",
            *table(["read set", "peak memory, MB", "wall, s", "user + system, s"], rows),
            "",
            f"With batches of one size the peak changes by {growth:+.1f} %.",
        ]

    def header(self) -> list[str]:
        """Machine, date and versions."""
        versions = [first_line([*self.f5py, "--version"], ROOT)]
        versions.append(first_line([*shlex.split(self.options.nanopolish), "--version"]))
        versions.append(f"Python {platform.python_version()}")
        versions += [f"{name} {metadata.version(name)}" for name in ("numpy", "numba", "h5py", "pysam", "pyarrow")]
        return [
            "# eventalign",
            "",
            *machine(),
            f"* versions: {', '.join(versions)}",
            "* made by: `python benchmarks/eventalign.py READ_SET`",
            "",
        ]


_NAMES = ("print_read_names", "scale_events", "signal_index")


def places_of_reads(path: Path) -> dict[int, tuple[int, int]]:
    """Find the rows of each read: first byte and number of bytes. A read's rows are together."""
    places: dict[int, tuple[int, int]] = {}
    with path.open("rb") as lines:
        at = len(next(lines))
        for line in lines:
            read = int(line.split(b"\t", 4)[3])
            start, size = places.get(read, (at, 0))
            places[read] = start, size + len(line)
            at += len(line)
    return places


def rows_at(file: BinaryIO, start: int, size: int) -> list[list[bytes]]:
    """Split the rows in a part of a table into fields."""
    file.seek(start)
    return [line.split(b"\t") for line in file.read(size).splitlines()]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("read_set", type=Path, help="folder of the read set, see replicate.py")
    parser.add_argument("-n", "--replicates", type=int, default=8, help="for the comparison (default: 8)")
    parser.add_argument("--memory-replicates", type=int, nargs="+", default=[8, 40], metavar="N", help="default: 8 40")
    parser.add_argument("--rounds", type=int, default=3, help="timed runs of each (default: 3)")
    parser.add_argument("-t", "--threads", type=int, default=2, help="for both programs (default: 2)")
    parser.add_argument("--nanopolish", default="nanopolish", metavar="COMMAND", help="default: nanopolish")
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="where to put temporary files")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", default=RESULTS / "eventalign.md")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="f5py_benchmark_", dir=options.scratch) as scratch:
            benchmark = Benchmark(options, Path(scratch).resolve())
            lines = benchmark.header()
            for section in (benchmark.compare, benchmark.writing, benchmark.memory):
                lines += [*section(), ""]
    except (CommandFailed, OSError, ValueError) as problem:
        sys.exit(f"eventalign.py: {problem}")
    if benchmark.failures:
        lines += ["**Not as it must be:** " + "; ".join(benchmark.failures) + ".", ""]
    options.output.write_text("\n".join(lines[:-1]) + "\n")
    say(f"written to {options.output}")
    if benchmark.failures:
        sys.exit("eventalign.py: " + "; ".join(benchmark.failures))


if __name__ == "__main__":
    main()
