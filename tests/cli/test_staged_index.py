"""An index whose files are links, as Nextflow and Snakemake stage them in other folders."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ..made_data import ReadSet, error_line, run_command


@pytest.fixture
def task(made: ReadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder in which reads were indexed with relative paths."""
    folder = tmp_path / "task1"
    shutil.copytree(made.signal_path, folder / "fast5")
    shutil.copy(made.reads, folder / "reads.fa")
    monkeypatch.chdir(folder)
    assert run_command("index", "-d", "fast5", "reads.fa", "--iop", "1") == 0
    assert "\tfast5/" in (folder / "reads.fa.index.readdb").read_text()
    return folder


def staged(source: Path, folder: Path, is_relative: bool = True) -> None:
    """Link each file of an index into a folder."""
    folder.mkdir(parents=True)
    for path in source.glob("reads.fa*"):
        target = os.path.relpath(path, folder) if is_relative else path
        (folder / path.name).symlink_to(target)


def call(made: ReadSet, reads: Path | str, out: Path) -> int:
    given = ("-r", reads, "-b", made.bam, "-g", made.genome, "-t", "1", "--iop", "1")
    return run_command("call-methylation", *given, "-o", out)


@pytest.mark.parametrize("is_relative", [True, False])
def test_signals_are_found_where_the_index_was_made(
    task: Path, made: ReadSet, made_calls: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_relative: bool
) -> None:
    staged(task, tmp_path / "task2", is_relative)
    staged(tmp_path / "task2", tmp_path / "deep" / "task3", is_relative)  # links to links
    for folder, reads in (("task2", "reads.fa"), ("deep/task3", "reads.fa"), (".", "deep/task3/reads.fa")):
        monkeypatch.chdir(tmp_path / folder)
        out = tmp_path / "calls.tsv"
        assert call(made, reads, out) == 0
        assert out.read_bytes() == made_calls
        out.unlink()


def test_a_signal_folder_that_is_not_there_either(
    task: Path, made: ReadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every folder is named once."""
    staged(task, tmp_path / "task2")
    shutil.rmtree(task / "fast5")
    monkeypatch.chdir(tmp_path / "task2")
    capfd.readouterr()
    assert call(made, "reads.fa", tmp_path / "calls.tsv") == 1
    told = capfd.readouterr().err
    error_line(told)
    (warning,) = [line for line in told.splitlines() if "signal files with relative paths" in line]
    assert f"are not below {tmp_path / 'task2'} nor {task}; run f5py where the reads were indexed" in warning
