"""Kernels of calls and events compile for 64-bit ARM, which this machine need not be; .ci/arm runs all of them."""

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
    events = ["eventalign", *made.options(), "-o", str(tmp_path / "e.tsv"), "--signal-index", "--samples"]
    calls = ["call-methylation", *made.options(), "-o", str(tmp_path / "calls.tsv")]
    commands = [[*calls, "--modbam", str(tmp_path / "calls.bam")], [*calls, "--per-site"], events]
    _run("record", str(tmp_path / "kernels"), json.dumps(commands))
    return tmp_path / "kernels"


def test_kernels_compile_for_arm(recorded: Path, tmp_path: Path):
    found = json.loads(_run("compile", str(recorded), NUMBA_CACHE_DIR=str(tmp_path / "cache"), NUMBA_OPT="0"))
    assert found["kernels"] >= 30
    assert {"f5py.methylation._calls_numba.call_all", "f5py.methylation._per_site_numba.call_all_sites"} <= set(
        found["flush"]
    )
