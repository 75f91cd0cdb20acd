"""Kernels of calls and events compile for 64-bit ARM, which this machine need not be; .ci/arm runs all of them."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import pytest

import f5py

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


def _compiled(recorded: Path, folder: Path) -> str:
    """Compile what was recorded, or find what that gave: the same compiler makes the same of it.

    It is kept for all test processes of this user, by all sources, the types that were recorded, and the versions.
    """
    kinds = sorted((name, sorted(map(str, types))) for name, types in pickle.loads(recorded.read_bytes()).items())
    package = Path(f5py.__file__).parent
    made_of = hashlib.sha256(repr([kinds, sys.version, *(map(version, ("numba", "llvmlite", "numpy")))]).encode())
    for path in (_PROGRAM, *sorted(package.rglob("*.py"))):
        made_of.update(path.read_bytes())
    kept = Path(tempfile.gettempdir()) / f"f5py-tests-{os.getuid()}-arm" / made_of.hexdigest()
    if not kept.is_file():
        told = _run("compile", str(recorded), NUMBA_CACHE_DIR=str(folder), NUMBA_OPT="0")
        kept.parent.mkdir(exist_ok=True)
        unfinished = kept.with_suffix(f".{os.getpid()}")
        unfinished.write_text(told)
        unfinished.replace(kept)
    return kept.read_text()


def test_kernels_compile_for_arm(recorded: Path, tmp_path: Path):
    found = json.loads(_compiled(recorded, tmp_path / "cache"))
    assert found["kernels"] >= 30
    assert {"f5py.methylation.group_scores.score_groups", "f5py.methylation.per_site.score_sites"} <= set(
        found["flush"]
    )
