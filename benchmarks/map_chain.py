"""Time the chaining of `f5py map` on a GPU against the CPU threads.

    python benchmarks/map_chain.py DATA [-t 16] [-r 3] [--minimap2 PROGRAM] [-o benchmarks/results/map_chain.md]

DATA is the folder with `ecoli_r94` and `map_ecoli`. Anchors are found once and repeated in memory, in batches of 20
Mbases, of which two are under way at a time, as in a run. Times of the GPU are whole: dividing reads into segments,
packing, copies in both directions, kernels, unpacking. The scores and predecessors of every batch are compared.
PROGRAM is a minimap2 that times its own chaining, built as benchmarks/minimap2_chaining.c says.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from gpu_kernels import _Stopwatches
from report import show, where_timed

from f5py.compute.gpu.device import open_device
from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.io.sequences.read_records import read_batches
from f5py.mapping.batch import Anchors, MappingBatch
from f5py.mapping.chain.chaining import score_chains
from f5py.mapping.chain.segments import Segments
from f5py.mapping.gpu import chains
from f5py.mapping.gpu.chains import GpuChaining
from f5py.mapping.index.reference_index import codes_of
from f5py.mapping.index.seeds import find_anchors
from f5py.mapping.options import MapOptions
from f5py.mapping.run.map_reads import load_reference
from f5py.mapping.settings import Parameters, parameters
from f5py.threads.pool import WorkerPool

_BATCH_BASES = 20_000_000
_IN_FLIGHT = 2
_NO_SKIP = 1_000_000
#: Seconds of the CPU threads that are measured once only.
_LONG = 1.0
#: Times as fast as the CPU: the headline of mm2-ax, for chaining alone.
_PAPER = "| paper of mm2-ax | A100 | mm2-fast, AVX-512, 30 Cascade Lake cores | HG002, nanopore | 2.57 to 5.41 |"


class _Set(NamedTuple):
    """Reads, their repeats, and the mapper's settings."""

    name: str
    reference: str
    reads: str
    times: int
    options: dict


_ECOLI = ("ecoli_r94/ref.fa", "ecoli_r94/reads.fasta")
_STRESS = ("map_ecoli/stress_ref.fa.gz", "map_ecoli/stress_reads.fa.gz")
_SETS = (
    _Set("E. coli", *_ECOLI, 480, {}),
    _Set("repeats", *_STRESS, 50, {}),
    _Set("repeats, -f 2000,", *_STRESS, 10, {"frequent": 2000.0}),
)


