"""Time the tiles of `f5py map -x darwin` on a GPU against the CPU threads, scalar and with vectors.

    python benchmarks/gact.py DATA [-t 16] [-s 8] [-r 3] [-o benchmarks/results/gact.md]

DATA is the folder with `ecoli_r94`. The candidates are those of its reads against each other, found once, and
repeated in memory as batches. Two are under way at a time, as in a run. Times of the GPU are whole: numbering the
candidates, copies in both directions, kernels. The scalar loop is so slow that it takes a part of the candidates,
spread over all of them; its time is scaled by the estimated number of tiles. All results are compared.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from gpu_kernels import _Stopwatches
from report import show, where_timed

from f5py.compute.gpu.device import open_device
from f5py.mapping.darwin.dsoft import find_candidates_of, strands_of
from f5py.mapping.darwin.extensions import COLUMNS, Extensions
from f5py.mapping.darwin.gact import extend_all
from f5py.mapping.gpu.tiles import GpuTiles
from f5py.mapping.options import MapOptions
from f5py.mapping.run.darwin_mapper import DarwinMapper
from f5py.mapping.run.map_reads import load_reference
from f5py.threads.pool import WorkerPool

_IN_FLIGHT = 2
_BATCH_BASES = 20_000_000


def _tiles_of(results: np.ndarray) -> float:
    """Estimated number of tiles: a first one each, and one for every 180 columns."""
    return len(results) + results[:, COLUMNS].sum() / 180


def _batches(one: Extensions, times: int, at_once: int) -> list[Extensions]:
    """Repeat the candidates, so many times in all, `at_once` in a batch."""
    table = np.tile(one.table, (at_once, 1))
    return [Extensions.of(one.strands, one.offsets, table, number) for number in range(times // at_once)]


def _seconds(compute: Callable[[Extensions], object], batches: list[Extensions]) -> float:
    """Wall time of all batches, some of them at the same time."""
    started = time.perf_counter()
    with ThreadPoolExecutor(_IN_FLIGHT) as threads:
        list(threads.map(compute, batches))
    return time.perf_counter() - started


def main() -> None:
    """Run and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-t", "--threads", type=int, default=16, help="threads with vectors")
    parser.add_argument("-s", "--scalar-threads", type=int, default=8)
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("--times", type=int, default=16, help="repeats of the candidates")
    parser.add_argument("--at-once", type=int, default=4, help="of these, how many in a batch")
    parser.add_argument("--scalar-part", type=int, default=20, help="the scalar loop takes one candidate of so many")
    parser.add_argument("--commit", default="", help="for the table, where there is no checkout")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    reads = str(arguments.data / "ecoli_r94" / "reads.fasta")
    ready = load_reference(MapOptions(reference=reads, reads=(reads,), preset="darwin", threads=arguments.threads))
    pool, scalar_pool = WorkerPool(arguments.threads), WorkerPool(arguments.scalar_threads)
    mapper = DarwinMapper.of(ready.index, ready.settings, pool)
    index, targets, integers = mapper.index, mapper.targets, mapper.integers
    strands = strands_of(targets.bases, index.offsets)
    table = find_candidates_of(strands, index.offsets, np.arange(len(index.names)), index, integers, pool, 0)
    one = Extensions.of(strands, index.offsets, table)
    part = Extensions.of(strands, index.offsets, table[:: arguments.scalar_part].copy())
    few = Extensions.of(strands, index.offsets, table[:40].copy())
    for plain in (False, True):
        extend_all(few, targets, integers, pool, plain)  # both are compiled now

    batches = _batches(one, arguments.times, arguments.at_once)
    gpu = GpuTiles(open_device(0), targets, integers, pool, _BATCH_BASES)
    gpu.compute(batches[0])
    names = {"gact_extend": gpu._function}
    watches = _Stopwatches(names)
    gpu._function = names["gact_extend"]
    on_gpu, kernels = [], []
    for _ in range(arguments.rounds):
        on_gpu.append(_seconds(gpu.compute, batches))
        kernels.append(watches.take())
    assert not gpu.is_broken
    found = [batch.results.copy() for batch in batches]
    on_cpu = _seconds(lambda batch: extend_all(batch, targets, integers, pool), batches[:1]) * len(batches)
    for results in found:
        assert np.array_equal(results, batches[0].results), "the GPU's alignments are others"
    started = time.perf_counter()
    extend_all(part, targets, integers, scalar_pool, True)
    of_part = time.perf_counter() - started
    assert np.array_equal(part.results, batches[0].results[: len(table)][:: arguments.scalar_part])
    n_tiles = _tiles_of(found[0]) * len(batches)
    scalar = of_part * n_tiles / _tiles_of(part.results)
    gpu.close()
    pool.close()
    scalar_pool.close()

    wall = statistics.median(on_gpu)
    rows = [
        (f"GPU, whole (median of {arguments.rounds}; {min(on_gpu):.2f} to {max(on_gpu):.2f})", wall),
        ("of that the kernel, summed", statistics.median(kernels) / 1000),
        (f"{arguments.threads} threads with vectors", on_cpu),
        (f"{arguments.scalar_threads} scalar threads (estimated from a part)", scalar),
    ]
    device = open_device(0)
    lines = [
        "# Tiles on a GPU",
        "",
        where_timed(device.name, arguments.threads, arguments.commit, __file__),
        "",
        f"{len(table) * len(batches) * arguments.at_once} candidates: {len(table)} of the {len(index.names)} reads "
        f"against each other, {len(batches) * arguments.at_once} times; some {n_tiles / 1e6:.2f} million tiles of "
        "320 x 320 cells (estimated from the columns).",
        "",
        "| | seconds | million tiles a second | times the GPU's |",
        "|---|---:|---:|---:|",
        *(f"| {name} | {took:.2f} | {n_tiles / took / 1e6:.3f} | {took / wall:.1f} |" for name, took in rows),
        "",
        "The CPU threads run f5py's own loops: cell by cell, or 32 cells of an anti-diagonal by vectors of 16-bit "
        "numbers. The time of the threads with vectors is that of the first batch times the number of batches. Times "
        "of the kernels of two batches overlap. All results were the CPU's.",
        "",
        "Beside the figure of GPU Darwin's paper, for the alignment of tiles alone:",
        "",
        "| | GPU | CPU | times as fast |",
        "|---|---|---|---:|",
        "| paper | K40 | 8 threads, its own scalar code | 109 |",
        f"| here, beside it | {device.name} | {arguments.scalar_threads} threads, f5py's scalar loop "
        f"| {scalar / wall:.0f} |",
        f"| here, beside no figure | {device.name} | {arguments.threads} threads with vectors | {on_cpu / wall:.1f} |",
        "",
    ]
    show(lines, arguments.output)


if __name__ == "__main__":
    main()
