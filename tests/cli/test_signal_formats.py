"""The same results from every format of the same signals, and reads whose signal is missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ..made_data import N_READS, ReadSet, refused, rows_by_read, run_command, run_main

# Real reads


@pytest.fixture
def formats(ecoli: Path, tmp_path: Path) -> dict[str, Path]:
    """Paths of the signals of the E. coli reads, by the option that takes them."""
    blow5 = Path(shutil.copy(ecoli / "formats" / "reads.blow5", tmp_path))  # its index is made beside it
    return {"--slow5": blow5, "--pod5": ecoli / "formats" / "reads.pod5"}


@pytest.fixture
def run_ecoli(ecoli: Path, tmp_path: Path) -> Callable[..., bytes]:
    def run(subcommand: str, reads: Path, bam: str, *options: object) -> bytes:
        out = tmp_path / "out.txt"
        inputs = ["-r", reads, "-b", ecoli / bam, "-g", ecoli / "ref.fa", "-t", 2, "-o", out]
        assert run_command(subcommand, *inputs, *options) == 0
        return out.read_bytes()

    return run


@pytest.mark.shared
@pytest.mark.parametrize("option", ["--slow5", "--pod5"])
@pytest.mark.parametrize("iop", [1, 2])
def test_options_of_the_run_count_more_than_the_index(
    indexed_ecoli: Path, formats: dict[str, Path], run_ecoli, tmp_path: Path, capfd, option: str, iop: int
):
    """They also do without the list of signal files in the index."""
    reads = indexed_ecoli / "reads.fasta"
    expected = run_ecoli("call-methylation", reads, "reads8.bam")
    bare = tmp_path / "bare.fasta"
    for suffix in (".index", ".index.fai", ".index.gzi"):
        shutil.copy(f"{reads}{suffix}", f"{bare}{suffix}")
    Path(f"{bare}.index.readdb").write_text("")
    capfd.readouterr()
    for signals in (formats[option], formats[option].parent if option == "--pod5" else formats[option]):
        assert run_ecoli("call-methylation", bare, "reads8.bam", option, signals, "--iop", iop) == expected
        told = capfd.readouterr().err
        assert f"- {option[2:]} load time: " in told
        assert ("--iop has no effect on SLOW5" in told) == (option == "--slow5" and iop > 1)
    Path(f"{bare}.index.readdb").unlink()
    assert run_ecoli("call-methylation", bare, "reads8.bam", option, formats[option]) == expected


# Reads without a signal


SUFFIX = {"slow5": "blow5", "pod5": "pod5"}


def counts(messages: str) -> str:
    (line,) = [line for line in messages.splitlines() if "total entries: " in line]
    return line.split("] ", 1)[1]


@pytest.mark.parametrize("kind", ["slow5", "pod5"])
@pytest.mark.parametrize("missing", [1, N_READS // 2, N_READS - 1])
def test_a_missing_read_counts_once(made: ReadSet, made_calls: bytes, tmp_path: Path, capfd, kind: str, missing: int):
    """f5c counts it twice in SLOW5 files, and so ends with an error when half of the reads are missing."""
    there = made.names[missing:]
    changed = getattr(made, f"with_{kind}")(tmp_path, there)
    out = tmp_path / "calls.tsv"
    for options in ([], [f"--{kind}", tmp_path / f"signals.{SUFFIX[kind]}"]):
        capfd.readouterr()
        assert run_main(*changed.options(), "-o", out, *options) == 0
        told = capfd.readouterr().err
        assert counts(told) == (
            f"total entries: {N_READS}, qc fail: 0, could not calibrate: 0, no alignment: 0, bad reads: {missing}"
        )
        expected = rows_by_read(made_calls)
        assert rows_by_read(out.read_bytes()) == {name: rows for name, rows in expected.items() if name in there}
        (warning,) = [line for line in told.splitlines() if "WARNING" in line]
        assert f"{missing} of {N_READS} reads" in warning
        assert all((name in warning) == (name in made.names[: min(missing, 3)]) for name in made.names)


@pytest.mark.parametrize("kind", ["slow5", "pod5"])
@pytest.mark.parametrize("subcommand", ["call-methylation", "eventalign"])
def test_a_missing_read_can_end_the_run(made: ReadSet, tmp_path: Path, capfd, kind: str, subcommand: str):
    changed = getattr(made, f"with_{kind}")(tmp_path, made.names[1:])
    capfd.readouterr()
    options = [f"--{kind}", tmp_path / f"signals.{SUFFIX[kind]}", "--skip-unreadable=no"]
    line = refused(capfd, subcommand, *changed.options(), "-o", tmp_path / "out", *options)
    # a read can be in any POD5 file of a folder, so that none is named
    place = f"{tmp_path}/signals.blow5" if kind == "slow5" else "is in no signal file known"
    for words in (place, made.names[0], "--skip-unreadable=no", "the output is incomplete"):
        assert words in line
    assert not (tmp_path / "out").exists()