def _batches(data: Path, one: _Set, max_skip: int, pool: WorkerPool) -> tuple[list[MappingBatch], Parameters, int]:
    """Batches that have anchors, the settings, and the number of bases."""
    reads = str(data / one.reads)
    ready = load_reference(
        MapOptions(
            reference=str(data / one.reference), reads=(reads,), threads=pool.n_threads, max_chain_skip=max_skip,
            **one.options,
        )
    )  # fmt: skip
    numbers = parameters(ready.settings, ready.index.mid_occ(ready.settings))
    (records,) = read_batches([reads], 1 << 28, ())
    batch = MappingBatch(**vars(records))
    batch.codes = codes_of(batch.letters)
    find_anchors(batch, ready.index, numbers, pool)
    n_bases = int(batch.offsets[-1])
    at_once = min(max(_BATCH_BASES // n_bases, 1), one.times)
    batches = []
    for first in range(0, one.times, at_once):
        batches.append(_repeated(batch, min(at_once, one.times - first), len(batches)))
    return batches, numbers, n_bases * one.times


def _repeated(batch: MappingBatch, times: int, number: int) -> MappingBatch:
    """Repeat the lengths and anchors of the reads, so many times."""
    old = batch.anchors
    assert old is not None
    nothing, bytes_ = np.empty(0, np.int64), np.empty(0, np.uint8)
    anchors = Anchors(
        np.tile(old.x, times), np.tile(old.y, times), offsets_of(np.tile(np.diff(old.offsets), times)), nothing,
        nothing, nothing, old.f, old.p,
    )  # fmt: skip
    offsets = offsets_of(np.tile(batch.lengths, times))
    return MappingBatch(Names.of([""] * (len(offsets) - 1)), bytes_, offsets, bytes_, bytes_, offsets, number,
                        anchors=anchors)  # fmt: skip


def _seconds(compute: Callable[[MappingBatch], None], batches: list[MappingBatch]) -> float:
    """Wall time of all batches, some of them at the same time."""
    started = time.perf_counter()
    with ThreadPoolExecutor(_IN_FLIGHT) as threads:
        list(threads.map(compute, batches))
    return time.perf_counter() - started


def _results(batches: list[MappingBatch]) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(batch.anchors.f, batch.anchors.p) for batch in batches if batch.anchors is not None]


def _minimap2_seconds(program: str, data: Path, one: _Set, max_skip: int, threads: int) -> tuple[float, int]:
    """Return seconds of minimap2's chaining, summed over its threads, and the number of its anchors."""
    reads = data / one.reads
    text = gzip.decompress(reads.read_bytes()) if reads.suffix == ".gz" else reads.read_bytes()
    options = [f"-f{one.options['frequent']:.0f}"] if one.options else []
    with tempfile.NamedTemporaryFile(suffix=".fa") as repeated:
        for _ in range(one.times):
            repeated.write(text)
        repeated.flush()
        command = [program, "-x", "map-ont", "-t", str(threads), "--max-chain-skip", str(max_skip), *options]
        command += [str(data / one.reference), repeated.name]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    _, seconds, n_anchors = next(line for line in done.stderr.splitlines() if line.startswith("chaining: ")).split()
    return float(seconds), int(n_anchors)


def _look_back_with(shape: str) -> None:
    """Let the kernel be another one, with the macros of `kernels/map_look_back.cu`."""
    if not shape:
        return
    numbers = [int(number) for number in shape.split(",")]
    names = ("BACK_WARPS", "AT_ONCE", "HELD")
    chains._BACK_WARPS = numbers[0]
    chains._BACK_MACROS = tuple(f"-D{name}={number}" for name, number in zip(names, numbers, strict=True))


def _row(
    data: Path, one: _Set, max_skip: int, pool: WorkerPool, rounds: int, minimap2: str, shape: str = ""
) -> list[str]:
    """Measure one set with one way to search."""
    batches, numbers, n_bases = _batches(data, one, max_skip, pool)
    n_anchors = sum(len(batch.anchors.x) for batch in batches if batch.anchors is not None)
    first = batches[0].anchors
    assert first is not None
    segments = Segments.of(first, numbers, pool, 0)
    pairs = segments.work.sum() / len(first.x)

    def by_the_cpu(batch: MappingBatch) -> None:
        score_chains(batch, numbers, pool)

    gpu = GpuChaining(open_device(0), numbers, pool, _BATCH_BASES)
    gpu.compute(batches[0])
    by_the_cpu(batches[0])  # both are compiled now
    watches = _Stopwatches(gpu._functions)
    on_cpu, on_gpu, kernels = [], [], []
    expected = None
    for turn in range(rounds):
        on_gpu.append(_seconds(gpu.compute, batches))
        kernels.append(watches.take())
        found = _results(batches)
        if turn == 0 or (turn == 1 and on_cpu[0] < _LONG):
            on_cpu.append(_seconds(by_the_cpu, batches))
            expected = _results(batches)
        assert expected is not None
        same = all(
            np.array_equal(a, b) for x, y in zip(found, expected, strict=True) for a, b in zip(x, y, strict=True)
        )
        assert same, f"{one.name}: the GPU's chains are others"
    assert not gpu.is_broken
    of_all = rounds * n_anchors + len(first.x)
    share, of_blocks = sum(gpu.n_scored) / of_all, (gpu.n_scored[0] + gpu.n_scored[2]) / of_all
    gpu.close()
    wall, reference = statistics.median(on_gpu), min(on_cpu)
    search = "no skip" if max_skip == _NO_SKIP else f"usual {shape}".strip()
    row = [
        f"{one.name} x {one.times}", search,
        f"{n_bases / 1e6:.0f}", f"{n_anchors / 1e6:.1f}", f"{pairs:.0f}", f"{segments.sizes.max(initial=0)}",
        f"{reference:.2f}",
        f"{wall:.3f} ({min(on_gpu):.3f} to {max(on_gpu):.3f})", f"{reference / wall:.1f}",
        f"{statistics.median(kernels):.0f}", f"{share:.0%} ({of_blocks:.0%})",
    ]  # fmt: skip
    if minimap2:
        seconds, its_anchors = min(_minimap2_seconds(minimap2, data, one, max_skip, pool.n_threads) for _ in range(2))
        assert its_anchors == n_anchors, f"{one.name}: minimap2 has {its_anchors} anchors, not {n_anchors}"
        row += [f"{seconds / pool.n_threads:.2f}", f"{seconds / pool.n_threads / wall:.1f}"]
    print("; ".join(row), flush=True)
    return row


def main() -> None:
    """Run and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-t", "--threads", type=int, default=16)
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("--times", type=float, default=1.0, help="so many times as many repeats of the sets")
    parser.add_argument("--minimap2", default="", metavar="PROGRAM", help="minimap2 that times its own chaining")
    parser.add_argument("--usual", action="store_true", help="without the search that nothing stops")
    parser.add_argument(
        "--shape", action="append", default=[], metavar="8,2,256",
        help="look back with so many warps a block, rows that each tries at once, anchors that it holds; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--wide", type=int, default=chains._WIDE_BACK, help="pairs in reach per anchor from which a segment has a block"
    )
    parser.add_argument("--commit", default="", help="for the table, where there is no checkout")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    pool = WorkerPool(arguments.threads)
    chains._WIDE_BACK = arguments.wide
    rows = []
    for one in _SETS:
        these = one._replace(times=max(int(one.times * arguments.times), 1))
        if not arguments.usual:
            rows.append(_row(arguments.data, these, _NO_SKIP, pool, arguments.rounds, arguments.minimap2))
        for shape in arguments.shape or [""]:
            _look_back_with(shape)
            rows.append(_row(arguments.data, these, 25, pool, arguments.rounds, arguments.minimap2, shape))
    pool.close()
    device = open_device(0)
    heads = [
        "set", "search", "Mbases", "M anchors", "pairs in reach per anchor", "anchors of the longest segment",
        f"{arguments.threads} CPU threads, s", "GPU, s", "times as fast", "of that kernels, ms",
        "anchors by the GPU (by blocks)",
    ]  # fmt: skip
    beside = [_PAPER]
    if arguments.minimap2:
        heads += ["minimap2's chaining, s", "times as fast as minimap2"]
        who = f"| here | {device.name} | minimap2 2.24, no vectors, {arguments.threads} cores"
        beside += [f"{who} | {row[0]}, {row[1]} | {row[-1]} |" for row in rows]
    lines = [
        "# Chaining on a GPU",
        "",
        where_timed(device.name, arguments.threads, arguments.commit, __file__),
        "",
        "| " + " | ".join(heads) + " |",
        "|---|---|" + "---:|" * (len(heads) - 2),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        "The CPU threads run f5py's own loop, which looks back anchor by anchor, without vectors, with the same "
        "settings; the best of up to two rounds. The GPU's time is wall time with everything that is needed on the "
        f"host, the median (and range) of {arguments.rounds} rounds; kernels are timed by CUDA events, and those of "
        "two batches overlap. *No skip* is `--max-chain-skip 1000000`: the forward transform. *Usual* is the default, "
        "25: looking back. All scores and predecessors were the CPU's. minimap2's chaining is timed inside minimap2 "
        f"(`benchmarks/minimap2_chaining.c`): the sum of its threads by {arguments.threads}, as if they were never "
        "idle, the better of two runs, with the same anchors.",
        "",
        "Chaining alone, beside the paper's figure; other processors, reads and loops, so only the order compares:",
        "",
        "| | GPU | CPU | reads, search | times as fast |",
        "|---|---|---|---|---:|",
        *beside,
        "",
    ]
    show(lines, arguments.output)


if __name__ == "__main__":
    main()
