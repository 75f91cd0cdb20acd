"""A fixed set of damaged inputs, and every case that failed once. In processes of their own, as they fork."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ..examples import examples

for _package in ("pyslow5", "pod5", "vbz_h5py_plugin", "pyarrow"):
    pytest.importorskip(_package, reason=f"needs {_package}")

_ROOT = Path(__file__).resolve().parents[2]
_CORPUS = list((Path(__file__).parent / "corpus").glob("*.zip"))
_N_CASES = examples(250)


def run_fuzz(*options: str, module: str = "tests.fuzz") -> str:
    ran = subprocess.run(
        [sys.executable, "-m", module, *options], cwd=_ROOT, capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
    return ran.stdout


@pytest.fixture(scope="module")
def told() -> str:
    """Run the corpus and a fixed set of cases in one process, which makes its sound inputs once."""
    return run_fuzz("--corpus", "--cases", str(_N_CASES), "--seed", "1")


def test_a_fixed_set(told: str) -> None:
    assert f"| **all** | {_N_CASES + len(_CORPUS)} |" in told


def test_the_corpus(told: str) -> None:
    kinds = [json.loads(line)["kind"] for line in told.splitlines() if line.startswith("{")]
    assert len(kinds) == len(_CORPUS) > 5


def test_killed_runs() -> None:
    assert "Wrong: 0." in run_fuzz("--kills", str(examples(40)), module="tests.fuzz.kills")
