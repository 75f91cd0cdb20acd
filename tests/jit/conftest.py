"""Fixtures of the tests of compilation."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .numba_forks import NumbaForks


@pytest.fixture(scope="package")
def numba_forks() -> Iterator[NumbaForks]:
    """Start a process that forks into programs that import Numba."""
    with NumbaForks() as forks:
        yield forks


@pytest.fixture
def run_with_kernels(tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs a program beside a module ``kernels``, with a cache of the test's own."""

    def run(kernels: str, program: str, *arguments: str, **variables: str) -> str:
        (tmp_path / "kernels.py").write_text(kernels)
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path), **variables},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
