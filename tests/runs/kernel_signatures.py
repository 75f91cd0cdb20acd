"""Which types of arguments runs call kernels with: ``python -m tests.runs.kernel_signatures`` lists kernels with several.

Numba compiles a kernel once for every combination of types, and loads each of them by itself, while the run waits. Arrays
differ in more than the types of their numbers: whether they can be written, and whether their rows are one piece.
"""

from __future__ import annotations

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
            types = tuple(
                str(kernel.typeof_pyval(one)) if not hasattr(one, "value") else "omitted" for one in arguments
            )
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
    inside = ("jit/", "threads/")
    lines = [(os.path.relpath(frame.filename, _PACKAGE), frame.lineno) for frame in here]
    return [f"{path}:{line}" for path, line in lines if not path.startswith(inside)][-_N_FRAMES:]


@contextmanager
def gpus_of_small_runs() -> Iterator[None]:
    """Let played GPUs take all batches however small, and let batches wait until they have started."""
    from unittest import mock

    from f5py.compute.gpu import backend, selection
    from f5py.compute.gpu.mapping import chains, pair_alignments, seeds

    compute = selection.GpusWhenTheyPay.compute

    def wait_for_starts() -> bool:
        for thread in threading.enumerate():
            if thread.name == selection._START_THREAD:
                thread.join()
        return False

    def compute_when_all_are_there(self: Any, batch: Any) -> None:
        wait_for_starts()
        compute(self, batch)

    with (
        mock.patch.object(backend, "_SMALL_RATIO", 0.0),
        mock.patch.object(selection, "is_starting", wait_for_starts),
        mock.patch.object(selection.GpusWhenTheyPay, "compute", compute_when_all_are_there),
        mock.patch.object(chains, "_FEW_PAIRS", -1),
        mock.patch.object(seeds, "_FEW_BASES", -1),
        mock.patch.object(chains, "_MOST_ANCHORS", 1 << 16),
        mock.patch.object(pair_alignments, "_MOST_SLOTS", 32),
        mock.patch.object(pair_alignments, "_MOST_PACKED", 1 << 20),
    ):
        yield


def made_runs(folder: Path) -> dict[str, list[list[str]]]:
    """Make reads with signals of all formats; return the commands of runs with them by what they are about."""
    import pysam

    from ..made_data import ReadSet

    made = ReadSet.simulated(folder)
    blow5, pod5 = made.with_slow5(folder), made.with_pod5(folder)
    fastq, unaligned = folder / "reads.fastq", folder / "unaligned.bam"
    index, genome = folder / "ref.fidx", str(made.genome)
    with pysam.FastxFile(str(made.reads)) as file:
        reads = [(read.name or "", read.sequence or "") for read in file]
    fastq.write_text("".join(f"@{name}\n{bases}\n+\n{'5' * len(bases)}\n" for name, bases in reads))
    with pysam.AlignmentFile(
        str(unaligned), "wb", header=pysam.AlignmentHeader.from_dict({"HD": {"VN": "1.6"}})
    ) as out:
        for name, bases in reads:
            record = pysam.AlignedSegment(out.header)
            record.query_name, record.query_sequence, record.flag = name, bases, 4
            out.write(record)

    def out(name: str) -> str:
        return str(folder / name)

    def without_reads(path: Path) -> list[str]:
        return ["-b", str(made.bam), "-g", genome, "--slow5", str(path), "-t", "2"]

    calls = ["call-methylation", *made.options(), "-o", out("calls.tsv")]
    runs: dict[str, list[list[str]]] = defaultdict(list)
    for gpu in (["--gpu", "off"], ["--gpu", "on"]):
        runs["calls"] += [
            [*calls, *gpu],
            [*calls, *gpu, "-K", "1"],
            [*calls, *gpu, "-K", "5", "--accurate"],
            [*calls, *gpu, "-K", "5", "--per-site"],
            [*calls, *gpu, "-K", "5", "--per-site", "--noise", "correlated"],
            [*calls, *gpu, "-K", "5", "--noise", "correlated"],
            [*calls, *gpu, "-K", "5", "-o", out("calls.tsv.gz"), "--modbam", out("mod.bam"), "--bedmethyl", out("x.bed.gz")],
            [*calls, *gpu, "-K", "5", "--plan", out(f"plan{gpu[1]}"), "--partitions", "2"],
            ["call-methylation", *blow5.options(), "-o", out("calls.tsv"), *gpu, "-K", "5"],
            ["call-methylation", *pod5.options(), "-o", out("calls.tsv"), *gpu, "-K", "5"],
            ["call-methylation", *without_reads(blow5.signal_path), "-o", out("calls.tsv"), *gpu, "-K", "5"],
        ]  # fmt: skip
        runs["events"] += [
            ["eventalign", *made.options(), "-o", out("events.tsv"), *gpu, "-K", "5"],
            ["eventalign", *blow5.options(), "-o", out("events.tsv"), *gpu, "-K", "1"],
            ["eventalign", *made.options(), "-o", out("events.tsv"), *gpu, "-K", "5", "--samples", "--signal-index"],
            ["eventalign", *made.options(), "-o", out("events.paf"), "-c", *gpu, "-K", "5"],
            ["eventalign", *made.options(), "-o", out("events.sam"), "-a", *gpu, "-K", "5"],
            ["resquiggle", str(made.reads), str(made.signal_path), "-o", out("moves.tsv"), *gpu, "-K", "5"],
            ["resquiggle", str(blow5.reads), str(blow5.signal_path), "-o", out("moves.paf"), "-c", *gpu, "-K", "1"],
        ]
        for target, *options in (
            [made.reads], [fastq], [unaligned], [made.reads, "--seeds", "mem"], [made.reads, "-x", "darwin"],
        ):  # fmt: skip
            for name in ("mapped.bam", "mapped.paf"):
                runs["mapping"].append(
                    ["map", genome, str(target), "-o", out(name), *gpu, "-t", "2", "-K", "3000", *options]
                )
        runs["mapping"].append(["map", genome, str(fastq), "-o", out("one.bam"), *gpu, "-t", "2", "-K", "1"])
        runs["mapping"].append(["map", genome, "-d", str(index)])
        runs["mapping"].append(["map", str(index), str(fastq), "-o", out("of.paf"), *gpu, "-t", "2", "-K", "3000"])
    runs["tables"] = [
        ["index", "-d", str(made.signal_path), out("slow5.fasta"), "--iop", "1"],
        ["index", "--slow5", str(blow5.signal_path), str(fastq)],
        ["meth-freq", "-i", out("calls.tsv"), "-o", out("freq.tsv")],
        ["meth-freq", "-i", out("calls.tsv.gz"), "-o", out("freq.tsv")],
        ["meth-freq", "-s", "-i", out("calls.tsv.gz"), "-o", out("freq.tsv")],
        ["meth-freq", "-i", out("mod.bam"), "-o", out("freq.tsv"), "-g", genome],
        ["freq-merge", out("freq.tsv"), out("freq.tsv"), "-o", out("merged.tsv")],
        ["summary", out("calls.tsv.gz")],
    ]
    return dict(runs)


