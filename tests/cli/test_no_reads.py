"""A sample without a single read, such as an empty barcode: every step succeeds, and its outputs are empty."""

from __future__ import annotations

import gzip
from pathlib import Path

import pysam
import pytest

from ..made_data import ReadSet, refused, run_command


@pytest.fixture
def empty(made: ReadSet, tmp_path: Path) -> dict[str, Path]:
    """Make the files of such a sample; signals are there, of others."""
    reads = tmp_path / "none.fastq.gz"
    reads.write_bytes(gzip.compress(b"", mtime=0))
    bam = made.with_records(tmp_path, []).bam
    return {"reads": reads, "bam": bam, "genome": made.genome, "signals": made.signal_path, "folder": tmp_path}


def test_every_step(empty: dict[str, Path], capfd: pytest.CaptureFixture[str]) -> None:
    reads, bam, genome, signals, folder = empty.values()
    calls, table, events = folder / "calls.tsv", folder / "freq.tsv", folder / "events.tsv"
    inputs = ["-r", reads, "-g", genome, "-t", 2, "--fast5", signals]
    assert run_command("index", "-d", signals, reads) == 0
    assert run_command("fast5-check", "-r", reads) == 0
    assert run_command("map", genome, reads, "-o", folder / "m.bam", "-t", 2) == 0
    assert run_command("call-methylation", *inputs, "-o", folder / "mapped.tsv") == 0
    outputs = ["--modbam", folder / "mod.bam", "--bedmethyl", folder / "sites.bed", "--report", folder / "r.html"]
    assert run_command("call-methylation", *inputs, "-b", bam, "-o", calls, *outputs) == 0
    assert run_command("eventalign", *inputs, "-b", bam, "-o", events) == 0
    assert run_command("resquiggle", reads, signals, "-o", folder / "moves.tsv") == 0
    assert run_command("meth-freq", "-i", calls, "-o", table) == 0
    assert run_command("freq-merge", table, table, "-o", folder / "merged.tsv") == 0
    told = capfd.readouterr().err
    assert "none.fastq.gz: holds no reads" in told
    assert "changed.bam was used; the results are empty\n" in told
    assert "ERROR" not in told
    for text in (calls, events, table, folder / "moves.tsv", folder / "mapped.tsv", folder / "merged.tsv"):
        assert len(text.read_text().splitlines()) == 1  # a header
    for made in ("m.bam", "mod.bam"):
        with pysam.AlignmentFile(str(folder / made)) as file:
            assert list(file.fetch(until_eof=True)) == []
            assert file.nreferences == 1
    assert (folder / "sites.bed").read_text() == ""
    assert "no record of" in (folder / "r.html").read_text()


def test_strict_refuses_them(empty: dict[str, Path], capfd: pytest.CaptureFixture[str]) -> None:
    reads, bam, genome, signals, folder = empty.values()
    inputs = ["-g", genome, "--fast5", signals, "-o", folder / "calls.tsv", "--strict"]
    assert "the results are empty" in refused(capfd, "call-methylation", *inputs, "-b", bam)
    assert "holds no reads" in refused(capfd, "call-methylation", *inputs, "-b", bam, "-r", reads)


def test_text_is_still_no_reads(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "reads.fastq"
    text.write_text("nothing to see\n")
    assert "neither FASTA nor FASTQ" in refused(capfd, "map", made.genome, text, "-o", tmp_path / "m.bam")
    assert "holds no sequences" in refused(capfd, "map", "/dev/null", text, "-o", tmp_path / "m.bam")
