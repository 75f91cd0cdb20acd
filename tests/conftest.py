"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real read sets with the reference tools' outputs, beside the checkout."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the real read sets in {folder}")
    return folder


@pytest.fixture(scope="session")
def ecoli(shared_data: Path) -> Path:
    """112 E. coli R9.4 reads: fast5, FASTA, BAM, reference and expected outputs."""
    return shared_data / "ecoli_r94"
