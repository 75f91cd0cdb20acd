"""Measure `f5py map` against minimap2 and samtools on a large made genome: time, processor time, memory, equal records.

    python benchmarks/map_genome.py [-l 3.1] [-n 20000] [-t 16] [--folder /dev/shm/genome] [--f5py f5py] [-o FILE]

The genome has contigs of 130 Mb, about half of it copies of repeat families, 2 to 25 % changed, and runs of unknown
bases; reads of 8 kb have 6 % of errors. Both are the same every time. The programs map FASTA to sorted BAM; f5py also
writes its index, and maps with that. Private memory is not shared with the file of the index. The folder needs
three times the size of the genome, and is removed unless ``--keep`` is given.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from measure import measure
from numpy.typing import NDArray
from report import ROOT, first_line, machine, table

_CONTIG, _LINE, _READ = 130_000_000, 80, 8_000
_LETTERS = np.frombuffer(b"ACGT", np.uint8)
_UNKNOWN = ord("N")


def _families(rng: np.random.Generator) -> list[NDArray[np.uint8]]:
    """Make consensus sequences of repeats, as long as SINEs and LINEs."""
    return [rng.integers(0, 4, int(n)).astype(np.uint8) for n in (*[300] * 20, *[1500] * 20, *[6000] * 10)]


def _contig(rng: np.random.Generator, families: list[NDArray[np.uint8]], n: int) -> NDArray[np.uint8]:
    """Make codes of a contig: random ones, half of them overwritten by changed copies of the families."""
    codes = rng.integers(0, 4, n, np.uint8)
    covered = 0
    while covered < n // 2:
        copy = families[int(rng.integers(len(families)))].copy()
        changed = rng.random(len(copy)) < rng.uniform(0.02, 0.25)
        copy[changed] = rng.integers(0, 4, int(changed.sum()))
        if rng.random() < 0.5:
            copy = 3 - copy[::-1]
        if len(copy) >= n:
            break
        at = int(rng.integers(n - len(copy)))
        codes[at : at + len(copy)] = copy
        covered += len(copy)
    return codes


def _make_contig(genome: Path, at: int, number: int, length: int, n_reads: int) -> bytes:
    """Write a contig at its place in the file; return its reads as FASTA."""
    rng = np.random.default_rng([61, number])
    codes = _contig(rng, _families(np.random.default_rng(61)), length)
    out_reads = []
    for i in range(n_reads):
        begin = int(rng.integers(max(length - _READ, 1)))
        read = codes[begin : begin + _READ].copy()
        kind = rng.random(len(read))
        wrong = kind < 0.02
        read[wrong] = rng.integers(0, 4, int(wrong.sum()))
        read = np.repeat(read, np.where(kind > 0.98, 0, np.where(kind > 0.96, 2, 1)))
        if rng.random() < 0.5:
            read = 3 - read[::-1]
        out_reads.append(b">r%d_%d\n%b\n" % (number, i, _LETTERS[read].tobytes()))
    letters = _LETTERS[codes]
    if length > 1_000_000:
        letters[: length // 100] = _UNKNOWN
        letters[length // 2 : length // 2 + length // 50] = _UNKNOWN
    whole = letters[: length // _LINE * _LINE].reshape(-1, _LINE)
    lines = np.concatenate([whole, np.full((len(whole), 1), ord("\n"), np.uint8)], axis=1)
    rest = letters[len(whole) * _LINE :].tobytes()
    with open(genome, "r+b") as out:
        out.seek(at)
        out.write(_head(number) + lines.tobytes() + rest + b"\n" * bool(rest))
    return b"".join(out_reads)


def _head(number: int) -> bytes:
    return b">chr%d\n" % (number + 1)


def make_genome(folder: Path, n_bases: int, n_reads: int) -> None:
    """Write the genome and the reads, a contig in each process."""
    lengths = [_CONTIG] * (n_bases // _CONTIG) + [n_bases % _CONTIG] * (n_bases % _CONTIG > 0)
    sizes = [len(_head(number)) + n + -(-n // _LINE) for number, n in enumerate(lengths)]
    genome = folder / "genome.fa"
    genome.touch()
    with ProcessPoolExecutor() as pool, open(folder / "reads.fa", "wb") as out:
        made = [
            pool.submit(_make_contig, genome, sum(sizes[:number]), number, n, round(n_reads * n / n_bases))
            for number, n in enumerate(lengths)
        ]
        for contig in made:
            out.write(contig.result())


def _private_peak(command: list[str]) -> tuple[float, float]:
    """Run a command; return its wall time, and the most memory that it does not share with files, in GB."""
    peak, started = 0, time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ended = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(0.1):
            try:
                lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            except OSError:
                return
            peak = max([peak, *(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))])

    thread = threading.Thread(target=watch)
    thread.start()
    status = process.wait()
    ended.set()
    thread.join()
    if status:
        raise SystemExit(f"{shlex.join(command)} has ended with status {status}")
    return time.perf_counter() - started, peak * 1024 / 1e9


def _records(path: Path) -> bytes:
    return subprocess.run(["samtools", "view", path], check=True, capture_output=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-l", "--length", type=float, default=3.1, help="of the genome, Gb")
    parser.add_argument("-n", "--reads", type=int, default=20_000)
    parser.add_argument("-t", "--threads", type=int, default=16)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm/f5py-genome"))
    parser.add_argument("--f5py", default="f5py")
    parser.add_argument("--gpu", default="off")
    parser.add_argument("--keep", action="store_true", help="leave the folder")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks" / "results" / "map_genome.md")
    options = parser.parse_args()
    folder, t = options.folder, options.threads
    folder.mkdir(parents=True, exist_ok=True)
    genome, reads = folder / "genome.fa", folder / "reads.fa"
    if not reads.exists():
        make_genome(folder, int(options.length * 1e9), options.reads)
    index, ours, theirs, third = (folder / name for name in ("genome.f5i", "f5py.bam", "minimap2.bam", "index.bam"))
    program = shlex.quote(options.f5py)
    ending = f"-t {t} --gpu {options.gpu}"
    commands = {
        "minimap2, samtools sort": f"minimap2 -t {t} -I 100G -ax map-ont --MD {genome} {reads} | "
        f"samtools sort -@ {t} -o {theirs} -",
        "f5py map": f"{program} map {ending} {genome} {reads} -o {ours}",
        "f5py map -d": f"{program} map {ending} {genome} -d {index}",
        "f5py map, from the index": f"{program} map {ending} {index} {reads} -o {third}",
    }
    few = folder / "few.fa"
    with open(genome, "rb") as whole:
        few.write_bytes(whole.read(8_000_000).strip(b"N\n") + b"\n")
    for name, command in commands.items():  # fills the cache of compiled code
        if name != "minimap2, samtools sort":
            subprocess.run(command.replace(str(genome), str(few)), shell=True, check=True, stderr=subprocess.DEVNULL)
    rows = []
    for name, command in commands.items():
        usage = measure(["bash", "-c", f"set -o pipefail; {command}"])
        rows.append([name, f"{usage.wall:.1f}", f"{usage.cpu:.1f}", f"{usage.peak_rss / 1e9:.2f}"])
        print(rows[-1], flush=True)
    words = [*shlex.split(program), "map", *ending.split(), str(index), str(reads), "-o", str(third)]
    seconds, private = _private_peak(words)
    expected = sorted(_records(theirs).splitlines())
    equal = [sorted(_records(path).splitlines()) == expected for path in (ours, third)]
    lines = ["# A large genome, from FASTA to a sorted BAM file", "", *machine()]
    lines += [
        f"* minimap2 {first_line(['minimap2', '--version'])}; {options.length} Gb, {options.reads} reads, {t} threads",
        "",
    ]
    lines += [*table(["program", "time, s", "processor time, s", "peak memory, GB"], rows), ""]
    lines += [
        f"From the index again: {seconds:.1f} s, {private:.2f} GB of private memory; the file has "
        f"{index.stat().st_size / 1e9:.2f} GB. Records equal to minimap2's: {'all' if all(equal) else 'not all'} of "
        f"{len(expected)}.",
        "",
    ]
    print("\n".join(lines))
    options.output.write_text("\n".join(lines))
    if not options.keep:
        shutil.rmtree(folder)
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
