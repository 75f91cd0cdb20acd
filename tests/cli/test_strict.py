"""``--strict``: warnings about input become errors."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from ..made_data import ReadSet, error_line, run_command, run_main

_END = 28  # bytes of the block that ends a BAM file


def messages_of(capfd: pytest.CaptureFixture[str]) -> str:
    return capfd.readouterr().err


def test_sound_input_is_no_matter(made: ReadSet, made_calls: bytes, tmp_path: Path) -> None:
    assert run_main(*made.options(), "--strict", "-o", tmp_path / "calls.tsv") == 0
    assert (tmp_path / "calls.tsv").read_bytes() == made_calls


def test_a_read_without_a_signal(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    broken = made.with_signals(tmp_path, {made.names[3]: tmp_path / "gone.fast5"})
    out = tmp_path / "calls.tsv"
    assert run_main(*broken.options(), "-o", out) == 0
    assert "WARNING] 1 of 16 reads have no usable signal" in messages_of(capfd)
    rows = out.read_bytes()
    assert run_main(*broken.options(), "--strict", "-o", out) == 1
    line = error_line(messages_of(capfd))
    assert "1 of 16 reads have no usable signal" in line
    assert "(--strict); the rows until then are in " in line
    assert out.read_bytes() == rows
    assert run_main(*broken.options(), "-o", out) == 0  # the next run is not strict


def test_an_index_older_than_its_reads(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    changed = made.with_signals(tmp_path, {})
    later = changed.reads.with_name(f"{changed.reads.name}.index").stat().st_mtime + 100
    os.utime(changed.reads, (later, later))
    assert run_main(*changed.options(), "-o", tmp_path / "calls.tsv") == 0
    assert "is newer than its index" in messages_of(capfd)
    assert run_main(*changed.options(), "--strict", "-o", tmp_path / "calls.tsv") == 1
    assert "is newer than its index" in error_line(messages_of(capfd))


def test_index_of_damaged_fast5_files(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "fast5"
    folder.mkdir()
    for path in (made.folder / "fast5").iterdir():
        (folder / path.name).symlink_to(path)
    (folder / "bad.fast5").write_bytes(b"no fast5")
    reads = tmp_path / "reads.fasta"
    reads.write_bytes(made.reads.read_bytes())
    assert run_command("index", "-d", folder, reads) == 0
    assert "WARNING] 1 of 5 fast5 files were skipped" in messages_of(capfd)
    assert run_command("index", "--strict", "-d", folder, reads) == 1
    assert "1 of 5 fast5 files were skipped (--strict)" in error_line(messages_of(capfd))


def test_tables(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    header = "chromosome\tstart\tend\tnum_cpgs_in_group\tcalled_sites\tcalled_sites_methylated\tmethylated_frequency\t"
    for name, sequence in (("a.tsv", "ACGTA"), ("b.tsv", "ACGTAC")):
        (tmp_path / name).write_text(f"{header}group_sequence\nc\t5\t5\t1\t2\t1\t0.5\t{sequence}\n")
    tables = [tmp_path / "a.tsv", tmp_path / "b.tsv"]
    assert run_command("freq-merge", *tables, "-o", tmp_path / "merged.tsv") == 0
    assert "WARNING] 1 rows show another group_sequence" in messages_of(capfd)
    (tmp_path / "merged.tsv").unlink()
    assert run_command("freq-merge", "--strict", *tables, "-o", tmp_path / "merged.tsv") == 1
    assert "1 rows show another group_sequence" in error_line(messages_of(capfd))


def test_the_report_tells_which_files_were_read(made: ReadSet, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert run_main(*made.options(), "--report", report, "-o", tmp_path / "calls.tsv") == 0
    inputs = {entry["path"]: entry for entry in json.loads(report.read_text())["run"]["inputs"]}
    assert {str(made.reads), str(made.bam), str(made.genome), f"{made.reads}.index.readdb"} <= set(inputs)
    bam = inputs[str(made.bam)]
    assert bam["bytes"] == made.bam.stat().st_size
    assert bam["md5"] == hashlib.md5(made.bam.read_bytes()).hexdigest()
