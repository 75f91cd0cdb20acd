"""Inputs on S3: how many bytes a run and a part of it fetch, against those of the files.

A server on this machine (moto) stands for the service. For every request it copies the whole file in memory, so the set
is small, and the wall time says nothing. Every run is a process of its own; all tables are compared with that of a run
on files of this machine.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import os
import sys
import tempfile
from pathlib import Path

from measure import Usage, measure
from report import ROOT, machine, megabytes, table
from scaling import make_set
from signal_formats import CALIBRATION, Signal, write_pod5

READS_PER_FILE = 100

#: Runs the command line and tells what it has asked the file system for.
COUNTED = """
import json, sys
from s3fs import S3FileSystem
found = {}
fetch = S3FileSystem._cat_ranges
async def counted(self, names, begins, ends, **more):
    for name, begin, end in zip(names, begins, ends):
        entry = found.setdefault(name.rsplit("/", 1)[1], [0, 0])
        entry[0] += 1
        entry[1] += end - begin
    return await fetch(self, names, begins, ends, **more)
S3FileSystem._cat_ranges = counted
from f5py.cli import main
log = sys.argv.pop(1)
try:
    main(sys.argv[1:])
finally:
    json.dump(found, open(log, "w"))
"""


def run(words: list[str], cwd: Path) -> tuple[Usage, dict[str, list[int]]]:
    """Run a command; return its usage, and for each file the number of requests and of bytes."""
    command = [sys.executable, "-c", COUNTED, "counts.json", *words]
    used = measure(command, log=cwd / "log", cwd=cwd, environment={"PYTHONPATH": str(ROOT)})
    return used, json.loads((cwd / "counts.json").read_text())


def write_pod5_files(blow5: Path, folder: Path) -> None:
    """Write the signals of a BLOW5 file into POD5 files of 100 reads."""
    import pyslow5

    folder.mkdir()
    reads = (
        Signal(read["read_id"], read["signal"], tuple(float(read[name]) for name in CALIBRATION))
        for read in pyslow5.Open(str(blow5), "r").seq_reads()
    )
    for number in itertools.count():
        some = list(itertools.islice(reads, READS_PER_FILE))
        if not some:
            return
        write_pod5(some, folder / f"{number:04d}.pod5")


def upload(folder: Path) -> dict[str, int]:
    """Put all files below a folder into a bucket; return the sizes of those that are fetched in stretches."""
    import s3fs

    system = s3fs.S3FileSystem()
    system.mkdir("run")
    sizes = {"reads.bam": 0, "reads.blow5": 0, "POD5": 0}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            system.put_file(str(path), f"run/{path.relative_to(folder)}")
            what = "POD5" if path.suffix == ".pod5" else path.name
            if what in sizes:
                sizes[what] += path.stat().st_size
    return sizes


def row(what: str, used: Usage, sizes: dict[str, int], found: dict[str, list[int]]) -> list[str]:
    cells = [what, megabytes(used.peak_rss)]
    for kind, size in sizes.items():
        of_kind = [entry for name, entry in found.items() if name == kind or (kind == "POD5" and ".pod5" in name)]
        n_bytes = sum(entry[1] for entry in of_kind)
        cells.append(f"{100 * n_bytes / size:.0f} % ({sum(entry[0] for entry in of_kind)})" if of_kind else "")
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("read_set", type=Path)
    parser.add_argument("-n", "--replicates", type=int, default=12)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with tempfile.TemporaryDirectory() as name:
        cwd = Path(name)
        os.environ.update(
            AWS_ENDPOINT_URL=f"http://{host}:{port}", AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b",
            AWS_DEFAULT_REGION="us-east-1", XDG_CACHE_HOME=str(cwd / "cache"),
        )  # fmt: skip
        data = cwd / "data"
        n_bases = make_set(options.read_set, data, options.replicates)
        write_pod5_files(data / "reads.blow5", data / "pod5")
        fixed = ["-t", str(options.threads), "--disable-cuda=yes", "-o", "calls.tsv"]
        on_disk = ["call-methylation", "-b", str(data / "reads.bam"), "-g", str(data / "ref.fa"), *fixed]
        far = ["call-methylation", "-b", "s3://run/reads.bam", "-g", "s3://run/ref.fa", *fixed]
        signals = {"--slow5": "reads.blow5", "--pod5": "pod5"}
        for option, place in signals.items():
            run([*on_disk, option, str(data / place)], cwd)  # makes indices, and fills the cache
        sizes = upload(data)
        rows = []
        for option, place in signals.items():
            kind = "BLOW5" if option == "--slow5" else "POD5"
            used, found = run([*on_disk, option, str(data / place)], cwd)
            expected = (cwd / "calls.tsv").read_bytes()
            rows.append(row(f"{kind} on the disk", used, sizes, found))
            used, found = run([*far, option, f"s3://run/{place}"], cwd)
            if (cwd / "calls.tsv").read_bytes() != expected:
                raise SystemExit(f"{kind} on S3: other calls")
            rows.append(row(f"{kind} on S3", used, sizes, found))
            run([*far, option, f"s3://run/{place}", "--plan", f"plan-{kind}", "--partitions", "16"], cwd)
            used, found = run(["run-part", f"plan-{kind}", "7"], cwd)
            rows.append(row(f"{kind} on S3, one part of 16", used, sizes, found))
    server.stop()
    size = {kind: f"{n_bytes / 1e6:.0f} MB" for kind, n_bytes in sizes.items()}
    report = [
        "# Inputs on S3", "", *machine(), "",
        f"`{options.read_set.resolve().name}` x {options.replicates} ({n_bases / 1e6:.1f} Mbases), -t "
        f"{options.threads}; the sorted BAM has {size['reads.bam']}, the signals {size['reads.blow5']} (BLOW5) and "
        f"{size['POD5']} (POD5, {READS_PER_FILE:,} reads in a file). "
        "Of each file the table has the share that was fetched, and the number of requests; "
        "a part also looks at 1 MiB of every input, to see whether it has changed.", "",
        *table(["run", "MB of memory", "BAM", "BLOW5", "POD5"], rows), "",
    ]  # fmt: skip
    text = "\n".join(report)
    print(text)
    if options.output is not None:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
