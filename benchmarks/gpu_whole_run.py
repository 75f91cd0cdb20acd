"""Whole runs of call-methylation on a machine with a GPU: without it, by default, and with it from the start.

    python benchmarks/gpu_whole_run.py SET [-t 16] [--iop 12] [-o results/gpu_whole_run.md]

SET is an indexed set, best a replicated one (replicate.py). Every run's output is compared with the first one's.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import sys
import tempfile
from pathlib import Path

from measure import measure

_BATCHES = [("16", "5M"), ("128", "5M"), ("512", "5M"), ("2048", "20M"), ("8192", "60M")]
_USES = {"CPU only": ["--gpu=off"], "default": [], "GPU at once": ["--gpu=on"]}
_ROUNDS = 3


def main() -> None:
    """Run and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-t", "--threads", default="16")
    parser.add_argument("--iop", default="12")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()

    import cupy

    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    folder = arguments.folder
    command = [sys.executable, "-m", "f5py", "call-methylation", "-t", arguments.threads, "--iop", arguments.iop]
    command += ["-r", str(folder / "reads.fasta"), "-b", str(folder / "reads.bam"), "-g", str(folder / "ref.fa")]
    with tempfile.TemporaryDirectory() as scratch:
        out, log = Path(scratch) / "calls.tsv", Path(scratch) / "log.txt"
        for use in _USES.values():
            measure([*command, *use], out, log)  # fills the caches of compiled code
        expected = out.read_bytes()
        rows = []
        for reads, bases in _BATCHES:
            walls: dict[str, list[float]] = {use: [] for use in _USES}
            for _ in range(_ROUNDS):
                for use, options in _USES.items():
                    walls[use].append(measure([*command, "-K", reads, "-B", bases, *options], out, log).wall)
                    if out.read_bytes() != expected:
                        raise SystemExit(f"-K {reads}, {use}: another output")
            cells = [f"{statistics.median(walls[use]):.2f} ({min(walls[use]):.2f})" for use in _USES]
            rows.append(f"| {reads} | {bases} | " + " | ".join(cells) + " |")
            print(rows[-1], flush=True)
    text = "\n".join(
        [
            "# Whole runs with and without the GPU",
            "",
            f"{device}, {arguments.threads} worker threads, {arguments.iop} reader processes, "
            f"{datetime.date.today().isoformat()}; `{folder.name}`; wall seconds from start to end of the process, "
            f"median (minimum) of {_ROUNDS}, in turn. The outputs of all runs are the same bytes.",
            "",
            "| -K | -B | " + " | ".join(_USES) + " |",
            "|---:|---:|" + "---:|" * len(_USES),
            *rows,
            "",
            "By default a GPU is started when the CPU threads have spent two seconds on alignment, which they do not "
            "reach here: on this set they need less than the start of a GPU.",
            "",
        ]
    )
    print(text)
    if arguments.output:
        arguments.output.write_text(text)


if __name__ == "__main__":
    main()
