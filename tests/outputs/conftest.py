"""Fixtures of the tests of outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..event_alignment.expected_rows import expected_batch


@pytest.fixture(scope="session")
def ecoli_rows(ecoli: Path, indexed_ecoli: Path):
    """Return the reads of ``reads8.bam`` with the rows of f5c's event alignment; must not be changed."""
    return expected_batch(ecoli, indexed_ecoli / "reads.fasta")
