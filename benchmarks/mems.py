"""Time the search for maximal exact matches of `f5py map --seeds mem` on a GPU against the CPU threads.

    python benchmarks/mems.py DATA [-t 16] [-r 3] [-o benchmarks/results/mems.md]

DATA is the folder with `map_ecoli`. Reads with 10 % of errors are made of K12 and of a random text of 200 Mb, in
batches of 20 Mbases. Two are under way at a time, as in a run. Two times are taken: of the search alone, matches and
their places, and of all that leads to sorted anchors. The GPU's are whole, with copies in both directions and, for
anchors, the CPU threads' work with its matches. The anchors of every batch are compared.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from report import show, where_timed

from f5py.compute.gpu.device import open_device
from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.io.sequences.read_records import sequence_batches
from f5py.jit.kernel import exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping.batch import MappingBatch
from f5py.mapping.gpu.mems import GpuMems
from f5py.mapping.index.reference_index import codes_of
from f5py.mapping.mem.fm_index import build_fm_index
from f5py.mapping.mem.mem_seeds import (
    N_COLUMNS,
    MemSearch,
    find_mem_anchors,
    find_mems,
    locate_mems,
    n_located,
    write_strand,
)
from f5py.mapping.settings import MID_OCC, PRESETS, parameters
from f5py.threads.pool import WorkerPool

_BATCH_BASES = 20_000_000
_READ_BASES = 8_000
_IN_FLIGHT = 2
_MID_OCC = 12
_MIN_MEM = 17
_ERRORS = 0.1


@exact_kernel
def _search_only(queue, reads, bases, offsets, index, min_length, limit):
    """Find matches and their places of all reads, without anchors, as a GPU's kernels do."""
    n_found = 0
    pattern = np.empty(0, np.uint8)
    counts = np.empty(0, np.int32)
    mems = np.empty((0, N_COLUMNS), np.int32)
    located = np.empty(0, np.int32)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        begin, end = offsets[reads[i]], offsets[reads[i] + 1]
        if pattern.shape[0] < end - begin:
            pattern = np.empty(end - begin, np.uint8)
            counts = np.empty(end - begin, np.int32)
            mems = np.empty((end - begin, N_COLUMNS), np.int32)
        for strand in range(2):
            write_strand(bases, begin, end, strand == 1, pattern)
            n = find_mems(pattern, end - begin, min_length, index, counts, mems, 0)
            n_places = n_located(mems, 0, n, limit)
            if located.shape[0] < n_places:
                located = np.empty(2 * n_places, np.int32)
            n_found += locate_mems(mems, 0, n, limit, index.places, located, 0)
    return n_found


