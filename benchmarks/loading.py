"""Benchmark of reading signals: f5py against a plain loop over each format's own library, and against nanopolish.

A replicated read set is written in every format. The readers of a format, each in a process of its own, then take
turns in reading all of it. Every one yields the samples and the calibration of all reads; that they are the same is
checked by a checksum in a first pass, which is not timed.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from measure import CommandFailed, measure
from plain_loops import BATCH, FORMATS, PARALLEL, Format
from replicate import replicate_set
from report import ROOT, first_line, machine, table, wall
from signal_formats import CALIBRATION, load_vbz, signals_of, write_blow5, write_pod5, write_single, write_vbz

RESULTS = Path(__file__).resolve().parent / "results"
#: f5py's readers: one process or thread, and two, which is ``--iop 2`` for fast5 and POD5 and ``-t 2`` for BLOW5.
F5PY = {"f5py, 1": 1, "f5py, 2": 2}


class Pass(NamedTuple):
    """One reading of the whole set: seconds, seconds of processor time of the process (not of others that it started),
    and samples."""

    wall: float
    cpu: float
    samples: int


# What runs in a process of its own: after the checksum a pass for each line of standard input.


def serve(checked: int, whole_set: Callable[[], int]) -> None:
    """Answer with the checksum, and then to each line with a pass."""
    print(json.dumps(checked), flush=True)
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        n_samples = whole_set()
        one = Pass(time.perf_counter() - wall, time.process_time() - cpu, n_samples)
        print(json.dumps(one), flush=True)


def read_with_f5py(path: Path, names: list[str], count: int) -> None:
    """Serve with f5py: the source is open all the time and memory is kept, as in a run."""
    from f5py.core.large_arrays import recycling
    from f5py.io.signals import open_any

    source = open_any([str(path)], count, count)
    batches = [names[begin : begin + BATCH] for begin in range(0, len(names), BATCH)]

    def reads() -> Iterator[tuple[str, Any, tuple]]:
        for batch in batches:
            block = source.fetch(batch)
            if block.problems:
                raise ValueError(next(iter(block.problems.values())))
            for i, name in enumerate(batch):
                samples = block.samples[block.offsets[i] : block.offsets[i + 1]]
                yield name, samples, tuple(block.calibration()[: len(CALIBRATION), i].tolist())

    with recycling():
        serve(checksum(reads()), lambda: sum(source.fetch(batch).samples.size for batch in batches))
    source.close()


def read_with_loop(kind: str, path: Path, loop: str) -> None:
    """Serve with a plain loop, which forgets each read before it takes the next one."""
    if kind == "vbz":
        load_vbz()
    reads = FORMATS[kind].loops[loop]
    serve(checksum(reads(path)), lambda: sum(samples.size for _, samples, _ in reads(path)))


def checksum(reads: Iterable[tuple[str, Any, tuple]]) -> int:
    """Compute a checksum that does not depend on the order of the reads."""
    import numpy as np

    total = 0
    for name, samples, calibration in reads:
        scale = np.array(calibration, np.float64).astype(np.float32)
        total += zlib.crc32(scale.tobytes(), zlib.crc32(samples.tobytes(), zlib.crc32(name.encode())))
    return total


# What makes the report.


class Benchmark:
    """The settings of a run and its scratch folder."""

    def __init__(self, options: argparse.Namespace, scratch: Path):
        self.options = options
        self.scratch = scratch
        self.failures: list[str] = []
        self.description = ""
        self.n_reads = 0

    def make_files(self) -> None:
        """Write the read set in every format."""
        say("replicating the read set and writing it in every format")
        counts = replicate_set(self.options.read_set, self.scratch / "set", self.options.replicates, 1_000_000)
        self.n_reads = counts.reads
        fast5 = self.scratch / FORMATS["gzip"].place
        write_vbz(fast5, self.scratch / FORMATS["vbz"].place)
        write_single(fast5, self.scratch / FORMATS["single"].place)
        write_blow5(fast5, self.scratch / FORMATS["blow5"].place)
        write_pod5(signals_of(fast5), self.scratch / FORMATS["pod5"].place)
        names = sorted(path.stem for path in (self.scratch / FORMATS["single"].place).iterdir())
        (self.scratch / "names.json").write_text(json.dumps(names))
        read_set = self.options.read_set.resolve().name
        self.description = f"`{read_set}` x {self.options.replicates}: {counts.reads:,} reads"

    def read_formats(self) -> list[str]:
        """All readers of all formats."""
        rows, n_samples = [], 0
        gzip_per_read: dict[str, float] = {}
        for kind in self.options.formats:
            form = FORMATS[kind]
            passes = self.passes(kind, form)
            n_samples = next(iter(passes.values()))[0].samples
            typical = {reader: statistics.median(one.wall for one in all_) for reader, all_ in passes.items()}
            fastest = min(typical[loop] for loop in form.loops if loop not in PARALLEL)
            for reader, all_ in passes.items():
                cpu = statistics.median(one.cpu for one in all_) / self.n_reads
                rows.append(
                    [
                        f"{form.title}: {f'**{reader}**' if reader in F5PY else reader}",
                        *(f"{n_samples / seconds / 1e6:.0f}" for seconds in (typical[reader], min(all_).wall)),
                        f"{typical[reader] / self.n_reads * 1e6:.0f}",
                        f"{cpu * 1e6:.0f}" if self.alone(kind, reader) else "",
                        f"{fastest / typical[reader]:.2f}",
                    ]
                )
                say(" | ".join(rows[-1]))
            if min(typical[ours] for ours in F5PY) > min(typical[loop] for loop in form.loops):
                self.failures.append(f"{form.title}: f5py is slower than a plain loop")
            if kind == "gzip":
                gzip_per_read = {ours: typical[ours] / self.n_reads for ours in F5PY}
        return [
            "## Samples per second",
            "",
            f"{self.description}, {n_samples / 1e6:.1f} million samples, in one file of each format (single-read "
            f"fast5: one per read). f5py fetches batches of {BATCH} reads and keeps a batch's samples and calibration "
            "as flat arrays; a plain loop takes each read's samples and calibration and forgets them. The number "
            "after f5py is that of its reader processes (fast5, POD5) or threads (BLOW5). "
            "Of BLOW5, f5py and pyslow5's get_read_list look up each read by its name, in the order of the names, as a "
            "run asks for the reads of its alignments; seq_reads takes the reads as they come in the file, which a run "
            "cannot. "
            f"Medians of {self.options.rounds} rounds, in each of which every reader of a format reads the whole set "
            "once, in a process of its own, the page cache being warm. The last column is the speed relative to the "
            "fastest plain loop of one thread.",
            "",
            *table(
                ["", "million samples/s", "best round", "µs per read", "µs CPU per read", "plain loop = 1"],
                rows,
            ),
            "",
            *(self.nanopolish(gzip_per_read) if gzip_per_read else []),
        ]

    def passes(self, kind: str, form: Format) -> dict[str, list[Pass]]:
        """Let the readers of a format take turns."""
        path = self.scratch / form.place
        readers: dict[str, subprocess.Popen] = {}
        passes: dict[str, list[Pass]] = {}
        checksums = set()
        try:
            for name in [*F5PY, *form.loops]:
                readers[name] = subprocess.Popen(
                    [sys.executable, __file__, "--read", kind, name, str(path), str(self.scratch / "names.json")],
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                checksums.add(answer_of(readers[name], kind, name))
                passes[name] = []
            if len(checksums) != 1:
                self.failures.append(f"{form.title}: the readers have read different things")
            for number in range(self.options.rounds + 1):
                for name, reader in readers.items():
                    print(number, file=reader.stdin, flush=True)
                    passes[name].append(Pass(*answer_of(reader, kind, name)))
        finally:
            for reader in readers.values():
                reader.communicate()
        return {name: all_[1:] for name, all_ in passes.items()}  # the first round warms up

    @staticmethod
    def alone(kind: str, reader: str) -> bool:
        """Return whether all is done in one process, so that its processor time is known."""
        return reader not in F5PY or F5PY[reader] == 1 or kind == "blow5"

    def nanopolish(self, f5py_per_read: dict[str, float]) -> list[str]:
        """Per-read time of nanopolish, by the difference between a small and a large set."""
        say("nanopolish")
        times = {}
        for folder, replicates in (("set", self.options.replicates), ("small", 1)):
            if folder == "small":
                replicate_set(self.options.read_set, self.scratch / folder, replicates, 1_000_000)
            place = self.scratch / folder
            program = self.options.nanopolish
            reads, log = str(place / "reads.fasta"), self.scratch / "log"
            measure([program, "index", "-d", str(place / "fast5"), reads], log=log)
            command = [program, "fast5-check", "-r", reads]
            out = self.scratch / "check.txt"
            rounds = []
            for _ in range(self.options.rounds):
                rounds.append(wall(measure(command, out, log)))
                found = out.read_text().count("[read] OK")
                if found != self.n_reads // self.options.replicates * replicates:
                    raise ValueError(f"nanopolish fast5-check has read {found} reads of {folder}")
            times[folder] = statistics.median(rounds)
        more = self.n_reads - self.n_reads // self.options.replicates
        per_read = (times["set"] - times["small"]) / more
        if min(f5py_per_read.values()) > per_read:
            self.failures.append("f5py's reading of fast5 is slower than nanopolish's")
        rows = [["nanopolish, one thread", f"{per_read * 1e6:.0f}", ""]]
        rows += [
            [f"{ours} process(es)", f"{ours_per_read * 1e6:.0f}", f"{per_read / ours_per_read:.2f}"]
            for ours, ours_per_read in f5py_per_read.items()
        ]
        for row in rows:
            say(" | ".join(row))
        return [
            "## fast5 against nanopolish",
            "",
            "`nanopolish fast5-check` opens the file once and reads calibration and samples of every read in it, which "
            "it turns into pA; nothing else is done with them. Its time per read is the difference in wall time "
            f"between the set x {self.options.replicates} and x 1 by the number of reads between them, so that start "
            "and index are not counted; f5py's are those of the table above. (In `nanopolish call-methylation` the "
            "file is opened again for each read, which takes longer and is not counted here.)",
            "",
            *table(
                ["fast5, multi-read, gzip", "µs per read", "nanopolish / f5py"],
                rows,
            ),
        ]

    def header(self) -> list[str]:
        """Machine, date and versions."""
        packages = ("numpy", "h5py", "ont-fast5-api", "vbz-h5py-plugin", "pyslow5", "pod5", "pyarrow")
        versions = [first_line([sys.executable, "-m", "f5py", "--version"], ROOT)]
        versions += [first_line([self.options.nanopolish, "--version"]), f"Python {platform.python_version()}"]
        versions += [f"{name} {metadata.version(name)}" for name in packages]
        return [
            "# Reading signals",
            "",
            *machine(),
            f"* versions: {', '.join(versions)}",
            f"* made by: `python benchmarks/loading.py {' '.join(self.options.shown)}`",
            "",
        ]


def answer_of(reader: subprocess.Popen, kind: str, name: str) -> Any:
    """Wait for the next message of a reader."""
    assert reader.stdout is not None
    line = reader.stdout.readline()
    if not line:
        raise CommandFailed(f"{kind}, {name}: ended with status {reader.wait()}; its message is above")
    return json.loads(line)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("read_set", type=Path, nargs="?", help="folder of the read set, see replicate.py")
    parser.add_argument("-n", "--replicates", type=int, default=8, help="default: 8")
    parser.add_argument("--rounds", type=int, default=9, help="timed readings of the set by each (default: 9)")
    parser.add_argument(
        "--formats", type=lambda text: text.split(","), default=list(FORMATS), metavar="NAME[,NAME]",
        help=f"of {', '.join(FORMATS)} (default: all); nanopolish reads gzip",
    )  # fmt: skip
    parser.add_argument("--nanopolish", default="nanopolish", metavar="COMMAND", help="default: nanopolish")
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="where to put temporary files")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", default=RESULTS / "loading.md")
    parser.add_argument("--read", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.read is None and options.read_set is None:
        parser.error("name the folder of the read set")
    if options.replicates < 2 or options.rounds < 1:
        parser.error("replicates must be at least 2, rounds at least 1")
    if not set(options.formats) <= FORMATS.keys():
        parser.error(f"the formats are {', '.join(FORMATS)}")
    options.shown = ["READ_SET" if text == str(options.read_set) else text for text in arguments]
    return options


def main() -> None:
    options = parse(sys.argv[1:])
    if options.read is not None:
        kind, reader, path, names = options.read
        sys.path.insert(0, str(ROOT))
        if reader in F5PY:
            read_with_f5py(Path(path), json.loads(Path(names).read_text()), F5PY[reader])
        else:
            read_with_loop(kind, Path(path), reader)
        return
    try:
        with tempfile.TemporaryDirectory(prefix="f5py_benchmark_", dir=options.scratch) as scratch:
            benchmark = Benchmark(options, Path(scratch).resolve())
            lines = benchmark.header()
            benchmark.make_files()
            lines += benchmark.read_formats()
    except (CommandFailed, OSError, ValueError) as problem:
        sys.exit(f"loading.py: {problem}")
    if benchmark.failures:
        lines += ["", "**Not as it must be:** " + "; ".join(benchmark.failures) + "."]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text("\n".join(lines) + "\n")
    say(f"written to {options.output}")
    if benchmark.failures:
        sys.exit("loading.py: " + "; ".join(benchmark.failures))


if __name__ == "__main__":
    main()