def compile_ahead_of_runs() -> None:
    """Do what ``f5py compile`` does, in this process."""
    from f5py.cli.compile import run
    from f5py.options.machine_commands import CompileOptions

    run(CompileOptions())


def record(folder: Path, rounds: list[str], compiled: bool) -> tuple[Calls, Calls]:
    """Return what is compiled ahead, which is nothing unless `compiled`, and what runs call with the played GPU too."""
    recorder = Recorder()
    from ..conftest import PLAYED_GPU, _forget_cupy
    from ..readers_here import readers_here, scans_here

    sys.path.insert(0, str(PLAYED_GPU))
    from f5py.cli import main

    ahead: Calls = {}
    if compiled:
        recorder.run = "compile"
        compile_ahead_of_runs()
        ahead = {name: dict(calls) for name, calls in recorder.calls.items()}
    with gpus_of_small_runs(), readers_here(lambda n_processes: n_processes == 1), scans_here():
        recorder.run = "preparation"
        runs = made_runs(folder)
        for command in [command for about in rounds or runs for command in runs[about]]:
            _forget_cupy()
            recorder.run = " ".join(os.path.basename(word) for word in command)
            print(recorder.run, file=sys.stderr, flush=True)
            try:
                main(command)
            except SystemExit as end:
                if end.code:
                    print(f"FAILED {end.code}", file=sys.stderr)
    return ahead, recorder.calls


def several(calls: Calls) -> Iterator[str]:
    """Say of each kernel that is called with several combinations of types how they differ, and where."""
    for name, kinds in sorted(calls.items()):
        if len(kinds) > 1:
            yield f"{name}: {len(kinds)}"
            columns = list(zip(*kinds, strict=True))
            for types, (run, lines) in kinds.items():
                yield f"    {run} | {' > '.join(lines)}"
                for i, (one, column) in enumerate(zip(types, columns, strict=True)):
                    if len(set(column)) > 1:
                        yield f"        {i}: {one}"


def not_ahead(ahead: Calls, calls: Calls) -> Iterator[str]:
    """Say what runs call that is not compiled ahead, and where."""
    for name, kinds in sorted(calls.items()):
        for types, (run, lines) in kinds.items():
            if types not in ahead.get(name, ()):
                yield f"{name}{' (other types)' if name in ahead else ''}\n    {run} | {' > '.join(lines)}"
                for one in ahead.get(name, ()):
                    yield from (
                        f"        {i}: {a} | {b}" for i, (a, b) in enumerate(zip(types, one, strict=True)) if a != b
                    )


def main_of_tool() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ahead, calls = record(Path(folder), sys.argv[1:], True)
    print("\n".join(several(calls)))
    print("Not compiled ahead:")
    print("\n".join(not_ahead(ahead, calls)))


if __name__ == "__main__":
    main_of_tool()
