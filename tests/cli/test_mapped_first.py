"""Reads without alignments: one command does what two do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pysam
import pytest

from f5py.io.reads import indexed_fasta

from ..made_data import ReadSet, error_line, run_command

_TABLES = {"call-methylation": [], "eventalign": ["--print-read-names", "--signal-index"]}


def without_alignments(made: ReadSet) -> list[object]:
    options = [str(option) for option in made.options()]
    at = options.index("-b")
    return [*options[:at], *options[at + 2 :]]


def records(path: Path) -> list[str]:
    with pysam.AlignmentFile(path) as file:
        return [record.to_string() for record in file]


@pytest.fixture(scope="module")
def mapped(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    bam = tmp_path_factory.mktemp("mapped") / "two.bam"
    assert run_command("map", made.genome, made.reads, "-o", bam, "-t", 2) == 0
    return bam


@pytest.mark.parametrize("command", _TABLES)
def test_one_command_is_two(
    command: str, made: ReadSet, mapped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd
):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    options = _TABLES[command]
    two = replace(made, bam=mapped).options()
    assert run_command(command, *two, *options, "-o", tmp_path / "two.tsv") == 0
    capfd.readouterr()
    given = without_alignments(made)
    assert run_command(command, *given, *options, "-o", tmp_path / "one.tsv") == 0
    assert "-x map-ont" in capfd.readouterr().err
    one = (tmp_path / "one.tsv").read_bytes()
    assert one == (tmp_path / "two.tsv").read_bytes()
    assert one.count(b"\n") > 100
    assert list(temporary.iterdir()) == []
    assert run_command(command, *given, *options, "-o", tmp_path / "kept.tsv", "--keep-bam", tmp_path / "kept.bam") == 0
    assert (tmp_path / "kept.tsv").read_bytes() == one
    assert records(tmp_path / "kept.bam") == records(mapped)
    assert (tmp_path / "kept.bam.bai").exists()


def test_the_index_of_a_large_reference_is_htslibs(made: ReadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    genome = tmp_path / "ref.fa"
    genome.write_bytes(made.genome.read_bytes())
    monkeypatch.setattr(indexed_fasta, "LARGE_FILE", 1)
    given = without_alignments(replace(made, genome=genome))
    assert run_command("call-methylation", *given, "-o", tmp_path / "out.tsv") == 0
    found = (tmp_path / "ref.fa.fai").read_bytes()
    pysam.faidx(str(genome))
    assert (tmp_path / "ref.fa.fai").read_bytes() == found
    assert (tmp_path / "out.tsv").read_bytes().count(b"\n") > 100


@pytest.mark.parametrize("size", [1, 1 << 30])
def test_a_reference_without_index_ends_the_run_before_the_reads_are_mapped(
    size: int, made: ReadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    genome = tmp_path / "ref.fa"
    lines = made.genome.read_text().splitlines(keepends=True)
    monkeypatch.setattr(indexed_fasta, "LARGE_FILE", size)
    given = without_alignments(replace(made, genome=genome))
    for text, words in (([*lines[:3], "\n", *lines[3:]], "line 5 has another length"), (lines * 2, "twice")):
        genome.write_text("".join(text))
        assert run_command("call-methylation", *given, "-o", tmp_path / "out.tsv") == 1
        err = capfd.readouterr().err
        assert words in error_line(err)
        assert "mapped (" not in err
        assert "fai_insert_index" not in err


@pytest.mark.parametrize("command", _TABLES)
def test_the_index_does_for_the_reference(command: str, made: ReadSet, tmp_path: Path):
    """All of its bases are there, those that may be several as well."""
    text = bytearray(made.genome.read_bytes())
    for number, at in enumerate(range(text.index(b"\n") + 200, len(text), 157)):
        if text[at] != ord("\n"):
            text[at] = b"NRYSKMBVDHwsk"[number % 13]
    genome, index = tmp_path / "ref.fa", tmp_path / "ref.f5i"
    genome.write_bytes(text)
    given = without_alignments(replace(made, genome=genome))
    assert run_command(command, *given, *_TABLES[command], "-o", tmp_path / "fasta.tsv") == 0
    assert run_command("map", genome, "-d", index) == 0
    genome.unlink()
    given = without_alignments(replace(made, genome=index))
    assert run_command(command, *given, *_TABLES[command], "-o", tmp_path / "index.tsv") == 0
    assert (tmp_path / "index.tsv").read_bytes() == (tmp_path / "fasta.tsv").read_bytes()
    assert (tmp_path / "index.tsv").read_bytes().count(b"\n") > 100


def test_another_index_is_refused_before_anything_is_mapped(made: ReadSet, tmp_path: Path, capfd):
    index = tmp_path / "ref.mmi"
    index.write_bytes(b"MMI\2 and more")
    given = without_alignments(replace(made, genome=index))
    capfd.readouterr()
    assert run_command("call-methylation", *given, "-o", tmp_path / "out.tsv") == 1
    assert f"is minimap2's index; make one of f5py of it with f5py map {index} -d" in capfd.readouterr().err


def test_signals_of_rna_choose_the_preset(shared_data: Path, tmp_path: Path, capfd):
    folder = shared_data / "rna004_lacz"
    if not folder.is_dir():
        pytest.skip("the data set rna004_lacz is not there")
    given = ["-r", folder / "reads.fastq", "-g", folder / "ref.fa", "--slow5", folder / "reads.blow5"]
    assert run_command("eventalign", *given, "-o", tmp_path / "one.tsv") == 0
    assert "-x rna" in capfd.readouterr().err
    bam = tmp_path / "two.bam"
    assert run_command("map", "-x", "rna", folder / "ref.fa", folder / "reads.fastq", "-o", bam) == 0
    assert run_command("eventalign", "-b", bam, *given, "-o", tmp_path / "two.tsv") == 0
    assert (tmp_path / "one.tsv").read_bytes() == (tmp_path / "two.tsv").read_bytes()
