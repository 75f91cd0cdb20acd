"""Time the three kernels and the host side of the GPU aligner on one large batch, and compare with the CPU aligner.

    python benchmarks/gpu_alignment.py SET [-n 60] [-t 16] [-o results/gpu_alignment.md]

SET is an indexed set (reads.fasta with index, reads.bam, ref.fa). Its reads are repeated in memory.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import statistics
import time
from pathlib import Path

import numpy as np
from batches import load_batch, repeat

from f5py.abea.align import CpuAligner, finish_alignment, start_alignment
from f5py.abea.align_gpu import GpuAligner, GpuLimits
from f5py.core.batch import ReadStatus
from f5py.core.workers import WorkerPool
from f5py.gpu.arena import bytes_per_base
from f5py.gpu.device import open_device
from f5py.pore_model import builtin
from f5py.signal.events import DNA, detect_events
from f5py.signal.scaling import estimate_scaling, rank_kmers

#: f5c 1.6 on one H200 with 16 CPU cores: this set 60 times over, milliseconds.
F5C = {"pre": 17, "core": 96, "post": 30, "copies": 770, "packing": 840}
F5C_BYTES_PER_BASE = 1617


def _align(batch, aligner):
    batch.status[:] = ReadStatus.OK
    started = time.perf_counter()
    start_alignment(batch, aligner)
    finish_alignment(batch, aligner)
    return time.perf_counter() - started, batch.first_event, batch.last_event, batch.status.copy()


def _kernel_times(aligner, n_reads, rounds):
    """Milliseconds of each kernel, `rounds` times after a warm-up, on the data that the last batch left there."""
    import cupy

    half = aligner._halves[(aligner._next_half - 1) % 2]
    kernels = dict(aligner._kernels)
    times = {name: [] for name in kernels}

    def timed(name):
        def launch(*arguments):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            kernels[name](*arguments)
            end.record()
            end.synchronize()
            times[name].append(cupy.cuda.get_elapsed_time(begin, end))

        return launch

    aligner._kernels = {name: timed(name) for name in kernels}
    for _ in range(rounds + 3):
        aligner.launch_kernels(half, n_reads)
    aligner._kernels = kernels
    return {name.removeprefix("abea_"): statistics.median(values[3:]) for name, values in times.items()}


def main() -> None:
    """Run and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-n", "--times", type=int, default=60)
    parser.add_argument("-t", "--threads", type=int, default=16)
    parser.add_argument("-r", "--rounds", type=int, default=20)
    parser.add_argument("--kernels-only", action="store_true", help="for profilers: one batch, no table")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()

    model = builtin("r9.4_450bps.nucleotide.6mer")
    pool = WorkerPool(arguments.threads)
    batch = repeat(load_batch(arguments.folder), arguments.times)
    detect_events(batch, DNA, pool)
    rank_kmers(batch, model, pool)
    estimate_scaling(batch, model, pool)
    n_bases, n_events = len(batch.bases), len(batch.event_mean)
    print(f"{len(batch)} reads, {n_bases / 1e6:.1f} Mbases, {n_events / 1e6:.1f} M events", flush=True)

    device = open_device(0)
    timings = []
    started = time.perf_counter()
    # Everything goes to the GPU here, as in the figures compared with.
    limits = GpuLimits(max_lf=1e9, avg_epk=2.5, max_epk=15.0)
    aligner = GpuAligner(device, model, pool, limits, len(batch), n_bases)
    aligner.on_batch = lambda _, placement, timing: timings.append(timing)
    print(f"set-up {time.perf_counter() - started:.2f} s", flush=True)
    walls = []
    for _ in range(1 if arguments.kernels_only else 4):
        wall, first, last, status = _align(batch, aligner)
        walls.append(wall)
    if arguments.kernels_only:
        return
    kernel_times = _kernel_times(aligner, len(batch), arguments.rounds)
    again = _align(batch, aligner)
    cpu = CpuAligner(model, pool)
    _align(batch, cpu)
    cpu_wall, cpu_first, cpu_last, cpu_status = _align(batch, cpu)

    differing = int(((first != cpu_first) | (last != cpu_last)).sum())
    timing = min(timings, key=lambda one: one.pack + one.unpack)
    copies = timing.gpu * 1e3 - sum(kernel_times.values())
    kernels_total = sum(kernel_times.values())
    rows = [
        ("pre kernel, ms", F5C["pre"], f"{kernel_times['pre']:.2f}"),
        ("core kernel, ms", F5C["core"], f"{kernel_times['core']:.2f}"),
        ("post kernel, ms", F5C["post"], f"{kernel_times['post']:.2f}"),
        ("three kernels, ms", F5C["pre"] + F5C["core"] + F5C["post"], f"{kernels_total:.2f}"),
        ("copies in and out (stream time less kernels), ms", F5C["copies"], f"{copies:.1f}"),
        ("packing and unpacking on the host, ms", F5C["packing"], f"{(timing.pack + timing.unpack) * 1e3:.1f}"),
        ("GPU memory, bytes per base at 2 events per base", F5C_BYTES_PER_BASE, f"{bytes_per_base(2.0):.0f}"),
    ]
    lines = [
        "# Alignment on the GPU",
        "",
        f"{device.name}, {platform.machine()} with {arguments.threads} worker threads, "
        f"{datetime.date.today().isoformat()}; {len(batch)} reads, {n_bases / 1e6:.1f} Mbases, "
        f"{n_events / 1e6:.1f} M events in one batch. Kernel times are medians of {arguments.rounds} launches by CUDA "
        "events after warm-up; host times are the best of four batches.",
        "",
        "| | f5c 1.6 | f5py |",
        "|---|---|---|",
        *(f"| {name} | {theirs} | {ours} |" for name, theirs, ours in rows),
        "",
        f"Whole alignment stage, wall: GPU {min(walls) * 1e3:.0f} ms, CPU aligner with {arguments.threads} threads "
        f"{cpu_wall * 1e3:.0f} ms.",
        "",
        f"Map entries that differ from the CPU aligner's: {differing} of {n_bases}; reads with another status: "
        f"{int((status != cpu_status).sum())}; run to run identical: "
        f"{bool((again[1] == first).all() and (again[2] == last).all() and (again[3] == status).all())}.",
        "",
    ]
    text = "\n".join(lines)
    print(text)
    if arguments.output:
        arguments.output.write_text(text)
    assert np.array_equal(status, cpu_status)


if __name__ == "__main__":
    main()
