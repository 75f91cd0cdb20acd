"""Bad input that only ``f5py call-methylation`` can meet: splicing, and models of methylation."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...made_data import ReadSet, refused
from .commands import CALL_METHYLATION, SignalCommand
from .conftest import Fails, Stops
from .test_chemistry import model_text


@pytest.fixture
def command() -> SignalCommand:
    return CALL_METHYLATION


def test_spliced_alignment(made: ReadSet, table: bytes, tmp_path: Path, stops: Stops) -> None:
    _, records = made.records()
    records[9].cigarstring = f"600M100N{len(records[9].query_sequence or '') - 600}M"
    line, output = stops(made.with_records(tmp_path, records, index=False), "-K", 4)
    assert f"read {records[9].query_name}: spliced alignment (N in the CIGAR)" in line
    assert table.startswith(output)
    assert list(CALL_METHYLATION.by_read(output)) == made.names[:8]


def test_wrong_models_of_methylation(made: ReadSet, tmp_path: Path, fails: Fails) -> None:
    path = tmp_path / "model.txt"
    for text, cause in (
        (model_text(2), "over ACGMT in lexicographic order"),
        (model_text(2, "ACGMT"), "k"),
        (None, "cannot be read"),
    ):
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
        line = fails(made, "--meth-model", path)
        assert str(path) in line
        assert cause in line


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "methylation", "words"),
    [("rna002_sequin", "cpg", "for RNA use eventalign"), ("r10_wga", "gpc", "give a model with --meth-model")],
)
def test_methylation_cannot_be_called_in_it(
    slow5_set, tmp_path: Path, capfd, name: str, methylation: str, words: str
) -> None:
    folder = slow5_set(name)
    inputs = ["-r", folder / "reads.fastq", "-b", folder / "reads.bam", "-g", folder / "ref.fa"]
    assert words in refused(capfd, "call-methylation", *inputs, "-q", methylation, "-o", tmp_path / "calls.tsv")
    assert list(tmp_path.iterdir()) == []
