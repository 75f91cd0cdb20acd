"""All kernels compile for 64-bit ARM, which this machine need not be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..made_data import ReadSet

_PROGRAM = Path(__file__).with_name("other_processor.py")


def _run(*arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, str(_PROGRAM), *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture
def recorded(made: ReadSet, tmp_path: Path) -> Path:
    """Argument types of the kernels that runs of the commands call."""
    inputs = made.options()
    (tmp_path / "blow5").mkdir()
    blow5 = made.with_slow5(tmp_path / "blow5").options()

    def out(name: str) -> str:
        return str(tmp_path / name)

    commands = [
        ["index", "-d", str(made.signal_path), str(made.reads)],
        [
            "call-methylation",
            *inputs,
            "-o",
            out("calls.tsv"),
            "--modbam",
            out("calls.bam"),
            "--bedmethyl",
            out("a.bed"),
        ],
        ["call-methylation", *inputs, "-o", out("calls.parquet"), "--per-site"],
        ["call-methylation", *inputs, "-o", out("several.tsv"), "--methylation", "cpg,gpc"],
        [
            "eventalign",
            *inputs,
            "-o",
            out("e.tsv"),
            "--summary",
            out("s.tsv"),
            "--signal-index",
            "--samples",
            "--print-read-names",
        ],
        ["eventalign", *inputs, "-o", out("e.paf"), "-c"],
        ["eventalign", *inputs, "-o", out("e.sam"), "-a"],
        ["eventalign", *inputs, "-o", out("e.parquet")],
        ["eventalign", *inputs, "-o", out("collapsed.tsv"), "--collapse-events", "--scale-events"],
        ["resquiggle", str(made.reads), str(made.signal_path), "--iop", "1", "-o", out("moves.tsv")],
        ["resquiggle", str(made.reads), str(made.signal_path), "--iop", "1", "-c", "-o", out("moves.paf")],
        ["meth-freq", "-i", out("calls.tsv"), "-o", out("f.tsv"), "-s"],
        ["freq-merge", out("f.tsv"), out("f.tsv"), "-o", out("merged.tsv")],
        ["summary", out("calls.tsv"), "-o", out("summary.txt")],
        ["call-methylation", *blow5, "-o", out("window.tsv"), "-w", "simulated:2000-9000"],
        ["eventalign", *blow5, "-o", out("second.tsv"), "--print-read-names", "--signal-index"],
        ["compare", out("e.tsv"), out("second.tsv"), "--min-coverage", "1", "-o", out("compared.tsv")],
    ]
    _run("record", str(tmp_path / "kernels"), json.dumps(commands))
    return tmp_path / "kernels"


def test_all_kernels_compile_for_arm(recorded: Path, tmp_path: Path):
    found = json.loads(_run("compile", str(recorded), NUMBA_CACHE_DIR=str(tmp_path / "cache"), NUMBA_OPT="0"))
    assert found["kernels"] >= 60
    assert {"f5py.methylation._calls_numba.call_all", "f5py.methylation._per_site_numba.call_all_sites"} <= set(
        found["flush"]
    )
