"""Runs call every kernel with the same types, for which a first run compiles its stages."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

#: Kernels that are compiled more than once because the user's choice leaves code out of them, which would take a first
#: run longer than all of the rest: the correlations of the noise, columns of the table of events, introns.
BY_CHOICE = {
    "f5py.mapping.hits.hits.align_reads": 2,
    "f5py.methylation.group_scores.score_groups": 2,
    "f5py.methylation.per_site.score_sites": 2,
    "f5py.methylation.per_site.finish_sites": 2,
    "f5py.outputs.events.eventalign_table.format_table": 2,
}


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """Return what `tests.runs.kernel_signatures` tells of runs on the CPU threads and a played GPU."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++ to build the CUDA kernels for the CPU")
    done = subprocess.run(
        [sys.executable, "-m", "tests.runs.kernel_signatures"],
        cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "no GPU is used" not in done.stderr
    pieces = done.stderr.split("\n> ")
    with_gpu = [piece for piece in pieces if "--gpu on" in (line := piece.partition("\n")[0]) and "--plan" not in line]
    assert len(with_gpu) >= 15
    for piece in with_gpu:
        assert " by GPU 0, 0 by the CPU threads" in piece, piece
    return json.loads(done.stdout)


def test_every_kernel_is_called_with_the_same_types(told: dict[str, Any]) -> None:
    """Whoever makes an array, of whatever format of file, and for however few reads."""
    others = {name: kinds for name, kinds in told.items() if len(kinds) != BY_CHOICE.get(name)}
    assert others == {}
