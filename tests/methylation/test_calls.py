"""Calls of every motif on real reads, against nanopolish and against each other."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from f5py.core.motifs import MOTIFS, reverse_complement
from f5py.methylation.group_scores import TOGETHER

pytestmark = pytest.mark.shared

_KEY = ["chromosome", "strand", "start", "end", "read_name", "num_calling_strands", "num_motifs", "sequence"]
_SCORES = ["log_lik_ratio", "log_lik_methylated", "log_lik_unmethylated"]


def _rows(text: bytes | str) -> list[dict[str, str]]:
    text = text.decode() if isinstance(text, bytes) else text
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


@pytest.fixture
def models(shared_data: Path) -> Path:
    return shared_data.parent / "models"


@pytest.mark.parametrize("name", MOTIFS)
def test_every_builtin_motif_equals_nanopolish(name: str, ecoli: Path, call_ecoli) -> None:
    rows = _rows(call_ecoli("reads8.bam", "--hard-clips=no", "--methylation", name))
    expected = _rows((ecoli / "expected" / "nanopolish" / f"{name}.tsv").read_text())
    assert len(rows) > 100
    assert [[row[column] for column in _KEY] for row in rows] == [[row[column] for column in _KEY] for row in expected]
    difference = np.array(
        [[float(row[c]) - float(other[c]) for c in _SCORES] for row, other in zip(rows, expected, strict=True)]
    )
    assert np.abs(difference[:, 0]).max() < 0.05
    # An event between two k-mers of the same bases fits both alike; nanopolish's aligner gives it to the other one than
    # f5c's, and ours. Where a group's window ends there, both log-likelihoods have one event more or less.
    other = np.flatnonzero((np.abs(difference) >= 0.05).any(axis=1))
    assert len(other) == (name == "gpc")
    reference = "".join((ecoli / "ref.fa").read_text().split("\n")[1:])
    for i in other.tolist():
        begin = int(rows[i]["start"]) - 10
        assert len(set(reference[begin - 1 : begin + 6])) == 1  # two k-mers of one base
        assert difference[i, 1] == pytest.approx(difference[i, 2], abs=0.02)


@pytest.mark.parametrize("name", MOTIFS)
def test_a_users_motif_with_the_builtin_model_is_the_builtin_motif(name, models, call_ecoli) -> None:
    motif = MOTIFS[name]
    model = str(models / f"{motif.model}.tsv.gz")
    own = call_ecoli("reads8.bam", "--motif", f"{motif.pattern}:{motif.offset}", "--meth-model", model)
    assert own == call_ecoli("reads8.bam", "--methylation", name)


def test_a_motif_that_is_no_palindrome_is_called_on_the_records_strand(models: Path, call_ecoli) -> None:
    """CCAGG alone: its rows are those of CCWGG that show it on the record's strand, where no other site is near."""
    model = str(models / f"{MOTIFS['dcm'].model}.tsv.gz")
    rows = _rows(call_ecoli("reads.bam", "--motif", "CCAGG:1", "--meth-model", model))
    both = _rows(call_ecoli("reads.bam", "--methylation", "dcm"))
    spelled = {"+": "CCAGG", "-": reverse_complement("CCAGG")}

    def of_own_strand(row: dict[str, str]) -> bool:
        return row["sequence"][5:].startswith(spelled[row["strand"]])

    assert all(of_own_strand(row) for row in rows)
    strands = [row["strand"] for row in rows]
    assert min(strands.count("+"), strands.count("-")) > 100
    alone = [row for row in both if row["num_motifs"] == "1" and of_own_strand(row)]
    other = [row for row in both if row["num_motifs"] == "1" and not of_own_strand(row)]
    assert min(len(alone), len(other)) > 200
    found = [tuple(row.values()) for row in rows]
    assert {tuple(row.values()) for row in alone} <= set(found)
    assert not {tuple(row.values()) for row in other} & set(found)
    # the rest are groups of both spellings, of which one is left
    n_in_groups = sum(row["num_motifs"] != "1" for row in both)
    assert 0 <= len(rows) - len(alone) <= n_in_groups


def test_overlapping_sites_are_methylated_from_left_to_right(models: Path, call_ecoli) -> None:
    """Runs of sites that overlap are one group each, and the calls do not depend on threads."""
    options = ["--motif", "CHH:0", "--meth-model", str(models / f"{MOTIFS['dcm'].model}.tsv.gz")]
    calls = call_ecoli("reads8.bam", *options)
    assert calls == call_ecoli("reads8.bam", *options, "-t", "1", "-K", "2")
    rows = _rows(calls)
    scores = np.array([[float(row[column]) for column in _SCORES] for row in rows])
    assert len(rows) > 200
    assert np.isfinite(scores).all()
    for row in rows:
        bases = row["sequence"] if row["strand"] == "+" else reverse_complement(row["sequence"])
        assert bases[5] == "C" if row["strand"] == "+" else bases[-6 - 2] == "C" or len(bases) < 8


@pytest.mark.parametrize("options", [(), ("--noise", "correlated"), ("--per-site",)])
def test_groups_are_scored_alike_with_whichever_others(options: tuple[str, ...], ecoli: Path, call_ecoli) -> None:
    """Packs are made of the groups of many reads, or of those of one."""
    together = call_ecoli("reads.bam", "-K", "512", *options)
    assert len(together.splitlines()) > 2 * TOGETHER
    assert together == call_ecoli("reads.bam", "-K", "1", *options)
