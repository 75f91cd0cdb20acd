"""Bad input that only ``f5py call-methylation`` can meet: splicing, and models of methylation."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from f5py.pore_model import builtin

from ...made_data import ReadSet, error_line, run_command
from .commands import CALL_METHYLATION, SignalCommand
from .conftest import Fails, Stops, Succeeds
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


def test_the_builtin_models_from_files_change_nothing(
    made: ReadSet, table: bytes, tmp_path: Path, succeeds: Succeeds
) -> None:
    options: list[object] = []
    for option, name in (("--kmer-model", "r9.4_450bps.nucleotide.6mer"), ("--meth-model", "r9.4_450bps.cpg.6mer")):
        model = builtin(name)
        kmers = ("".join(kmer) for kmer in product(model.alphabet, repeat=6))
        values = zip(kmers, model.level_mean, model.level_stdv, strict=True)
        (tmp_path / name).write_text("".join(f"{kmer}\t{mean:.9g}\t{stdv:.9g}\n" for kmer, mean, stdv in values))
        options += [option, tmp_path / name]
    assert succeeds(made, *options)[0] == table


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
    capfd.readouterr()
    assert run_command("call-methylation", *inputs, "-q", methylation, "-o", tmp_path / "calls.tsv") == 1
    assert words in error_line(capfd.readouterr().err)
    assert list(tmp_path.iterdir()) == []
