"""Time the kernels and the host side of one large batch on a GPU, and compare with the CPU threads.

    python benchmarks/gpu_kernels.py SET [-n 60] [-t 16] [-r 20] [--scores sites] [-o results/gpu_kernels.md]

SET is an indexed set (reads.fasta with index, reads.bam, ref.fa). Its reads are repeated in memory. From samples to the
recalibrated alignment, as call-methylation needs it; with --scores to the scores of groups of CpGs, or of their sites.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import platform
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

import numpy as np
from batches import load_batch, repeat

from f5py.compute.cpu import SignalStages, StageTimes
from f5py.compute.gpu.arena import Density
from f5py.compute.gpu.backend import GpuBackend, GpuLimits
from f5py.compute.gpu.device import open_device
from f5py.compute.gpu.placement import Backend
from f5py.core.batch import ReadBatch, ReadStatus
from f5py.core.motifs import motif_named
from f5py.core.noise import OF_PORES
from f5py.core.offsets import used_elements
from f5py.methylation.calls import call_methylation
from f5py.pore_model import builtin
from f5py.signal.events import DNA
from f5py.threads.pool import WorkerPool

#: f5c 1.6 on one H200 with 16 CPU cores: the E. coli set 60 times over, milliseconds.
F5C = {"abea_pre": "17", "abea_core": "96", "abea_post": "30"}
F5C_BYTES_PER_BASE = 1617
_FIELDS = (
    "events.offsets",
    "events.mean",
    "base_map.first_event",
    "base_map.last_event",
    "shift",
    "scale",
    "var",
    "status",
    "verdict",
)


class _Stopwatches:
    """Kernels that are timed by events in their stream, without waiting for them."""

    def __init__(self, functions: dict) -> None:
        self.milliseconds: dict[str, list[float]] = defaultdict(list)
        self._functions = dict(functions)
        self._begun: list[tuple] = []
        functions.update({name: self._timed(name) for name in functions})

    def _timed(self, name: str):
        import cupy

        def launch(*arguments):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            self._functions[name](*arguments)
            end.record()
            self._begun.append((name, begin, end))

        return launch

    def take(self) -> float:
        """Note the times of launched kernels that have ended; return their sum."""
        import cupy

        total = 0.0
        for name, begin, end in self._begun:
            elapsed = cupy.cuda.get_elapsed_time(begin, end)
            self.milliseconds[name].append(elapsed)
            total += elapsed
        self._begun.clear()
        return total


def _computed(batch: ReadBatch, backend: Backend, fields: Sequence[str]) -> tuple[float, dict[str, np.ndarray]]:
    batch = copy.copy(batch)  # the stages replace arrays, but for these two
    batch.status = np.full(len(batch), ReadStatus.OK, np.uint8)
    batch.cause = np.zeros(len(batch), np.uint8)
    started = time.perf_counter()
    backend.compute(batch)
    wall, found = time.perf_counter() - started, {name: attrgetter(name)(batch) for name in fields}
    if "calls.n" in found:  # without what lies in unused slots
        used = used_elements(batch.calls.offsets, batch.calls.n)
        found |= {name: found[name][used] for name in ("calls.methylated", "calls.unmethylated")}
    return wall, found


def main() -> None:
    """Run and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-n", "--times", type=int, default=60)
    parser.add_argument("-t", "--threads", type=int, default=16)
    parser.add_argument("-r", "--rounds", type=int, default=20)
    parser.add_argument("--scores", choices=("calls", "sites"), default="", help="with these scores, too")
    parser.add_argument("--correlated", action="store_true", help="scores with correlated noise")
    parser.add_argument("--kernels-only", action="store_true", help="for profilers: one batch, no table")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()

    pool = WorkerPool(arguments.threads)
    model = builtin("r9.4_450bps.nucleotide.6mer")
    stages = SignalStages(
        DNA, False, model, pool, StageTimes(arguments.threads), means_only=True, results=arguments.scores
    )
    fields = _FIELDS
    if arguments.scores:
        motif, methylated = motif_named("cpg"), builtin("r9.4_450bps.cpg.6mer")
        noise = OF_PORES["r9"] if arguments.correlated else None
        stages.finish = lambda batch, share: call_methylation(
            batch, motif, methylated, pool, arguments.scores == "sites", elsewhere=share, noise=noise
        )
        fields = (*_FIELDS, "calls.n", "calls.methylated", "calls.unmethylated")
    batch = repeat(load_batch(arguments.folder), arguments.times)
    n_bases = len(batch.bases)
    print(f"{len(batch)} reads, {n_bases / 1e6:.1f} Mbases, {len(batch.samples) / 1e6:.1f} M samples", flush=True)

    device = open_device(0)
    started = time.perf_counter()
    # Everything goes to the GPU here, as in the figures compared with.
    backend = GpuBackend(device, stages, GpuLimits(max_lf=1e9, avg_epk=2.5, max_epk=6.0), len(batch), n_bases)
    timings = []
    backend.on_batch = lambda _, placement, timing: timings.append(timing)
    print(f"set-up {time.perf_counter() - started:.2f} s", flush=True)
    if arguments.kernels_only:
        _computed(batch, backend, fields)
        return
    _computed(batch, backend, fields)
    watches = _Stopwatches(backend._on_device.functions)
    walls, copies, results = [], [], []
    for _ in range(arguments.rounds):
        wall, result = _computed(batch, backend, fields)
        walls.append(wall)
        results = [*results[-1:], result]
        copies.append(timings[-1].gpu * 1e3 - watches.take())
    _computed(batch, stages, fields)
    cpu_wall, expected = _computed(batch, stages, fields)

    differing = [name for name in fields if not np.array_equal(results[-1][name], expected[name])]
    unsteady = [name for name in fields if not np.array_equal(results[0][name], results[-1][name])]
    kernels = {name: statistics.median(times) for name, times in watches.milliseconds.items()}
    timing = min(timings, key=lambda one: one.pack + one.unpack)
    lines = [
        "# The kernels",
        "",
        f"{device.name}, {platform.machine()} with {arguments.threads} worker threads, "
        f"{datetime.date.today().isoformat()}; {len(batch)} reads, {n_bases / 1e6:.1f} Mbases, "
        f"{len(batch.samples) / 1e6:.1f} M samples, {len(expected['events.mean']) / 1e6:.1f} M events in one batch. "
        f"Kernel times are medians of {arguments.rounds} batches by CUDA events; host times are the best of them.",
        "",
        "| | f5c 1.6 | f5py |",
        "|---|---:|---:|",
        *(f"| {name}, ms | {F5C.get(name, '')} | {value:.2f} |" for name, value in kernels.items()),
        f"| all kernels, ms | | {sum(kernels.values()):.2f} |",
        f"| copies and waiting (stream time less kernels), ms | | {statistics.median(copies):.1f} |",
        f"| packing and unpacking on the host, ms | | {(timing.pack + timing.unpack) * 1e3:.1f} |",
        f"| GPU memory, bytes per base | {F5C_BYTES_PER_BASE} | {Density(2.0, 16.0).bytes_per_base:.0f} |",
        "",
        f"From samples to {arguments.scores or 'recalibrated alignments'}, wall: GPU {min(walls) * 1e3:.0f} ms, "
        f"{arguments.threads} CPU threads {cpu_wall * 1e3:.0f} ms.",
        "",
        f"Arrays that differ from the CPU threads': {', '.join(differing) or 'none'}; from run to run: "
        f"{', '.join(unsteady) or 'none'}.",
        "",
    ]
    text = "\n".join(lines)
    print(text)
    if arguments.output:
        arguments.output.write_text(text)
    assert not differing
    assert not unsteady


if __name__ == "__main__":
    main()
