"""Division of batches with very long and over-segmented reads between GPU and CPU threads, and their overlap.

f5py simulate -o SET --genome-length 2M -n 1000 --length-sigma 1.086 --ultra-long 1M --slow-fraction 0.02
f5py index -d SET SET/reads.fastq
(with --format blow5, which is faster to make: f5py index --slow5 SET/reads.blow5 SET/reads.fastq)
python benchmarks/gpu_long_tail.py SET [-t 16] [-o results/gpu_long_tail.md]
"""

from __future__ import annotations

import argparse
import datetime
import time
from pathlib import Path

import numpy as np
from batches import load_batch

from f5py.compute.cpu import SignalStages, StageTimes
from f5py.compute.gpu.backend import GpuBackend, GpuLimits
from f5py.compute.gpu.device import open_device
from f5py.compute.gpu.placement import PlacementReason
from f5py.core.batch import ReadStatus
from f5py.pore_model import builtin
from f5py.signal.events import DNA
from f5py.threads.pool import WorkerPool

_ROUNDS = 5


def main() -> None:
    """Run and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-t", "--threads", type=int, default=16)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()

    model = builtin("r9.4_450bps.nucleotide.6mer")
    pool = WorkerPool(arguments.threads)
    batch = load_batch(arguments.folder)
    stages = SignalStages(DNA, False, model, pool, StageTimes(arguments.threads), means_only=True, keep_samples=True)
    lengths = batch.read_length

    device = open_device(0)
    backend = GpuBackend(device, stages, GpuLimits(), len(batch), len(batch.bases))
    seen = []
    backend.on_batch = lambda _, placement, timing: seen.append((placement, timing))
    walls = []
    for _ in range(_ROUNDS):
        batch.status[:] = ReadStatus.OK
        started = time.perf_counter()
        backend.compute(batch)
        walls.append(time.perf_counter() - started)
    if len(seen) < _ROUNDS:
        raise SystemExit("the GPU has computed none of it: see above, or take more reads")
    first, last, status = batch.base_map.first_event, batch.base_map.last_event, batch.status.copy()
    batch.status[:] = ReadStatus.OK
    started = time.perf_counter()
    stages.compute(batch)
    cpu_wall = time.perf_counter() - started
    same = bool((batch.base_map.first_event == first).all() and (batch.base_map.last_event == last).all())
    same = same and bool(np.array_equal(batch.status, status))

    fastest = int(np.argmin(walls))
    placement, timing = seen[fastest]
    rows = [
        (reason.name, placement.count(reason), f"{lengths[placement.having(reason)].sum() / 1e6:.2f}")
        for reason in PlacementReason
    ]
    larger = max(timing.cpu, timing.gpu)
    text = "\n".join(
        [
            "# A batch with a long tail",
            "",
            f"{device.name} with {arguments.threads} worker threads, {datetime.date.today().isoformat()}; "
            f"{len(batch)} simulated reads, {len(batch.bases) / 1e6:.1f} Mbases, longest {lengths.max():,}, "
            f"median {int(np.median(lengths)):,}; {(batch.n_events / lengths > 5).mean():.1%} with more than 5 events "
            f"per base; one batch, default options, fastest of {_ROUNDS}.",
            "",
            "| placed for | reads | Mbases |",
            "|---|---:|---:|",
            *(f"| {name} | {count} | {megabases} |" for name, count, megabases in rows),
            "",
            f"GPU share {timing.gpu * 1e3:.1f} ms (copies included), CPU share at the same time "
            f"{timing.cpu * 1e3:.1f} ms, packing {timing.pack * 1e3:.1f} ms, unpacking {timing.unpack * 1e3:.1f} ms. "
            f"Whole stage {walls[fastest] * 1e3:.1f} ms, {walls[fastest] / larger:.2f} times the larger share; all "
            f"reads on the CPU threads {cpu_wall * 1e3:.1f} ms.",
            "",
            f"The CPU's share ends {abs(timing.cpu - timing.gpu) / larger:.0%} of that time "
            f"{'before' if timing.cpu < timing.gpu else 'after'} the GPU's.",
            "",
            f"Same maps and statuses as all on the CPU: {same}.",
            "",
        ]
    )
    print(text)
    if arguments.output:
        arguments.output.write_text(text)
    assert same


if __name__ == "__main__":
    main()
