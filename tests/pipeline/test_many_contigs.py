"""References of very many contigs, as of metagenomes and transcripts: no loop over them before the first read."""

from __future__ import annotations

import sys
import threading
import tracemalloc
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

import pysam
import pytest

import f5py
from f5py.options.signal_commands import CallOptions, EventalignOptions
from f5py.pipeline.inputs import open_inputs

PACKAGE = str(Path(f5py.__file__).parent)
#: What compiles kernels may do so in a thread, until after the first batch.
COMPILER = str(Path(PACKAGE, "jit"))
FEW, MANY = 500, 20_500
#: Lines of Python that may run more often with the many contigs: far fewer than these are more.
MOST_LINES = 2_000
#: Bytes that a contig may take while the inputs are opened: its name in three places, its length, its row in the .fai.
MOST_BYTES = 1_000


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    """Make the same two reads with few and with many contigs."""
    found = {}
    for n in (FEW, MANY):
        folder = tmp_path_factory.mktemp(str(n))
        f5py.simulate(
            output=folder, genome_length=3000, n_reads=2, median_length=700, signal_format="blow5", force=True
        )
        names = {"bam": "reads.bam", "genome": "ref.fa", "slow5": "reads.blow5", "reads": "reads.fastq"}
        files = {option: str(folder / name) for option, name in names.items()}
        with pysam.AlignmentFile(files["bam"]) as bam:
            header, records = bam.header.to_dict(), list(bam)
        header["SQ"] += [{"SN": f"contig{i}", "LN": 100} for i in range(n)]
        with pysam.AlignmentFile(files["bam"], "wb", header=pysam.AlignmentHeader.from_dict(header)) as bam:
            for record in records:
                bam.write(record)
        pysam.index(files["bam"])
        with open(files["genome"], "a") as genome:
            genome.write("".join(f">contig{i}\n{'ACGTACGTAC' * 10}\n" for i in range(n)))
        Path(f"{files['genome']}.fai").unlink()
        pysam.faidx(files["genome"])
        found[n] = files | {"slow5": (files["slow5"],)}
    return found


def first_batch(options: Any) -> None:
    with ExitStack() as inputs:
        loader, _ = open_inputs(options, inputs)
        assert len(next(loader.batches())) == 2


def lines_run(options: Any) -> Counter[str]:
    """Count the lines of the package that run until the first batch is there, in all threads, but for compiling."""
    counts: Counter[str] = Counter()

    def in_function(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            counts[f"{frame.f_code.co_filename}:{frame.f_lineno}"] += 1
        return in_function

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        return in_function if file.startswith(PACKAGE) and not file.startswith(COMPILER) else None

    before = sys.gettrace()
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        first_batch(options)
    finally:
        sys.settrace(before)
        threading.settrace(None)  # type: ignore[arg-type]
    return counts


@pytest.mark.parametrize("kind", [CallOptions, EventalignOptions])
def test_no_line_runs_for_each_contig(sets: dict[int, dict[str, str]], kind: Any) -> None:
    first_batch(kind(**sets[MANY]))  # what is compiled and imported at the first time
    few, many = (lines_run(kind(**sets[n])) for n in (FEW, MANY))
    more = many - few
    assert more.total() < MOST_LINES, more.most_common(5)


def test_contigs_take_little_memory(sets: dict[int, dict[str, str]]) -> None:
    peaks = {}
    for n in (MANY, FEW):
        first_batch(CallOptions(**sets[n]))
        tracemalloc.start()
        first_batch(CallOptions(**sets[n]))
        peaks[n] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    per_contig = (peaks[MANY] - peaks[FEW]) / (MANY - FEW)
    assert 10 < per_contig < MOST_BYTES
