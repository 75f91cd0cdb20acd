"""``f5py map -x darwin`` with GPUs, which are played on the CPU: the same bytes, and no fault of a GPU fails a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from f5py.mapping.gpu import tiles

from ..made_data import ReadSet, run_command
from .gpu_runs import FAULTS, assert_one_warning, batches_by, wait_for_start


@pytest.fixture(autouse=True)
def machine(played_machine, monkeypatch: pytest.MonkeyPatch):
    """Return a function that sets up the played machine. Its GPUs take batches that are as small as these."""
    monkeypatch.setattr(tiles, "_FEW_CANDIDATES", -1)
    monkeypatch.setattr(tiles, "_MOST_CANDIDATES", 64)
    monkeypatch.setattr(tiles, "_FEWEST_CANDIDATES", 4)
    return played_machine


def mapped(made: ReadSet, output: Path, *options: object, overlaps: bool = False) -> bytes:
    """PAF of the made reads, on their genome or on each other."""
    reference = made.reads if overlaps else made.genome
    arguments = ("-x", "darwin", "-t", 2, "-K", 3000, *options, reference, made.reads, "-o", output)
    assert run_command("map", *arguments) == 0
    return output.read_bytes()


@pytest.mark.parametrize("overlaps", [False, True])
def test_batches_on_two_gpus_and_without(made: ReadSet, machine, tmp_path: Path, capfd, overlaps: bool):
    machine(devices=2)
    expected = mapped(made, tmp_path / "cpu.paf", "--gpu", "off", overlaps=overlaps)
    assert expected
    assert "GPU" not in capfd.readouterr().err
    options = ("--gpu", "on", "--cuda-dev-id", "0,1")
    assert mapped(made, tmp_path / "gpu.paf", *options, overlaps=overlaps) == expected
    shares = batches_by(capfd.readouterr().err, "aligned")
    assert shares["the CPU threads"] == 0
    assert sum(shares.values()) > 4


def test_a_gpu_joins_when_tiles_take_long(made: ReadSet, tmp_path: Path, monkeypatch):
    import f5py

    expected = mapped(made, tmp_path / "cpu.paf", "--gpu", "off")
    given = {"output": tmp_path / "auto.paf", "threads": 2, "batch_bases": 3000, "preset": "darwin"}
    wait_for_start(lambda: f5py.map_reads(made.genome, [made.reads], **given), monkeypatch)
    assert (tmp_path / "auto.paf").read_bytes() == expected


@pytest.mark.parametrize("fault", FAULTS)
def test_no_fault_of_a_gpu_fails_a_run(made: ReadSet, machine, tmp_path: Path, capfd, fault):
    expected = mapped(made, tmp_path / "cpu.paf", "--gpu", "off")
    machine(fault=fault)
    capfd.readouterr()
    assert mapped(made, tmp_path / "gpu.paf", "--gpu", "on") == expected
    assert_one_warning(capfd.readouterr().err, fault)


def test_another_result_on_the_device_is_not_taken(made: ReadSet, tmp_path: Path, capfd, monkeypatch):
    expected = mapped(made, tmp_path / "cpu.paf", "--gpu", "off")
    fill = tiles._fill

    def broken(numbers, *rest):
        fill(numbers, *rest)
        numbers[-1, 4] += 1  # that of the first one would begin before the buffer

    monkeypatch.setattr(tiles, "_fill", broken)
    assert mapped(made, tmp_path / "gpu.paf", "--gpu", "on") == expected
    assert "aligns tiles in another way than the CPU" in capfd.readouterr().err