def _batches(bases: NDArray[np.uint8], n_batches: int, batch_bases: int) -> list[MappingBatch]:
    """Make reads of either strand, with substitutions, insertions and deletions."""
    rng = np.random.default_rng(11)
    batches = []
    for number in range(n_batches):
        n = batch_bases // _READ_BASES
        starts = rng.integers(0, len(bases) - _READ_BASES, n)
        reads = bases[starts[:, None] + np.arange(_READ_BASES)]
        is_wrong = rng.random(reads.shape) < _ERRORS
        kind = rng.integers(0, 3, reads.shape)
        reads = np.where(is_wrong & (kind == 0), (reads + 1) & 3, reads)
        reads[n // 2 :] = np.where(reads[n // 2 :] < 4, 3 - reads[n // 2 :], 4)[:, ::-1]
        copies = np.where(is_wrong & (kind > 0), np.where(kind == 1, 0, 2), 1)
        codes = np.repeat(reads.ravel(), copies.ravel()).astype(np.uint8)
        offsets = offsets_of(copies.sum(axis=1))
        nothing, none = np.empty(0, np.uint8), np.zeros(n + 1, np.int64)
        batch = MappingBatch(Names.of([""] * n), nothing, offsets, nothing, nothing, none, number)
        batch.codes = codes
        batches.append(batch)
    return batches


def _seconds(work: Callable[[MappingBatch], object], batches: list[MappingBatch]) -> float:
    """Wall time of all batches, some of them at the same time."""
    started = time.perf_counter()
    with ThreadPoolExecutor(_IN_FLIGHT) as threads:
        list(threads.map(work, batches))
    return time.perf_counter() - started


def _rows(name: str, bases: NDArray[np.uint8], pool: WorkerPool, sizes: tuple[int, int, int]) -> list[list[str]]:
    """Measure one reference; `sizes` are the numbers of rounds and batches, and the bases of a batch."""
    rounds, n_batches, batch_bases = sizes
    started = time.perf_counter()
    contig_offsets = np.array([0, len(bases)])
    index = build_fm_index(bases, contig_offsets, pool)
    built = time.perf_counter() - started
    search = MemSearch(index, contig_offsets, _MIN_MEM, parameters(PRESETS["map-ont"], _MID_OCC))
    batches = _batches(bases, n_batches, batch_bases)
    n_bases = sum(int(batch.offsets[-1]) for batch in batches)
    gpu = GpuMems(open_device(0), search, bases, pool, batch_bases)

    def search_on_cpu(batch: MappingBatch) -> None:
        pool.run(
            _search_only, np.arange(len(batch)), batch.codes, batch.offsets, index, _MIN_MEM,
            int(search.parameters.integers[MID_OCC]),
        )  # fmt: skip

    def anchors_on_cpu(batch: MappingBatch) -> None:
        find_mem_anchors(batch, search, pool)

    def anchors_of(work: Callable[[MappingBatch], object]) -> list[NDArray]:
        _seconds(work, batches)
        return [column for batch in batches if batch.anchors is not None for column in batch.anchors]

    expected, found = anchors_of(anchors_on_cpu), anchors_of(gpu.compute)
    assert len(found) > 0
    assert all(np.array_equal(*both) for both in zip(found, expected, strict=True)), (
        f"{name}: the GPU's anchors are others"
    )
    search_on_cpu(batches[0])  # compiled now
    rows = []
    for what, on_cpu, on_gpu in (("search", search_on_cpu, gpu.search_only), ("anchors", anchors_on_cpu, gpu.compute)):
        cpu_times, gpu_times = [], []
        for _ in range(rounds):
            gpu_times.append(_seconds(on_gpu, batches))
            cpu_times.append(_seconds(on_cpu, batches))
        reference, wall = min(cpu_times), statistics.median(gpu_times)
        rows.append([
            name, what, f"{len(bases) / 1e6:.1f}", f"{built:.1f}", f"{n_bases / 1e6:.0f}", f"{reference:.3f}",
            f"{wall:.3f} ({min(gpu_times):.3f} to {max(gpu_times):.3f})", f"{reference / wall:.1f}",
        ])  # fmt: skip
        print("; ".join(rows[-1]), flush=True)
    assert not gpu.is_broken
    gpu.close()
    return rows


def main() -> None:
    """Run and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-t", "--threads", type=int, default=16)
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("-b", "--batches", type=int, default=4)
    parser.add_argument("--batch-bases", type=int, default=_BATCH_BASES)
    parser.add_argument("--text-bases", type=int, default=200_000_000, help="of the random text")
    parser.add_argument("--commit", default="", help="for the table, where there is no checkout")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    pool = WorkerPool(arguments.threads)
    (contigs,) = sequence_batches(str(arguments.data / "map_ecoli" / "k12.fa.gz"), 1 << 30)
    k12 = codes_of(contigs.bases)
    text = np.random.default_rng(1).integers(0, 4, arguments.text_bases, np.uint8)
    sizes = arguments.rounds, arguments.batches, arguments.batch_bases
    rows = _rows("E. coli K12", k12, pool, sizes)
    rows += _rows("random text", text, pool, sizes)
    pool.close()
    device = open_device(0)
    heads = (
        "reference", "what", "Mbases of it", "index built on the CPU, s", "Mbases of reads",
        f"{arguments.threads} CPU threads, s", "GPU, s", "times as fast",
    )  # fmt: skip
    lines = [
        "# Maximal exact matches on a GPU",
        "",
        where_timed(device.name, arguments.threads, arguments.commit, __file__),
        "",
        "| " + " | ".join(heads) + " |",
        "|---|---|" + "---:|" * (len(heads) - 2),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        "The CPU threads run f5py's own search, which stops early as the kernels do; the best of "
        f"{arguments.rounds} rounds. The GPU's time is wall time with all copies, the median (and range). *Search* is "
        "matches and their places; *anchors* is all up to sorted anchors, most of which the CPU threads do in both "
        "cases. All anchors were the CPU's.",
        "",
        "Beside the figures of GPUseed's paper, PacBio reads, K40 against the fastest CPU program with 24 threads:",
        "",
        "| | text | times as fast | stands beside |",
        "|---|---|---:|---|",
        "| paper, all of seeding | | up to 9 | *search* |",
        "| paper, intervals of the suffix array | | up to 3 | a part of *search*, not timed alone |",
        "| paper, places from intervals | | up to 9 | a part of *search*, not timed alone |",
        *(
            f"| {device.name}, {arguments.threads} threads, *{row[1]}* | {row[0]}, {row[2]} Mb | {row[7]} | "
            f"{'all of seeding' if row[1] == 'search' else 'no figure of the paper'} |"
            for row in rows
        ),
        "",
    ]
    show(lines, arguments.output)


if __name__ == "__main__":
    main()
