"""Fixtures of the signal tests."""

from __future__ import annotations

import pytest

from .made_signals import MadeRead, make_reads


@pytest.fixture(scope="session")
def made_reads() -> list[MadeRead]:
    return make_reads()
