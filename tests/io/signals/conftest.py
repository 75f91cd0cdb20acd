"""Fixtures of the signal tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .made_signals import MadeRead, make_reads


@pytest.fixture(scope="session")
def made_reads() -> list[MadeRead]:
    return make_reads()


@pytest.fixture(autouse=True)
def _processes_find_the_odd_readers(monkeypatch: pytest.MonkeyPatch):
    """Reader processes import a reader by its module's name; after all others, so that f5py is not taken from there."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).resolve().parents[3])])
