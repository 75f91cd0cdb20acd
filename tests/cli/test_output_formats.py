"""The name of an output decides its format."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyBigWig
import pysam
import pytest

from f5py.options.output_names import kind_of_output

from ..made_data import ReadSet, run_command


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("-", "tsv"),
        ("calls.tsv.gz", "tsv"),
        ("a.bam/calls", "tsv"),
        ("x.parquet", "parquet"),
        ("x.csv.gz", "csv"),
        ("x.BED.gz", "bedmethyl"),
        ("x.bedgraph", "bedgraph"),
        ("x.bg.bgz", "bedgraph"),
        ("x.bw", "bigwig"),
        ("x.paf", "paf"),
        (".bam", "tsv"),
    ],
)
def test_kinds(name: str, kind: str) -> None:
    assert kind_of_output(name) == kind


def written(made: ReadSet, out: Path, *options: Any, command: str = "call-methylation") -> bytes:
    assert run_command(command, *made.options(), "-o", out, *options) == 0
    return out.read_bytes()


def test_calls(made: ReadSet, made_calls: bytes, tmp_path: Path) -> None:
    explicit = tmp_path / "explicit"
    assert written(made, tmp_path / "x.parquet") == written(made, explicit, "--output-format", "parquet")
    assert written(made, tmp_path / "y.parquet", "--output-format", "tsv") == made_calls

    sites = tmp_path / "explicit.bed"
    assert run_command("call-methylation", *made.options(), "-o", explicit, "--bedmethyl", sites) == 0
    assert written(made, tmp_path / "x.bed") == sites.read_bytes()
    assert gzip.decompress(written(made, tmp_path / "x.bed.gz")) == sites.read_bytes()
    assert (tmp_path / "x.bed.gz.tbi").exists()

    written(made, tmp_path / "x.bam")
    with pysam.AlignmentFile(tmp_path / "x.bam") as file:
        assert sum(record.has_tag("MM") for record in file) == len(made.names)


def test_events(made: ReadSet, tmp_path: Path) -> None:
    def events(name: str, *options: Any) -> bytes:
        return written(made, tmp_path / name, *options, command="eventalign")

    assert events("x.paf") == events("explicit", "--paf")
    assert events("x.sam") == events("explicit", "--sam")
    assert events("x.bam") == events("explicit.bam", "--sam")
    assert (tmp_path / "explicit.bam.bai").exists()
    with pysam.AlignmentFile(tmp_path / "x.bam") as file:
        assert file.count("simulated") == len(made.names)
    assert events("x.parquet") == events("explicit", "--output-format", "parquet")
    assert events("y.sam", "--output-format", "tsv") == events("explicit")


@pytest.fixture
def calls(made_calls: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "calls.tsv"
    path.write_bytes(made_calls)
    return path


def frequencies(calls: Path, out: Path, *options: Any) -> bytes:
    assert run_command("meth-freq", "-i", calls, "-o", out, *options) == 0
    return out.read_bytes()


def test_frequencies(calls: Path, tmp_path: Path) -> None:
    bed = frequencies(calls, tmp_path / "explicit", "--bedmethyl")
    assert frequencies(calls, tmp_path / "x.bed", "-s") == bed
    frequencies(calls, tmp_path / "x.parquet")
    expected = frequencies(calls, tmp_path / "x.tsv").decode().splitlines()
    assert pq.read_table(tmp_path / "x.parquet").num_rows == len(expected) - 1


@pytest.mark.parametrize("options", [[], ["--combine-strands"]])
def test_tracks_have_the_percentages_of_bedmethyl(
    calls: Path, made: ReadSet, tmp_path: Path, options: list[str]
) -> None:
    rows = [line.split() for line in frequencies(calls, tmp_path / "x.bed", *options).decode().splitlines()]
    expected = [(row[0], int(row[1]), int(row[2]), float(row[10])) for row in rows]
    assert len(expected) > 100

    graph = frequencies(calls, tmp_path / "x.bedgraph", *options).decode().splitlines()
    assert graph == [f"{row[0]}\t{row[1]}\t{row[2]}\t{row[10]}" for row in rows]
    assert gzip.decompress(frequencies(calls, tmp_path / "x.bg.gz", *options)).decode().splitlines() == graph
    with pysam.TabixFile(str(tmp_path / "x.bg.gz")) as indexed:
        assert list(indexed.fetch("simulated")) == graph

    frequencies(calls, tmp_path / "x.bw", "--chrom-sizes", f"{made.genome}.fai", *options)
    with pyBigWig.open(str(tmp_path / "x.bw")) as file:
        assert file.chroms() == {"simulated": 12_000}
        found = [("simulated", *interval) for interval in file.intervals("simulated")]
    assert [row[:3] for row in found] == [row[:3] for row in expected]
    assert [row[3] for row in found] == pytest.approx([row[3] for row in expected], abs=0.005)

    assert written(made, tmp_path / "straight.bw", *options) == (tmp_path / "x.bw").read_bytes()


def test_bigwig_needs_lengths(calls: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "x.bw"
    assert run_command("meth-freq", "-i", calls, "-o", out) == 2
    assert "--chrom-sizes" in capfd.readouterr().err
    sizes = tmp_path / "sizes"
    for text, says in (("other\t5\n", "the length of simulated is not known"), ("simulated\t9\n", "of a site in it")):
        sizes.write_text(text)
        assert run_command("meth-freq", "-i", calls, "-o", out, "--chrom-sizes", sizes) == 2
        assert says in capfd.readouterr().err
    sizes.write_text("simulated\n")
    assert run_command("meth-freq", "-i", calls, "-o", out, "--chrom-sizes", sizes) == 1
    assert f"{sizes}, line 1: has no name and length" in capfd.readouterr().err
    assert not out.exists()


def test_a_track_without_sites(calls: Path, made: ReadSet, tmp_path: Path) -> None:
    calls.write_text(calls.read_text().splitlines(keepends=True)[0])
    out = tmp_path / "x.bw"
    frequencies(calls, out, "--chrom-sizes", f"{made.genome}.fai")
    with pyBigWig.open(str(out)) as file:
        assert file.chroms() == {"simulated": 12_000}
        assert file.intervals("simulated") is None
    assert frequencies(calls, tmp_path / "x.bedgraph") == b""


def test_modbam_to_a_pipe(made: ReadSet, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    out, piped = tmp_path / "x.bam", tmp_path / "piped.bam"
    options = ["--output-format", "none", "--modbam"]
    assert run_command("call-methylation", *made.options(), *options, out) == 0
    capfdbinary.readouterr()
    assert run_command("call-methylation", *made.options(), *options, "-") == 0
    piped.write_bytes(capfdbinary.readouterr().out)
    with pysam.AlignmentFile(out) as expected, pysam.AlignmentFile(piped) as found:
        assert [record.to_string() for record in found] == [record.to_string() for record in expected]
    assert run_command("call-methylation", *made.options(), "--modbam", "-") == 2


# Parquet is read where text is


def test_parquet_that_cannot_be_read(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    packed = tmp_path / "calls.parquet"
    content = bytearray(written(made, packed))
    content[200] ^= 1  # of a page with a checksum
    packed.write_bytes(content)
    assert run_command("meth-freq", packed) == 1
    assert f"{packed}: damaged or no Parquet table" in capfd.readouterr().err
    packed.write_bytes(content[:-100])
    assert run_command("meth-freq", packed) == 1
    assert f"{packed}: damaged or no Parquet table" in capfd.readouterr().err
    other = pa.table({"x": [1, 2]})
    pq.write_table(other, packed)
    assert run_command("meth-freq", packed) == 1
    assert f"{packed}, line 1: not the header of call-methylation" in capfd.readouterr().err
