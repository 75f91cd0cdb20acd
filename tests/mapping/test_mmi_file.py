"""Indices of minimap2 in files."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from ..made_data import ReadSet, error_line, run_command

pytestmark = pytest.mark.skipif(shutil.which("minimap2") is None, reason="needs minimap2")


def minimap2_index(genome: Path | str, path: Path, *options: str) -> Path:
    subprocess.run(["minimap2", *options, "-d", path, genome], check=True, capture_output=True)
    return path


def records(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith("@PG")]


@pytest.fixture(scope="module")
def genome(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several contigs, with unknown bases and repeats."""
    (name, *lines) = Path(made.genome).read_text().split("\n")
    bases = "".join(lines)
    half = len(bases) // 2
    path = tmp_path_factory.mktemp("mmi") / "ref.fa"
    path.write_text(
        f"{name}\n{bases[:half]}\n>second of them\n{bases[half:]}{'N' * 77}{bases[:900].lower()}\n>third\n"
        f"{bases[200:700] * 3}RYKM\n"
    )
    return path


@pytest.mark.parametrize(
    ("of_minimap2", "of_f5py"),
    [
        (["-k", "15", "-w", "10"], []),
        (["-I", "1"], []),  # a part for each contig, about
        (["-w", "5", "-k", "14"], ["-w", 5, "-k", 14]),
        (["-H", "-k", "19"], ["-H", "-k", 19]),
        (["-k", "28", "-w", "3"], ["-k", 28, "-w", 3]),
        (["-k", "4", "-w", "10"], ["-k", 4]),
        (["--bucket-bits", "10"], []),
        (["--bucket-bits", "18"], []),
    ],
)
def test_records_are_those_of_the_fasta_file(
    of_minimap2: list[str], of_f5py: list, genome: Path, made: ReadSet, tmp_path: Path
):
    mmi, out, index = minimap2_index(genome, tmp_path / "x.mmi", *of_minimap2), tmp_path / "o.sam", tmp_path / "x.f5i"
    assert run_command("map", genome, made.reads, *of_f5py, "-o", out) == 0
    expected = records(out)
    assert sum(not line.startswith("@") for line in expected) > 10
    assert run_command("map", mmi, made.reads, "-o", out) == 0
    assert records(out) == expected
    assert run_command("map", mmi, "-d", index) == 0
    assert run_command("map", index, made.reads, "-o", out) == 0
    assert records(out) == expected


def refused(path: Path, made: ReadSet, capfd: pytest.CaptureFixture[str]) -> str:
    capfd.readouterr()
    assert run_command("map", path, made.reads, "-o", path.with_name("o.sam")) == 1
    assert not path.with_name("o.sam").exists()
    return error_line(capfd.readouterr().err)


def test_without_bases(genome: Path, made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    mmi = minimap2_index(genome, tmp_path / "x.mmi", "--idx-no-seq")
    assert f"{mmi}: was written with --idx-no-seq" in refused(mmi, made, capfd)


def test_of_another_version(genome: Path, made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    mmi = minimap2_index(genome, tmp_path / "x.mmi")
    mmi.write_bytes(b"MMI\1" + mmi.read_bytes()[4:])
    assert f"{mmi}: is an index of another version of minimap2" in refused(mmi, made, capfd)


def test_damage_ends_with_a_line(genome: Path, made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """There is no checksum: some damage cannot be seen, but nothing crashes."""
    content = minimap2_index(genome, tmp_path / "x.mmi").read_bytes()
    mmi = tmp_path / "y.mmi"
    for end in (4, 20, 30, len(content) // 3, len(content) - 1):
        mmi.write_bytes(content[:end])
        assert f"{mmi}: is damaged" in refused(mmi, made, capfd)
    rng = random.Random(2)
    n_seen = 0
    for _ in range(40):
        damaged = bytearray(content)
        for _ in range(30):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        mmi.write_bytes(damaged)
        n_seen += run_command("map", mmi, made.reads, "-t", 1, "-o", tmp_path / "o.sam") != 0
    assert n_seen > 10
