"""Runs without reads, or without results: every step succeeds, and a line says why outputs are empty."""

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


@pytest.fixture
def between_sites(made: ReadSet) -> str:
    """Name the longest stretch without a CpG, without its ends."""
    with pysam.FastaFile(str(made.genome)) as reference:
        (contig,) = reference.references
        bases = reference.fetch(contig).upper()
    sites = [i for i in range(len(bases) - 1) if bases[i : i + 2] == "CG"]
    end, begin = max(zip(sites[1:], sites, strict=False), key=lambda pair: pair[0] - pair[1])
    return f"{contig}:{begin + 10}-{end - 10}"


def warnings(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capfd.readouterr().err.splitlines() if "::WARNING]" in line]


@pytest.mark.parametrize("parts", [(), ("--resume",)])
def test_calls(
    made: ReadSet, between_sites: str, tmp_path: Path, parts: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "calls.tsv"
    assert run_command("call-methylation", *made.options(), "-o", out, "-w", between_sites, *parts) == 0
    assert out.read_text().count("\n") == 1
    (line,) = warnings(capfd)
    assert f"cover no site of cpg in {between_sites} with enough bases on both sides; there are no calls" in line


def test_results_with_rows_need_no_words(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command("call-methylation", *made.options(), "-o", tmp_path / "calls.tsv") == 0
    assert warnings(capfd) == []


def test_events(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A window that is smaller than a k-mer."""
    contig = made.records()[0].references[0]
    place = max(record.reference_start for record in made.records()[1]) + 300
    out = tmp_path / "events.tsv"
    assert run_command("eventalign", *made.options(), "-o", out, "-w", f"{contig}:{place}-{place + 1}") == 0
    assert out.read_text().count("\n") == 1
    (line,) = warnings(capfd)
    assert f"have no events on k-mers of the reference in {contig}:{place}-{place + 1}; the table has no rows" in line
