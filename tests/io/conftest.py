"""Fixtures of the tests of files in and out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# helpers of another folder's tests, which pytest would only find together with those tests
sys.path.append(str(Path(__file__).resolve().parents[1] / "eventalign"))


@pytest.fixture(scope="session")
def ecoli_rows(ecoli: Path, indexed_ecoli: Path):
    """The reads of ``reads8.bam`` with the rows of the reference's event alignment; must not be changed."""
    from expected_rows import expected_batch

    return expected_batch(ecoli, indexed_ecoli / "reads.fasta")
