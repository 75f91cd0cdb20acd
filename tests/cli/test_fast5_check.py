"""``f5py fast5-check`` on readable and unreadable signals."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..made_data import ReadSet, refused, run_command


@pytest.mark.parametrize("kind", ["fast5", "slow5", "pod5"])
def test_every_read_has_a_line(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str):
    reads = made.reads if kind == "fast5" else getattr(made, f"with_{kind}")(tmp_path).reads
    assert run_command("fast5-check", "-r", reads, "-t", 2) == 0
    out, told = capfd.readouterr()
    header, *lines = (line.split("\t") for line in out.splitlines())
    assert header == ["read_name", "signal_file", "samples", "problem"]
    sizes = {read.name: len(read.samples) for read in made.signals()}
    assert {name: int(samples) for name, _, samples, _ in lines} == sizes
    assert {problem for *_, problem in lines} == {""}
    assert f"{len(sizes)} reads, {len(sizes)} with a usable signal" in told


def test_what_is_wrong_is_told(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    gone, unknown = made.names[1], made.names[2]
    changed = made.with_signals(tmp_path, {gone: tmp_path / "gone.fast5", unknown: ""})
    table = tmp_path / "table.tsv"
    assert run_command("fast5-check", "-r", changed.reads, "-o", table) == 0
    lines = {line.split("\t")[0]: line.split("\t") for line in table.read_text().splitlines()}
    assert "gone.fast5" in lines[gone][3]
    assert "no signal file" in lines[unknown][3]
    assert sum(bool(line[3]) for line in lines.values()) == 3  # with the title
    assert f"{len(made.names)} reads, {len(made.names) - 2} with a usable signal" in capfd.readouterr().err
    none = made.with_signals(tmp_path, dict.fromkeys(made.names, ""))
    assert "has a usable signal; index them again" in refused(capfd, "fast5-check", "-r", none.reads)
