"""Expected times of the kernels on GPUs that are not at hand, computed from their machine code.

    python benchmarks/gpu_expected.py SET [-n 60] [-o results/gpu_expected.md]

SET is an indexed set (reads.fasta with index, reads.bam, ref.fa). Nothing is run on a GPU. How often each loop is gone
through is counted on the CPU with these reads; how many instructions a pass has is counted in the machine code that
NVRTC makes for the architecture, as nvdisasm shows it (pip install nvidia-cuda-nvdisasm). A loop's instructions are all
between its label and its jump back, also those of branches that are seldom taken, so that the count is an upper limit.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from batches import load_batch
from numpy.typing import NDArray
from report import ROOT, table

sys.path.append(str(ROOT))

from f5py.abea.align import macros
from f5py.compute.cpu import SignalStages, StageTimes
from f5py.compute.gpu import sources
from f5py.compute.gpu.results.scores import (
    GROUPS,
    WARPS_OF_PIECE,
    describe_groups,
    empty_order,
    order_groups,
)
from f5py.core.batch import BatchView, Calls, ReadBatch, ReadStatus
from f5py.core.motifs import motif_named
from f5py.methylation.calls import call_methylation
from f5py.methylation.groups import GroupWindows
from f5py.pore_model import builtin
from f5py.pore_model.model import PoreModel
from f5py.signal.events import DNA
from f5py.threads.pool import WorkerPool
from tests.compute.gpu.nvrtc import Nvrtc

_LANES, _SCHEDULERS = 32, 4
_DOUBLE = ("DADD", "DMUL", "DFMA", "DSETP")


class Board(NamedTuple):
    """A GPU: makers' figures. Lanes are those for double precision of a multiprocessor."""

    name: str
    architecture: int
    multiprocessors: int
    gigahertz: float
    double_lanes: int
    gigabytes_per_second: float


BOARDS = (
    Board("H200", 90, 132, 1.755, 64, 4800),
    Board("Jetson AGX Orin 64 GB", 87, 16, 1.3, 2, 204.8),
    Board("Jetson Orin NX 16 GB", 87, 8, 0.918, 2, 102.4),
    Board("Jetson Orin Nano 8 GB", 87, 8, 0.625, 2, 68),
)


class Loop(NamedTuple):
    """A loop of a kernel: the shortest one with instructions of the line that has `text`.

    If it was unrolled, it has `marker` several times, and `per_pass` times in a pass of the source. `passes` names
    the counted passes of a warp; `bytes_moved` those of a pass."""

    stage: str
    file: str
    kernel: str
    text: str
    marker: str
    per_pass: int
    passes: str
    bytes_moved: int = 0


LOOPS = (
    Loop("events", "events", "events_find", "is_coarse = is_coarse &&", "I2F", 1, "samples"),
    Loop("events", "events", "events_find", "for (int i = from; i < to; ++i) {", "DSETP", 0, "samples"),
    Loop("scaling", "scaling", "scaling_fit", "total += __shfl_sync(FULL, value, i);", "DADD", 1, "sums"),
    Loop("alignment", "abea_core", "abea_core", "if (--b.rights_left == 0)", "FMNMX", 8, "bands"),
    Loop("alignment", "abea_post", "abea_post", "pairs[listed++] =", "STS", 1, "steps"),
    Loop("scores", "hmm", "hmm_forward", "const float emission = exp2_of", "STG", 3, "cells", 36 * _LANES),
)


def nvdisasm() -> str:
    """Find the program."""
    found = importlib.util.find_spec("nvidia")
    folders = [Path(folder) / "cu13" / "bin" for folder in (found.submodule_search_locations or [])] if found else []
    paths = [shutil.which("nvdisasm"), *(shutil.which("nvdisasm", path=str(folder)) for folder in folders)]
    path = next((path for path in paths if path), None)
    if path is None:
        raise SystemExit("there is no nvdisasm; pip install nvidia-cuda-nvdisasm")
    return path


