"""Options of minimap2 that ``f5py map`` has, takes without effect, or refuses with a way out."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from ..made_data import refused, run_command

_RANDOM = random.Random(5)
CONTIG = "".join(_RANDOM.choices("ACGT", k=2000))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Two copies of a contig, so that there are secondary alignments, and a read that is on none."""
    (tmp_path / "ref.fa").write_text(f">one\n{CONTIG}\n>two\n{CONTIG}\n")
    reads = {"a": CONTIG[100:900], "b": CONTIG[700:1900], "none": "GATTACAT" * 50}
    (tmp_path / "reads.fq").write_text("".join(f"@{name}\n{one}\n+\n{'I' * len(one)}\n" for name, one in reads.items()))
    return tmp_path


def lines(files: Path, *options: object, name: str = "out.sam") -> list[str]:
    assert run_command("map", *options, files / "ref.fa", files / "reads.fq", "-t", 1, "-o", files / name) == 0
    return [line for line in (files / name).read_text().splitlines() if not line.startswith("@")]


@pytest.mark.parametrize(
    "options",
    [
        ["-I", "8G"], ["-L"], ["-2"], ["--split-prefix", "tmp"], ["-a"], ["-c"], ["--cap-kalloc", "1g"],
        ["--bucket-bits", "14"], ["-ax", "map-ont"], ["--cs=none"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_options_without_effect(options: list[str], files: Path):
    assert lines(files, *options) == lines(files)


@pytest.mark.parametrize(
    ("preset", "options"),
    [
        ("rna", ["-k", 14]),
        ("cdna", ["-x", "splice"]),
    ],
)  # fmt: skip
def test_presets_are_short_for_options(preset: str, options: list, files: Path):
    assert lines(files, "-x", preset) == lines(files, *options)


def test_cs_without_a_value_is_the_short_form(files: Path):
    short = lines(files, "--cs", "short")
    assert "\tcs:Z:" in short[0]
    assert lines(files, "--cs") == lines(files, "--cs=short") == short
    assert lines(files, "--cs", "long") != short


def test_reads_that_are_not_mapped(files: Path):
    names = [line.split("\t")[0] for line in lines(files)]
    assert names.count("none") == 1
    hits = [line for line in lines(files) if not line.startswith("none")]
    assert lines(files, "--sam-hit-only") == hits
    assert lines(files, "--sam-hit-only", "--paf-no-hit") == lines(files)
    paf = lines(files, name="out.paf")
    assert lines(files, "--paf-no-hit", name="out.paf") == [*paf, "none\t400\t0\t0\t*\t*\t0\t0\t0\t0\t0\t0\trl:i:0"]


def test_without_qualities(files: Path):
    with_qualities = [line.split("\t") for line in lines(files)]
    assert any(fields[10].startswith("III") for fields in with_qualities)
    without = [[*fields[:10], "*", *fields[11:]] for fields in with_qualities]
    assert [line.split("\t") for line in lines(files, "-Q")] == without


def test_no_secondary_alignments_by_number(files: Path):
    assert lines(files, "-N", 0) == lines(files, "--secondary", "no") != lines(files)


@pytest.mark.shared
@pytest.mark.parametrize(("option", "strand", "n_lines"), [("--for-only", "+", 88), ("--rev-only", "-", 84)])
def test_one_strand_only(option: str, strand: str, n_lines: int, shared_data: Path, tmp_path: Path):
    """No inversions are looked for, either."""
    given = [shared_data / "map_ecoli" / f"{name}.fa.gz" for name in ("stress_ref", "stress_reads")]
    assert run_command("map", option, *given, "-o", tmp_path / "out.paf") == 0
    found = [line.split("\t") for line in (tmp_path / "out.paf").read_text().splitlines()]
    assert {row[4] for row in found} == {strand}
    assert len(found) == n_lines
    assert all("tp:A:I" not in row for row in found)
    if shutil.which("minimap2"):
        command = ["minimap2", "-cx", "map-ont", option, *given]
        lines = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
        assert [row[:12] for row in found] == [line.split("\t")[:12] for line in lines]


def test_strands_exclude_each_other(files: Path, capfd: pytest.CaptureFixture[str]):
    options = "--for-only", "--rev-only", files / "ref.fa", files / "reads.fq", "-o", files / "out.bam"
    assert "exclude each other" in refused(capfd, "map", *options, status=2)


def test_a_fraction_of_zero_drops_no_minimizers_of_a_read(files: Path):
    """All minimizers of a read in a repeat are more than any fraction above it."""
    unit = CONTIG[:60]
    (files / "ref.fa").write_text(f">one\n{CONTIG}{unit * 30}{CONTIG[::-1]}\n")
    (files / "reads.fq").write_text(f">r\n{unit * 12}\n")
    limits = ["-U", "10,10", "-f", "0.5"]
    assert lines(files, *limits, "--q-occ-frac", 0) == lines(files, *limits, "--q-occ-frac", 1)


@pytest.mark.parametrize(
    ("options", "kind"), [(["-a"], "sam"), (["-ac"], "sam"), (["-c"], "paf"), (["-c", "--paf"], "paf")]
)
def test_formats_of_standard_output(options: list[str], kind: str, files: Path, capfdbinary):
    expected = lines(files, name=f"out.{kind}")
    capfdbinary.readouterr()
    assert run_command("map", *options, files / "ref.fa", files / "reads.fq", "-t", 1) == 0
    found = capfdbinary.readouterr().out.decode().splitlines()
    assert [line for line in found if not line.startswith("@")] == expected
