"""Fixtures of the tests of compilation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .numba_forks import NumbaForks


@pytest.fixture(scope="package")
def numba_forks() -> Iterator[NumbaForks]:
    """Start a process that forks into programs that import Numba."""
    with NumbaForks() as forks:
        yield forks
