"""RNA004 reads as users have them: dorado's BAM and POD5, without a model or an index of their own."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ..made_data import run_command

pytestmark = pytest.mark.shared

#: Columns of the table that say what is aligned to what: contig, position, k-mer, read, event, samples.
_KEYS = (0, 1, 2, 3, 5, 13, 14)


@pytest.fixture(scope="module")
def lacz(shared_data: Path) -> Path:
    folder = shared_data / "rna004_lacz"
    if not folder.is_dir():
        pytest.skip("the data set rna004_lacz is not there")
    return folder


@pytest.fixture
def align(lacz: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """Return a function that runs eventalign and returns the lines of its output."""

    def run(*options: object, bam: str = "reads.bam") -> list[str]:
        out = tmp_path / "out.tsv"
        inputs = ["-b", lacz / bam, "-g", lacz / "ref.fa", "-t", 2, "-o", out]
        assert run_command("eventalign", *inputs, *options) == 0, capfd.readouterr().err
        return out.read_text().splitlines()

    return run


@pytest.fixture(scope="module")
def indexed(lacz: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    reads = tmp_path_factory.mktemp("lacz") / "reads.fastq"
    shutil.copy(lacz / "reads.fastq", reads)
    assert run_command("index", "--slow5", lacz / "reads.blow5", reads) == 0
    return reads


def expected(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


@pytest.mark.parametrize("signals", [["--pod5", "reads.pod5"], ["--slow5", "reads.blow5"]], ids=lambda of: of[0])
def test_equals_f5c_without_a_model_of_its_own(lacz: Path, indexed: Path, align, signals: list[str], tmp_path: Path):
    """Keys are equal; numbers differ in the last digit where the levels of the published model were rounded."""
    option, name = signals
    shown = ["--signal-index", "--print-read-names", "--summary", tmp_path / "s.tsv"]
    rows = align("--rna", "-r", indexed, option, lacz / name, *shown)
    theirs = expected(lacz / "expected" / "eventalign.tsv.gz")
    assert len(rows) == len(theirs) == 22_169
    keys = [[[row.split("\t")[i] for i in _KEYS] for row in table] for table in (rows, theirs)]
    assert keys[0] == keys[1]
    assert sum(a == b for a, b in zip(rows, theirs, strict=True)) >= 0.995 * len(rows)
    summary = [line.split("\t") for line in (tmp_path / "s.tsv").read_text().splitlines()]
    known = [line.split("\t") for line in (lacz / "expected" / "summary.tsv").read_text().splitlines()]
    assert [line[:2] + line[3:10] for line in summary] == [line[:2] + line[3:10] for line in known]


def test_equals_f5c_in_other_layouts(lacz: Path, indexed: Path, align):
    of_reads = ["--rna", "-r", indexed, "--slow5", lacz / "reads.blow5"]
    for name, options, at_least in (("eventalign.paf.gz", ["-c"], 0.9), ("m6anet.tsv.gz", ["--m6anet"], 0.995)):
        lines, theirs = align(*of_reads, *options), expected(lacz / "expected" / name)
        assert len(lines) == len(theirs)
        assert sum(a == b for a, b in zip(lines, theirs, strict=True)) >= at_least * len(lines)


def test_bases_from_the_alignments(lacz: Path, indexed: Path, align):
    """The same rows with and without -r; --rna need not be said either, as the signals say it."""
    rows = align("--rna", "-r", indexed, "--pod5", lacz / "reads.pod5")
    assert align("--pod5", lacz / "reads.pod5") == rows
    assert align("--slow5", lacz / "reads.blow5") == rows
    assert align("-r", lacz / "reads.fastq", "--slow5", lacz / "reads.blow5") == rows  # without an index


def test_dorados_alignments_and_pod5_alone(lacz: Path, align, capfd: pytest.CaptureFixture[str]):
    rows = align("--pod5", lacz / "reads.pod5", "--print-read-names", bam="dorado_aligned.bam")
    told = capfd.readouterr().err
    assert "total entries: 38, qc fail: 0, could not calibrate: 0, no alignment: 0, bad reads: 0" in told
    assert len({row.split("\t")[3] for row in rows[1:]}) == 38


@pytest.mark.parametrize("model", ["rna004-5mer", "rna004_130bps.nucleotide.5mer", "file"])
def test_f5cs_model_of_5_mers(lacz: Path, shared_data: Path, align, model: str, tmp_path: Path):
    """By name, and as the file with U in its k-mers that RNA004 pipelines pass."""
    if model == "file":
        zipped = shared_data.parent / "models" / "rna004_130bps.nucleotide.5mer.f5c.model.gz"
        model = str(tmp_path / "rna004.nucleotide.5mer.model")
        Path(model).write_bytes(gzip.decompress(zipped.read_bytes()))
    rows = align("--rna", "--slow5", lacz / "reads.blow5", "--kmer-model", model, "--print-read-names")
    assert {len(row.split("\t")[2]) for row in rows[1:]} == {5}
    assert len({row.split("\t")[3] for row in rows[1:]}) == 37


def test_5_mers_of_9_mers(lacz: Path, align):
    of_reads = ["--slow5", lacz / "reads.blow5", "--scale-events", "--signal-index"]
    whole, view = align(*of_reads), align(*of_reads, "--kmer-view", 5)
    assert view[0] == whole[0]
    for row, shown in zip(whole[1:], view[1:], strict=True):
        columns = row.split("\t")
        columns[1] = str(int(columns[1]) + 2)
        columns[2], columns[9] = columns[2][2:7], columns[9][2:7]
        assert shown.split("\t") == columns
    assert len(view) == 22_169


@pytest.mark.parametrize(("view", "says"), [(6, "choose one of 7, 5, 3, 1"), (11, "have 9 bases")])
def test_views_that_there_are_not(lacz: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], view: int, says: str):
    inputs = ["-b", lacz / "reads.bam", "-g", lacz / "ref.fa", "--slow5", lacz / "reads.blow5", "-o", tmp_path / "x"]
    assert run_command("eventalign", *inputs, "--kmer-view", view) == 2
    assert says in capfd.readouterr().err


def test_short_reads_are_rescued_by_the_option_that_is_named(
    lacz: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    """With a limit that most reads do not reach, the advice names one that they do; the list says what each has."""
    inputs = ["-b", lacz / "reads.bam", "-g", lacz / "ref.fa", "--slow5", lacz / "reads.blow5", "-o", tmp_path / "x"]
    listing = tmp_path / "failed.tsv"
    assert run_command("eventalign", *inputs, "--min-recalib-events", 400, "--failed-reads", listing) == 0
    told = capfd.readouterr().err
    header, *lines = listing.read_text().splitlines()
    assert header == "read_name\tfate\tcause\tdetails"
    few = [line for line in lines if "\tcould_not_calibrate\ttoo_few_events\t" in line]
    assert len(few) > 20
    assert all(line.endswith("events to recalibrate with (--min-recalib-events 400)") for line in few)
    assert f"{len(few)} reads have fewer than 400 events to recalibrate with; --min-recalib-events 30 would try" in told
    assert run_command("eventalign", *inputs, "--min-recalib-events", 30, "--failed-reads", listing) == 0
    assert listing.read_text().splitlines() == [header]
