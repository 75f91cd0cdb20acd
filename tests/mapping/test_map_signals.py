"""``f5py map`` ends on signals, though its threads are in reads that take minutes, and leaves nothing."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from f5py.io.files.disk import temporary_folder

from ..made_data import process_of, run_command
from ..patience import PATIENCE, comes_true

_UNIT = "GGTCTTC"


def _seconds(process: subprocess.Popen) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / 100


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("output", ["out.paf", "out.bam"])
def test_in_a_long_read(number: signal.Signals, output: str, tmp_path: Path):
    """A read in a tandem repeat, of minutes; a run that waited for it would not end in time."""
    text = _UNIT * 20_000
    (tmp_path / "ref.fa").write_text(f">c\n{text}\n")
    (tmp_path / "reads.fa").write_text("".join(f">r{i}\n{text}\n" for i in range(3)))
    process = subprocess.Popen(
        process_of("map", tmp_path / "ref.fa", tmp_path / "reads.fa", "-t", 1, "-o", tmp_path / output),
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert any("minimizers" in line for line in process.stderr)
        before = _seconds(process)
        assert comes_true(lambda: _seconds(process) > before + 2)
        assert process.poll() is None
        process.send_signal(number)
        _, messages = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 128 + number
    assert "Traceback" not in messages
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reads.fa", "ref.fa"]


def test_a_killed_run_leaves_nothing_that_stays(tmp_path: Path):
    """What it has left beside the output goes with the next run."""
    text = _UNIT * 20_000
    (tmp_path / "ref.fa").write_text(f">c\n{text}\n")
    (tmp_path / "reads.fa").write_text(f">r\n{text}\n")
    out = tmp_path / "out.bam"
    process = subprocess.Popen(
        process_of("map", tmp_path / "ref.fa", tmp_path / "reads.fa", "-t", 1, "-o", out),
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    assert any("minimizers" in line for line in process.stderr)
    process.kill()
    process.communicate()
    (tmp_path / "reads.fa").write_text(f">r\n{text[:100]}\n")
    assert run_command("map", tmp_path / "ref.fa", tmp_path / "reads.fa", "-o", out) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.bam", "out.bam.bai", "reads.fa", "ref.fa"]


def test_folders_of_processes_that_have_ended_are_removed(tmp_path: Path):
    (tmp_path / "f5py-x-left").mkdir()
    (tmp_path / "f5py-x-left" / "records").write_text("left")
    (tmp_path / "f5py-x-file").write_text("no folder")
    (tmp_path / "other").mkdir()
    with temporary_folder("f5py-x-", tmp_path) as first, temporary_folder("f5py-x-", tmp_path) as second:
        names = {Path(first).name, Path(second).name, "f5py-x-file", "other"}
        assert {path.name for path in tmp_path.iterdir()} == names
    assert {path.name for path in tmp_path.iterdir()} == {"f5py-x-file", "other"}
