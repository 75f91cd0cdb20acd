"""``f5py map --report``: what it says is what the alignments say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pysam
import pytest

from ..made_data import ReadSet, run_command


@pytest.fixture
def reads(made: ReadSet, tmp_path: Path) -> Path:
    """Write the made reads, and one that is nowhere on the reference."""
    path = tmp_path / "reads.fasta"
    path.write_text(made.reads.read_text() + ">elsewhere\n" + "ACCA" * 40 + "\n")
    return path


def mapped(made: ReadSet, reads: Path, folder: Path, report: str, *options: object) -> Path:
    path = folder / report
    given = "-t", 2, "--gpu", "off", "-K", 3000, *options, "--report", path
    assert run_command("map", *given, made.genome, reads, "-o", folder / "out.bam") == 0
    return path


@pytest.fixture
def run(made: ReadSet, reads: Path, tmp_path: Path) -> dict[str, Any]:
    """Return what the JSON report of a run in several batches says."""
    return json.loads(mapped(made, reads, tmp_path, "report.json").read_text())["run"]


@pytest.fixture
def records(run: dict[str, Any], tmp_path: Path) -> list[pysam.AlignedSegment]:
    with pysam.AlignmentFile(str(tmp_path / "out.bam")) as file:
        return list(file.fetch(until_eof=True))


def primary(records: list[pysam.AlignedSegment]) -> list[pysam.AlignedSegment]:
    return [one for one in records if not (one.is_secondary or one.is_supplementary or one.is_unmapped)]


def test_counts(run: dict[str, Any], records: list[pysam.AlignedSegment], reads: Path):
    found = primary(records)
    lengths = [len(line) for line in reads.read_text().splitlines() if not line.startswith(">")]
    counts = run["counts"]
    assert counts["total_entries"] == len(lengths) == len(found) + 1
    assert (counts["mapped"], counts["unmapped"]) == (len(found), 1)
    assert counts["records"] == len(records)
    assert counts["total_bases"] == sum(lengths)
    assert counts["aligned_bases"] == sum(one.query_alignment_length for one in found)
    assert run["rates"]["mapped_fraction"] == pytest.approx(len(found) / len(lengths))


def test_distributions(run: dict[str, Any], records: list[pysam.AlignedSegment], reads: Path):
    found = primary(records)
    shown = run["distributions"]
    qualities = shown["mapping_qualities"]
    assert dict(zip(qualities["from"], qualities["reads"], strict=True)) == {
        quality: sum(one.mapping_quality == quality for one in found) for quality in range(61)
    }
    columns = np.array([sum(n for kind, n in one.cigartuples or [] if kind in (0, 1, 2)) for one in found])
    equal = columns - [one.get_tag("NM") for one in found]  # type: ignore[operator]
    assert run["rates"]["identity"] == pytest.approx(equal.sum() / columns.sum())
    bins = np.minimum(100 * equal // columns, 99)
    assert shown["identities"]["reads"] == np.bincount(bins, minlength=100).tolist()
    lengths = [len(line) for line in reads.read_text().splitlines() if not line.startswith(">")]
    assert shown["read_lengths"]["reads"] == np.histogram(lengths, [*shown["read_lengths"]["from"], 1e8])[0].tolist()
    assert sum(shown["read_lengths"]["bases_used"]) == run["counts"]["aligned_bases"]
    (contig,) = shown["contigs"]
    covered = sum((one.reference_end or 0) - one.reference_start for one in found)
    assert (contig["name"], contig["reads"]) == ("simulated", len(found))
    assert contig["coverage"] == shown["coverage"] == pytest.approx(covered / 12_000, abs=0.001)


def test_what_the_alignments_rest_on(run: dict[str, Any], made: ReadSet):
    basis = run["rests_on"]
    assert basis["preset"] == "map-ont"
    assert basis["index"]["reference_bases"] == 12_000
    assert (basis["index"]["k"], basis["index"]["w"], basis["index"]["contigs"]) == (15, 10, 1)
    assert (basis["settings"]["match"], basis["settings"]["best_n"]) == (2, 5)
    assert {Path(one["path"]).name for one in run["inputs"]} == {made.genome.name, "reads.fasta"}
    assert run["parameters"]["batch_bases"] == 3000
    seconds = run["seconds"]
    stages = {"index", "reading", "seeds", "chains", "chained_hits", "hits", "mapped_records", "writing", "sorting"}
    for stage in stages:
        assert 0 <= seconds[stage] < 2 * seconds["total"], stage


def test_page(made: ReadSet, reads: Path, tmp_path: Path):
    page = mapped(made, reads, tmp_path, "report.html", "--sample", "a <b>").read_text()
    assert "<title>f5py map: a &lt;b&gt;</title>" in page
    for title in ("Mapping qualities", "Identities", "Read lengths", "Yield by read length", "Seconds"):
        assert f"<h2>{title}</h2>" in page
    assert re.search(r"of 17 reads mapped", page)
    assert "src=" not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")


def test_reads_of_which_none_is_mapped(made: ReadSet, tmp_path: Path):
    nowhere = tmp_path / "nowhere.fasta"
    nowhere.write_text(">elsewhere\n" + "ACCA" * 40 + "\n")
    run = json.loads(mapped(made, nowhere, tmp_path, "report.json").read_text())["run"]
    assert (run["counts"]["mapped"], run["counts"]["unmapped"]) == (0, 1)
    assert "identity" not in run["rates"]
    assert "0.0 %" in mapped(made, nowhere, tmp_path, "report.html").read_text()


def test_multiqc_gets_bars(made: ReadSet, reads: Path, tmp_path: Path):
    content = json.loads(mapped(made, reads, tmp_path, "a_mqc.json", "--sample", "s").read_text())
    assert content["data"]["s"]["mapped"] == 16
    bars = json.loads((tmp_path / "a_reads_mqc.json").read_text())
    assert bars["data"] == {"s": {"mapped": 16, "unmapped": 1}}


@pytest.mark.parametrize(
    ("options", "words"),
    [(("--sample", "a"), "--report"), (("--report", "a.json", "-d", "index"), "of which none are given")],
)
def test_what_a_report_needs(made: ReadSet, tmp_path: Path, capfd, options, words: str, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reads = [made.reads] if "-d" not in options else []
    assert run_command("map", *options, made.genome, *reads, "-o", "out.bam") == 2
    assert words in capfd.readouterr().err
    assert not (tmp_path / "out.bam").exists()


def test_overlaps_have_none(made: ReadSet, tmp_path: Path, capfd):
    options = "-x", "darwin", "--report", tmp_path / "a.json", made.reads, made.reads
    assert run_command("map", *options, "-o", tmp_path / "out.paf") == 2
    assert "there is none of overlaps" in capfd.readouterr().err
    assert not (tmp_path / "out.paf").exists()