class Code(NamedTuple):
    """Instructions of a kernel: lines of the source, and names; first and last ones of loops."""

    lines: list[int]
    names: list[str]
    loops: list[tuple[int, int]]


@cache
def code(file: str, kernel: str, architecture: int) -> Code:
    """Extract the machine code of a kernel."""
    options = (*sources.compiler_options(file), *macros(), f"-arch=sm_{architecture}", "-lineinfo")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as out:
        out.write(Nvrtc().compile(f"{file}.cu", sources.source(file), *options).cubin)
        out.flush()
        text = subprocess.run([nvdisasm(), "-g", "-c", out.name], capture_output=True, text=True, check=True).stdout
    text = text[text.index(f".text.{kernel}:") :]
    text = text[: text.find("\n.section") if "\n.section" in text else len(text)]
    lines, names, jumps, labels = [], [], [], {}
    line = 0
    for row in text.splitlines():
        if found := re.match(r'\s*//## File ".*", line (\d+)', row):
            line = int(found[1])
        elif found := re.match(r"(\.L\w+):", row):
            labels[found[1]] = len(lines)
        elif found := re.match(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?\w+\s+)?([\w.]+)(.*);", row):
            if found[1].startswith("BRA") and (target := re.search(r"\.L\w+", found[2])):
                jumps.append((target[0], len(lines)))
            lines.append(line)
            names.append(found[1].partition(".")[0])
    loops = [(labels[target], at) for target, at in jumps if target in labels and labels[target] <= at]
    return Code(lines, names, sorted(set(loops)))


def of_a_pass(loop: Loop, architecture: int) -> tuple[float, float]:
    """Instructions of a pass, and those in double precision."""
    kernel = code(loop.file, loop.kernel, architecture)
    source = sources.source(loop.file).splitlines()
    wanted = {number for number, line in enumerate(source, 1) if loop.text in line}
    assert wanted, f"{loop.file}.cu has no {loop.text!r}"
    found = []
    for first, last in kernel.loops:
        if wanted & set(kernel.lines[first : last + 1]):
            names = Counter(kernel.names[first : last + 1])
            n_passes = names[loop.marker] / loop.per_pass if loop.per_pass else 1.0
            if n_passes:
                found.append(((last - first + 1) / n_passes, sum(names[name] for name in _DOUBLE) / n_passes))
    return min(found)  # others have parts of other loops in them


