"""The reference: its contigs against the BAM file's, its segments and letters."""

from __future__ import annotations

import numpy as np
import pysam
import pytest

from f5py.errors import InputFileError
from f5py.io.reference import Reference

TEXT = ">one comment\nACGTAC\nGTNNAC\n>two\nacgtu\n"
CONTIGS, LENGTHS = ["one", "two"], [12, 5]


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "ref.fa"
    file.write_text(TEXT)
    return str(file)


def test_segments_are_cut_at_the_end(path):
    reference = Reference(path, CONTIGS, LENGTHS)
    assert reference.segment(0, 0, 12) == b"ACGTACGTNNAC"
    assert reference.segment(0, 4, 8) == b"ACGT"
    assert reference.segment(0, 10, 99) == b"AC"
    assert reference.segment(1, 0, 5) == b"acgtu"
    assert reference.segment(0, 12, 13) == b""
    reference.close()


def test_bgzip_file(tmp_path):
    file = tmp_path / "ref.fa.gz"
    with pysam.BGZFile(str(file), "w") as out:
        out.write(TEXT.encode())
    reference = Reference(str(file), CONTIGS, LENGTHS)
    assert reference.segment(0, 4, 9) == b"ACGTN"
    reference.close()


def test_letters(path):
    reference = Reference(path, CONTIGS, LENGTHS)
    letters = "ACGTNMRWSYKVHDB"
    resolved = b"ACGTAAAACCGAAAC"
    for text in (letters, letters.lower()):
        found = reference.normalise(np.frombuffer(text.encode(), np.uint8))
        assert found.tobytes() == resolved
    reference.close()


def test_contigs_may_be_a_selection(path):
    reference = Reference(path, ["two"], [5])
    assert reference.segment(0, 0, 2) == b"ac"
    reference.close()


@pytest.mark.parametrize(
    ("contigs", "lengths", "message"),
    [
        (["one", "x"], [12, 3], r"lacks 1 of the BAM file's 2 contigs \(x\)"),
        (["x", "y", "z"], [1, 1, 1], r"lacks 3 of the BAM file's 3 contigs \(x, y, z\)"),
        (["x", "y", "z", "w"], [1, 1, 1, 1], r"lacks 4 .* \(x, y, z, \.\.\.\)"),
        (["one"], [13], "contig one has 12 bases, but 13 in the BAM file"),
    ],
)
def test_other_contigs(path, contigs, lengths, message):
    with pytest.raises(InputFileError, match=message):
        Reference(path, contigs, lengths)


@pytest.mark.parametrize("content", [b"", b"no FASTA\n", b">a\nAC\nACGT\nA\nCCC\n", b"\x1f\x8b garbage"])
def test_not_a_fasta_file(tmp_path, content):
    file = tmp_path / "bad.fa"
    file.write_bytes(content)
    with pytest.raises(InputFileError, match=r"bad\.fa: cannot read the reference") as problem:
        Reference(str(file), ["a"], [10])
    assert "\n" not in str(problem.value)


def test_missing_file(tmp_path):
    with pytest.raises(InputFileError, match=r"absent\.fa: no such file"):
        Reference(str(tmp_path / "absent.fa"), ["a"], [10])


def test_index_that_is_not_the_file_s(path):
    Reference(path, CONTIGS, LENGTHS).close()
    with open(path, "w") as file:
        file.write(TEXT[:20])
    reference = Reference(path, CONTIGS, LENGTHS)
    with pytest.raises(InputFileError, match=r"bases 7 to 12 of contig one cannot be read.*Delete .*ref\.fa\.fai"):
        reference.segment(0, 6, 12)
    reference.close()
