"""Benchmark of blocked gzip: f5py's writer against pysam's and htslib's ``bgzip``, on any file of text.

pysam's has neither threads nor a choice of the level; the program has both, but is a program.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from measure import CommandFailed, measure
from report import ROOT, first_line, machine, table

RESULTS = Path(__file__).resolve().parent / "results"
_PIECE = 1 << 20


def by_f5py(text: bytes, path: Path, n_threads: int) -> None:
    from f5py.io.bytes.bgzip_output import BgzipOutput

    out = BgzipOutput(path.open("wb"), n_threads)
    for at in range(0, len(text), _PIECE):
        out.write(text[at : at + _PIECE])
    out.close()


def by_pysam(text: bytes, path: Path) -> None:
    import pysam

    with pysam.BGZFile(str(path), "w") as out:
        for at in range(0, len(text), _PIECE):
            out.write(text[at : at + _PIECE])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path, help="a file of text, such as a table of calls")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", default=RESULTS / "bgzip.md")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    lines = ["# Blocked gzip", "", *machine()]
    lines += [f"* versions: pysam {metadata.version('pysam')}, {first_line(['bgzip', '--version'])}"]
    lines += ["* made by: `python benchmarks/bgzip.py CALLS`", ""]
    text = options.text.read_bytes()
    with tempfile.TemporaryDirectory(prefix="f5py_benchmark_") as scratch:
        path = Path(scratch) / "text.gz"

        def bgzip(*arguments: str) -> None:
            measure(["bgzip", *arguments, "-c", str(options.text)], path)

        ways: dict[str, Callable[[], None]] = {
            "f5py, 1 thread": lambda: by_f5py(text, path, 1),
            "f5py, 2 threads": lambda: by_f5py(text, path, 2),
            "pysam.BGZFile": lambda: by_pysam(text, path),
            "bgzip -l 2 -@ 1": lambda: bgzip("-l", "2", "-@", "1"),
            "bgzip -l 2 -@ 2": lambda: bgzip("-l", "2", "-@", "2"),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        sizes = {}
        try:
            for _ in range(options.rounds):
                for name, write in ways.items():
                    started = time.perf_counter()
                    write()
                    seconds[name].append(time.perf_counter() - started)
                    sizes[name] = os.path.getsize(path)
        except (CommandFailed, OSError) as problem:
            sys.exit(f"bgzip.py: {problem}")
    rows = []
    for name, times in seconds.items():
        middle = statistics.median(times)
        rows.append([name, f"{middle:.2f}", f"{len(text) / 1e6 / middle:.0f}", f"{sizes[name] / 1e6:.1f}"])
    lines += [f"{len(text) / 1e6:.0f} MB of text; medians of {options.rounds} rounds, all in turn.", ""]
    lines += table(["", "wall, s", "MB/s", "size, MB"], rows)
    options.output.write_text("\n".join(lines) + "\n")
    print(f"written to {options.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
