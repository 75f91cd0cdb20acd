"""Types of the arguments that runs call kernels with: ``python -m tests.runs.kernel_signatures`` lists what differs.

Numba compiles a kernel for every combination of types, and loads the code of each by itself, while the run waits.
Arrays differ in more than the types of their numbers: in whether they can be written, and whether they are one piece.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import traceback
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

_PACKAGE = Path(__file__).resolve().parents[2] / "f5py"
#: Frames of a call that are told, the innermost ones.
_N_FRAMES = 4
_caller = threading.local()

#: Where each kernel was called with each combination of types first: the run, and the lines of the call.
Calls = dict[str, dict[tuple[str, ...], tuple[str, list[str]]]]


class Recorder:
    """Notes the types of all calls from Python; to be made before kernels are imported."""

    def __init__(self) -> None:
        from numba.core import dispatcher

        from f5py.threads.pool import WorkerPool

        self.calls: Calls = defaultdict(dict)
        self.run = ""
        base: Any = dispatcher._DispatcherBase
        initialise, compile_for, run_in_threads = base.__init__, base._compile_for_args, WorkerPool.run

        def initialise_exactly(kernel: Any, *arguments: Any, exact_match_required: bool) -> None:
            # else integers of one type are taken for those of another where that was compiled first
            initialise(kernel, *arguments, exact_match_required=True)

        def compile_and_note(kernel: Any, *arguments: Any, **names: Any) -> Any:
            types = tuple("omitted" if hasattr(one, "value") else str(kernel.typeof_pyval(one)) for one in arguments)
            name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
            self.calls[name].setdefault(types, (self.run, getattr(_caller, "lines", None) or _lines_of_package()))
            return compile_for(kernel, *arguments, **names)

        def run_from(pool: Any, kernel: Any, reads: Any, *arguments: Any, **names: Any) -> float:
            lines = _lines_of_package()

            def kernel_of_here(*given: Any) -> None:
                _caller.lines = lines
                try:
                    kernel(*given)
                finally:
                    _caller.lines = None

            return run_in_threads(pool, kernel_of_here, reads, *arguments, **names)

        base.__init__, base._compile_for_args = initialise_exactly, compile_and_note
        WorkerPool.run = run_from  # type: ignore[method-assign]


def _lines_of_package() -> list[str]:
    here = [frame for frame in traceback.extract_stack() if frame.filename.startswith(str(_PACKAGE))]
    lines = [(os.path.relpath(frame.filename, _PACKAGE), frame.lineno) for frame in here]
    return [f"{path}:{line}" for path, line in lines if not path.startswith(("jit/", "threads/"))][-_N_FRAMES:]


@contextmanager
def gpus_of_small_runs() -> Iterator[None]:
    """Let played GPUs take all batches however small, and let batches wait until they have started."""
    from f5py.compute.gpu import backend, selection
    from f5py.compute.gpu import device as opening
    from f5py.mapping.gpu import chains, pair_alignments, seeds

    compute = selection.AutoGpuScheduler.compute

    def wait_for_starts() -> bool:
        for thread in threading.enumerate():
            if thread.name == opening.START_THREAD:
                thread.join()
        return False

    def compute_when_all_are_there(self: Any, batch: Any) -> None:
        if self._waits:
            wait_for_starts()
        compute(self, batch)

    with (
        mock.patch.object(backend, "_SMALL_RATIO", 0.0),
        mock.patch.object(opening, "is_starting", wait_for_starts),
        mock.patch.object(selection.AutoGpuScheduler, "compute", compute_when_all_are_there),
        mock.patch.object(chains, "_FEW_PAIRS", -1),
        mock.patch.object(seeds, "_FEW_BASES", -1),
        # a large arena takes the played device long to fill
        mock.patch.dict(os.environ, F5PY_PLAYED_MEMORY=str(128 << 20)),
        mock.patch.object(chains, "_MOST_ANCHORS", 1 << 16),
        mock.patch.object(pair_alignments, "_MOST_SLOTS", 32),
        mock.patch.object(pair_alignments, "_MOST_PACKED", 1 << 20),
    ):
        yield


def made_runs(folder: Path) -> list[list[str]]:
    """Make reads with signals of all formats; return the commands of runs with them."""
    import pysam

    from ..made_data import ReadSet

    made = ReadSet.simulated(folder, 400, n_reads=6)
    blow5, pod5 = made.with_slow5(folder), made.with_pod5(folder)
    fastq, unaligned = folder / "reads.fastq", folder / "unaligned.bam"
    index, genome = folder / "ref.fidx", str(made.genome)
    with pysam.FastxFile(str(made.reads)) as file:
        reads = [(read.name or "", read.sequence or "") for read in file]
    fastq.write_text("".join(f"@{name}\n{bases}\n+\n{'5' * len(bases)}\n" for name, bases in reads))
    header = pysam.AlignmentHeader.from_dict({"HD": {"VN": "1.6"}})
    with pysam.AlignmentFile(str(unaligned), "wb", header=header) as out:
        for name, bases in reads:
            record = pysam.AlignedSegment(header)
            record.query_name, record.query_sequence, record.flag = name, bases, 4
            out.write(record)

    def path(name: str) -> str:
        return str(folder / name)

    without_reads = ["-b", str(made.bam), "-g", genome, "--slow5", str(blow5.signal_path), "-t", "2"]
    runs = []
    for use in ("off", "on"):
        some, one = ["--gpu", use, "-K", "5"], ["--gpu", use, "-K", "1"]
        calls = ["call-methylation", "-o", path("calls.tsv")]
        events = ["eventalign", "-o", path("events.tsv")]
        mapped = ["map", "--gpu", use, "-t", "2", "-K", "3000", "-o"]
        runs += [
            [*calls, *made.options(), *some],
            [*calls, *made.options(), *one, "--per-site"],
            [*calls, *blow5.options(), *some, "--noise", "correlated"],
            [*calls, *pod5.options(), *one, "--per-site", "--noise", "correlated"],
            [*calls, *pod5.options(), *some, "--pod5", str(pod5.signal_path)],
            [*calls, *without_reads, *some, "--accurate"],
            [*calls, *made.options(), *some, "--modbam", path("m.bam"), "--bedmethyl", path("calls.bed")],
            [*calls, *made.options(), *some, "--plan", path(f"plan-{use}"), "--partitions", "2"],
            ["run-part", path(f"plan-{use}"), "0", "1"],
            ["finish", path(f"plan-{use}")],
            [*events, *made.options(), *some],
            [*events, *blow5.options(), *one, "--samples", "--signal-index"],
            [*events, *pod5.options(), *one, "-c"],
            ["resquiggle", str(made.reads), str(made.signal_path), "-o", path("moves.tsv"), *some],
            ["resquiggle", str(blow5.reads), str(blow5.signal_path), "-o", path("moves.paf"), "-c", *one],
            [*mapped, path("mapped.bam"), genome, str(made.reads)],
            [*mapped, path("mapped.paf"), genome, str(fastq)],
            [*mapped, path("mapped.bam"), genome, str(unaligned)],
            [*mapped, path("mapped.bam"), genome, str(fastq), "-K", "1"],
            [*mapped, path("mapped.bam"), genome, str(made.reads), "--seeds", "mem"],
            [*mapped, path("mapped.bam"), genome, str(made.reads), "-x", "darwin"],
            ["map", genome, "-d", str(index)],
            [*mapped, path("mapped.paf"), str(index), str(fastq)],
        ]  # fmt: skip
    return [
        *runs,
        ["index", "--slow5", str(blow5.signal_path), str(fastq)],
        ["meth-freq", "-i", path("calls.tsv"), "-o", path("freq.tsv")],
        ["meth-freq", "-s", "-i", path("calls.tsv"), "-o", path("freq.tsv")],
        ["meth-freq", "-i", path("m.bam"), "-o", path("freq.tsv"), "-g", genome],
        ["freq-merge", path("freq.tsv"), path("freq.tsv"), "-o", path("merged.tsv")],
    ]


def record(folder: Path) -> Calls:
    """Return what is called by the stages that a first run compiles, and by runs on CPU threads and a played GPU."""
    recorder = Recorder()
    from f5py.cli import main
    from f5py.mapping.run.compiled_stages import STAGES as MAPPING_STAGES
    from f5py.runs.compiled_stages import STAGES

    from ..conftest import PLAYED_GPU, forget_cupy
    from ..made_data import last_of_each
    from ..played_gpu.checks import kept_in
    from ..readers_here import readers_here, scans_here

    for name, compile_stage in (STAGES | MAPPING_STAGES).items():
        recorder.run = name
        compile_stage()
    sys.path.insert(0, str(PLAYED_GPU))
    with (
        gpus_of_small_runs(),
        tempfile.TemporaryDirectory() as checks,
        kept_in(Path(checks)),
        readers_here(lambda n_processes: n_processes == 1),
        scans_here(),
    ):
        recorder.run = "made reads"
        for command in made_runs(folder):
            forget_cupy()
            recorder.run = " ".join(os.path.basename(word) for word in command)
            print(">", recorder.run, file=sys.stderr, flush=True)
            try:
                main(last_of_each(command))
            except SystemExit as end:
                if end.code:
                    raise RuntimeError(f"{recorder.run} ended with {end.code}") from None
    return recorder.calls


def several(calls: Calls) -> dict[str, list[str]]:
    """Say of each kernel that is called with several combinations of types how they differ, and where."""
    told = {}
    for name, kinds in sorted(calls.items()):
        if len(kinds) > 1:
            columns = [set(column) for column in zip(*kinds, strict=True)]
            told[name] = [
                f"{run} | {' > '.join(lines)}: "
                + ", ".join(f"{i}: {one}" for i, one in enumerate(types) if len(columns[i]) > 1)
                for types, (run, lines) in kinds.items()
            ]
    return told


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made_folder:
        called = record(Path(made_folder))
    print(json.dumps(several(called), indent=2))