class _Counter:
    """Counts the groups of the scores, which the CPU computes."""

    def __init__(self) -> None:
        self.cells = 0

    def scores(self, batch: ReadBatch, motifs: object) -> NDArray[np.bool_]:
        return batch.status == ReadStatus.OK

    def view(self, batch: ReadBatch) -> BatchView:
        return batch.view

    def begin_scores(
        self, batch: ReadBatch, model: PoreModel, motifs: object, listing: GroupWindows, noise: object
    ) -> NDArray[np.bool_]:
        reads = np.flatnonzero(self.scores(batch, motifs))
        order, one = empty_order(int(batch.calls.n[reads].sum())), np.zeros(1, np.int64)
        given_back = np.zeros(len(batch), np.bool_)
        order_groups(
            one, one.copy(), reads, (np.arange(len(batch)), batch.calls.offsets, batch.calls.n), listing,
            (model.k, 1 << 60), order, given_back,
        )  # fmt: skip
        pieces = np.arange(-(-order.n[0] // (GROUPS * WARPS_OF_PIECE)))
        describe_groups(one.copy(), pieces, listing, model.k, order)
        self.cells = int((order.columns.astype(np.int64) * order.rows)[: -(-order.n[0] // GROUPS)].sum())
        return np.ones(len(batch), np.bool_)

    def fetch_scores(self, calls: Calls) -> float:
        return 0.0


def counted(batch: ReadBatch) -> dict[str, float]:
    """Count the passes of warps through each loop."""
    pool = WorkerPool(2)
    model = builtin("r9.4_450bps.nucleotide.6mer")
    stages = SignalStages(DNA, False, model, pool, StageTimes(2), means_only=True)
    found = {"bases": len(batch.bases), "samples": len(batch.samples) / _LANES}
    counter = _Counter()
    stages.finish = lambda batch, _: call_methylation(
        batch, motif_named("cpg"), builtin("r9.4_450bps.cpg.6mer"), pool, elsewhere=counter
    )
    stages.compute(batch)
    pool.close()
    n_events, n_kmers = int(batch.events.offsets[-1]), len(batch.bases) - (model.k - 1) * len(batch)
    # Shift and scale from moments: two sums over k-mers and two over events. The fit: five sums over k-mers, and one.
    return found | {
        "sums": 2 * n_kmers + 2 * n_events + 6 * n_kmers,
        "bands": n_events + n_kmers,
        "steps": int(batch.n_pairs.sum()),
        "cells": counter.cells,
    }


def expected(board: Board, passes: dict[str, float]) -> dict[str, tuple[float, float, float]]:
    """Milliseconds of each stage by its instructions, those in double precision, and the memory."""
    stages: dict[str, NDArray[np.float64]] = {}
    clock = board.multiprocessors * board.gigahertz * 1e6  # cycles of all multiprocessors in a millisecond
    for loop in LOOPS:
        n = passes[loop.passes]
        instructions, double = of_a_pass(loop, board.architecture)
        limits = (
            n * instructions / _SCHEDULERS / clock,
            n * double * _LANES / board.double_lanes / clock,
            n * loop.bytes_moved / board.gigabytes_per_second / 1e6,
        )
        stages[loop.stage] = stages.get(loop.stage, np.zeros(3)) + limits
    return {stage: tuple(limits.tolist()) for stage, limits in stages.items()}


def main() -> None:
    """Compute and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--name", default="ecoli_r94", help="what the table calls the set")
    parser.add_argument("-n", "--times", type=int, default=60)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    passes = {name: n * arguments.times for name, n in counted(load_batch(arguments.folder)).items()}
    lines = [
        "# What the kernels are expected to take: computed, not measured",
        "",
        f"The reads of `{arguments.name}` {arguments.times} times over, {passes['bases'] / 1e6:.1f} Mbases in one "
        "batch; calls of CpG. Made by",
        "`python benchmarks/gpu_expected.py`, which says how. Of three limits, in milliseconds: issuing all",
        "instructions, those in double precision, and the memory if nothing stays in caches. The largest is the least",
        "that a stage can take.",
        "",
    ]
    head = ["", *dict.fromkeys(loop.stage for loop in LOOPS), "all, at best", "Mbases/s, at most"]
    rows = []
    for board in BOARDS:
        stages = expected(board, passes)
        total = sum(max(limits) for limits in stages.values())
        cells = [" / ".join(f"{limit:.3g}" for limit in limits) for limits in stages.values()]
        rows.append([board.name, *cells, f"{total:.3g}", f"{passes['bases'] / 1e3 / total:.3g}"])
    lines += table(head, rows)
    lines += ["", "Instructions of a pass of a warp, and those in double precision:", ""]
    rows = []
    for loop in LOOPS:
        counts = (of_a_pass(loop, architecture) for architecture in dict.fromkeys(b.architecture for b in BOARDS))
        cells = [f"{instructions:.0f}, {double:.0f}" for instructions, double in counts]
        rows.append([f"{loop.kernel}: {loop.passes}", f"{passes[loop.passes]:.3g}", *cells])
    names = [f"{a / 10}" for a in dict.fromkeys(board.architecture for board in BOARDS)]
    lines += table(["loop", "passes", *names], rows)
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.output:
        arguments.output.write_text(text)


if __name__ == "__main__":
    main()
