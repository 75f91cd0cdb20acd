"""Bad input of ``f5py map``: one line, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pysam
import pytest

from ..made_data import refused, run_command

REFERENCE = ">one\n" + "ACGTTGCAAGCTTAGGCATCGATTACCGGATATCGGCATTAGC" * 20 + "\n"
READS = "@read\n" + "ACGTTGCAAGCTTAGGCATCGATTACCGGATATCGGCATTAGC" * 5 + "\n+\n" + "I" * 215 + "\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "ref.fa").write_text(REFERENCE)
    (tmp_path / "reads.fq").write_text(READS)
    return tmp_path


REFERENCES = {
    "missing": (None, "no such file"),
    "empty": ("", "holds no sequences"),
    "not FASTA": ("what is this?\n", "neither FASTA nor FASTQ"),
    "contig twice": (">a\n" + "ACGTTGCA" * 9 + "\n>a\nACGT\n", "has contig a twice"),
    "too short": (">a\nACGTACG\n", "no contig has 15 bases"),
    "minimap2's index": ("MMI\2 and more", "is damaged"),
}
FASTQS = {
    "missing": (None, "no such file"),
    "not reads": ("what is this?\n", "neither FASTA nor FASTQ"),
    "truncated": (READS[:-9], "not as many qualities as bases"),
    "without qualities": ("@read\nACGT\n", "not as many qualities as bases"),
    "damaged": (READS + "what is this?\n", "damaged behind read 1"),
    "without a name": ("@\nAC\n+\nII\n", "read 1 has no name"),
    "long name": (f"@{'n' * 255}\nAC\n+\nII\n", "more than 254 bytes"),
}


@pytest.mark.parametrize("case", REFERENCES)
def test_reference_is_refused(case: str, files: Path, capfd: pytest.CaptureFixture[str]):
    text, message = REFERENCES[case]
    reference = files / "other.fa"
    if text is not None:
        reference.write_text(text)
    line = refused(capfd, "map", reference, files / "reads.fq", "-o", files / "out.bam")
    assert message in line
    assert str(reference) in line
    assert not list(files.glob("*out*"))


@pytest.mark.parametrize("case", FASTQS)
def test_reads_are_refused(case: str, files: Path, capfd: pytest.CaptureFixture[str]):
    text, message = FASTQS[case]
    reads = files / "other.fq"
    if text is not None:
        reads.write_text(text)
    line = refused(capfd, "map", files / "ref.fa", reads, "-o", files / "out.bam")
    assert message in line
    assert str(reads) in line
    assert not list(files.glob("*out*"))
    assert not list(files.glob(".unfinished*"))


def test_truncated_bam_is_refused(files: Path, capfd: pytest.CaptureFixture[str]):
    header = pysam.AlignmentHeader.from_text("@HD\tVN:1.6\n")
    reads = files / "reads.bam"
    with pysam.AlignmentFile(str(reads), "wb", header=header) as out:
        for i in range(4000):
            record = pysam.AlignedSegment(header)
            record.query_name, record.flag, record.query_sequence = f"read{i}", 4, "ACGTTGCAAGC" * 9
            out.write(record)
    reads.write_bytes(reads.read_bytes()[:-100])
    line = refused(capfd, "map", files / "ref.fa", reads, "-o", files / "out.bam")
    assert "truncated" in line
    assert not list(files.glob("*out*"))


def test_the_smallest_fraction_passes_over_nothing(files: Path):
    for fraction in ("1e-300", "0"):
        assert (
            run_command("map", files / "ref.fa", files / "reads.fq", "-f", fraction, "-o", f"{files}/{fraction}.paf")
            == 0
        )
    assert (files / "1e-300.paf").read_bytes() == (files / "0.paf").read_bytes() != b""


def test_read_without_bases_and_read_of_unknown_bases_are_unmapped(files: Path):
    (files / "reads.fq").write_text(READS + "@none\n\n+\n\n@unknown\n" + "N" * 300 + "\n+\n" + "#" * 300 + "\n")
    assert run_command("map", files / "ref.fa", files / "reads.fq", "-o", files / "out.bam") == 0
    with pysam.AlignmentFile(str(files / "out.bam")) as file:
        primary = [record for record in file.fetch(until_eof=True) if not record.flag & 0x900]
    found = {record.query_name: (record.is_unmapped, record.query_length) for record in primary}
    assert found == {"read": (False, 215), "none": (True, 0), "unknown": (True, 300)}


@pytest.mark.parametrize("name", ["out.sam", "out.cram", "out.bam"])
def test_formats_have_the_same_records(name: str, files: Path):
    reads = "".join(f"@read{i}\n{REFERENCE.splitlines()[1][i : i + 300]}\n+\n{'J' * 300}\n" for i in range(0, 500, 7))
    (files / "reads.fq").write_text(reads)
    assert run_command("map", files / "ref.fa", files / "reads.fq", "--no-MD", "-o", files / name) == 0
    with pysam.AlignmentFile(str(files / name), reference_filename=str(files / "ref.fa")) as file:
        records = [(one.query_name, one.reference_start, one.cigarstring, one.query_sequence) for one in file]
    assert len({one[0] for one in records}) == 72
    starts = [one[1] for one in records]
    assert starts == sorted(starts)


def test_a_reference_of_reads_is_warned_of(files: Path, capfd: pytest.CaptureFixture[str]):
    """The order is that of minimap2; both kinds of files can be either."""
    reads = files / "reads.fq"
    for words, expected in (
        ([reads, files / "ref.fa", "-o", files / "out.bam"], 1),
        ([files / "ref.fa", reads, "-o", files / "out.bam"], 0),
        ([reads, reads, "-x", "ava-ont", "-o", files / "out.paf"], 0),
    ):
        assert run_command("map", *words) == 0
        told = capfd.readouterr().err
        assert told.count(f"{reads}: the reference is FASTQ, as reads are; the order is REF READS") == expected


def test_a_run_without_a_mapped_read_says_so(files: Path, capfd: pytest.CaptureFixture[str]):
    reads = f"@other\n{'GATTACAT' * 40}\n+\n{'I' * 320}\n"
    for text, expected in ((reads, 1), (reads + READS, 0)):
        (files / "reads.fq").write_text(text)
        assert run_command("map", files / "ref.fa", files / "reads.fq", "-o", files / "out.bam") == 0
        assert capfd.readouterr().err.count(f"of 1 reads has a place on {files / 'ref.fa'}") == expected


def test_memory_that_does_not_do_for_the_index(files: Path, capfd: pytest.CaptureFixture[str], monkeypatch):
    def build(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("f5py.mapping.run.map_reads.build_index", build)
    line = refused(capfd, "map", files / "ref.fa", files / "reads.fq", "-o", files / "out.bam")
    assert f"{files / 'ref.fa'}: not enough memory for the index" in line
    assert "-K" not in line
    assert not list(files.glob("*out*"))
