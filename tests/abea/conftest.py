"""Fixtures of the aligner tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from .kernels_on_cpu import Kernels


@pytest.fixture(scope="session")
def kernels() -> Callable[[int], Kernels]:
    """Return a function that gives the CUDA kernels for a band width, built for the CPU."""
    return cache(Kernels)
