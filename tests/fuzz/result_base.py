"""Sound results: tables, tagged alignments, models, and runs in parts that have stopped before their end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from f5py.errors import F5pyError
from f5py.io.files.disk import working_folder

from ..made_data import run_command

PLANNED = ("-b", "tags.bam", "-g", "ref.fa", "-t", "1", "--slow5", "none.blow5")
RESUMED = ("call-methylation", *PLANNED, "-o", "resumed.tsv", "--resume", "--partitions", "2")
MOVES = ("resquiggle", "--resume", "-t", "1", "-K", "1", "-o", "moves.tsv", "reads.fastq", "none.blow5")
WATCHED = (
    "call-methylation", "--watch", "watched", "--watch-until-idle", "0", "--watch-interval", "0.01", "--slow5",
    "none.blow5", "-g", "ref.fa", "-t", "1", "-o", "watched.tsv",
)  # fmt: skip


def make_results(folder: Path) -> None:
    """Make all of them in a folder with sound inputs."""
    with working_folder(folder):
        contig = Path("ref.fa").read_text().split("\n")[0][1:].split()[0]
        Path("contig").write_text(contig)
        calls = ("call-methylation", *PLANNED)
        _run(*calls, "-o", "whole.tsv", "--modbam", "mod.bam", "--bedmethyl", "sites.bed")
        Path("regions.bed").write_text(f"{contig}\t100\t900\tfirst\n{contig}\t800\t2500\tsecond\n")
        for kind in ("tsv", "parquet"):
            _run("eventalign", *PLANNED, "--print-read-names", "-o", f"events.{kind}")
        for name in ("calls.tsv", "calls.parquet", "events.tsv", "events.parquet", "sites.bed"):
            os.link(name, f"sound_{name}")
        _make_npz()
        outputs = ("-o", "planned.tsv", "--bedmethyl", "planned.bed", "--modbam", "planned.bam")
        _run(*calls, *outputs, "--plan", "plan", "--partitions", "3")
        _run("run-part", "plan")
        _run(*calls, "-o", "planned.parquet", "--plan", "plan_parquet", "--partitions", "2")
        _run("run-part", "plan_parquet")
        _run(*calls, "-o", "empty_plan.tsv", "--plan", "empty_plan", "--partitions", "2")
        with _stopping("f5py.runs.in_parts.finish"):
            _run(*RESUMED, status=1)
        with (
            mock.patch("f5py.commands.resquiggle.READS_PER_PART", 1),
            _stopping("f5py.commands.resquiggle.join_outputs"),
        ):
            _run(*MOVES, status=1)
        Path("watched").mkdir()
        os.link("reads.bam", "watched/a.bam")
        with _stopping("f5py.runs.watch.join_parts"):
            _run(*WATCHED, status=1)
        os.link("reads.fastq", "journal.fastq")
        with _stopping("f5py.commands.index.ReadIndexOutput.commit"):
            _run("index", "-d", "single", "--resume", "journal.fastq", status=1)


def _run(*arguments: str, status: int = 0) -> None:
    if run_command(*arguments) != status:
        raise RuntimeError(f"{' '.join(arguments)} did not end with status {status}")


@contextmanager
def _stopping(function: str) -> Iterator[None]:
    """Let runs end before they put their parts together."""

    def stop(*_: Any, **__: Any) -> None:
        raise F5pyError("stopped")

    with mock.patch(function, stop):
        yield


def _make_npz() -> None:
    import numpy as np

    from f5py.pore_model.model import builtin

    model = builtin("r9.4_450bps.nucleotide.6mer")
    level = model.level_mean.reshape(-1)[: 4**6].astype(np.float64)
    mean, spread = float(level.mean()), float(level.std())
    arrays: dict[str, Any] = {"_pa_mean": np.array(mean), "_pa_stdv": np.array(spread)}
    arrays |= {"current.mean": ((level - mean) / spread).astype("f4"), "current.stdv": np.full(4**6, 0.15, "f4")}
    np.savez("model.npz", **arrays)
