"""``f5py gpu-check``, on played devices and without any."""

from __future__ import annotations

import sys

import pytest

from f5py.commands import gpu_check
from f5py.compute.gpu import backend

from ..made_data import run_command


def test_says_what_there_is_and_that_it_computes_the_same(played_machine, capsys):
    played_machine(devices=2, memory=1 << 33)
    assert run_command("gpu-check", "--cuda-dev-id", "1") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["CuPy: 14.0.0", "CUDA of the driver: 13.0", "CUDA of the run-time library: 12.9"]
    assert lines[3].startswith("NVRTC: ")
    assert lines[4] == "GPU 1: Played GPU, compute capability 9.0, 8.0 GiB free of 8.0 GiB"
    assert len(lines) == 11
    assert all(" the CPU's numbers to the last bit " in line for line in lines[5:])


def test_numbers_that_differ(played_machine, capsys, monkeypatch):
    played_machine(devices=1, memory=1 << 33)
    made = [0]

    def changing(model, rna):
        batch = synthetic_batch(model, rna)
        made[0] += 1
        batch.samples[100] += made[0]
        return batch

    synthetic_batch = backend.synthetic_batch
    monkeypatch.setattr(backend, "synthetic_batch", changing)
    monkeypatch.setattr(gpu_check, "_CHECKS", dict(list(gpu_check._CHECKS.items())[:1]))
    monkeypatch.setattr(gpu_check, "gpu_checks", dict)
    assert run_command("gpu-check") == 1
    captured = capsys.readouterr()
    assert "GPU 0: events, alignment and calls: failed\n" in captured.out
    error = captured.err.splitlines()[-1]
    assert error.startswith("[f5py::ERROR] GPU 0: events, alignment and calls: Played GPU computes other numbers than")
    assert "please report this" in error


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("devices", "there is no CUDA device"),
        ("driver", "the NVIDIA driver is missing, or too old for the installed cupy; update it, or: pip install "),
        ("import", "cupy cannot be loaded ("),
        ("compile", "the kernels do not compile: "),
        ("nvrtc", "CUDA's run-time compiler is missing ("),
        ("busy", "another program has the GPU for itself ("),
    ],
)
def test_what_is_broken_is_said_in_one_line(played_machine, capsys, fault, says):
    played_machine(fault=fault)
    assert run_command("gpu-check") == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if "::ERROR]" in line]
    assert len(lines) == 1
    assert says in lines[0]


def test_without_cupy(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert run_command("gpu-check") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("[f5py::ERROR] cupy is not installed (pip install cupy-cuda12x ")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(("number", "status"), [("7", 1), ("x", 2)])
def test_numbers_of_devices(played_machine, capsys, number, status):
    played_machine(devices=1)
    assert run_command("gpu-check", "--cuda-dev-id", number) == status
    assert "--cuda-dev-id" in capsys.readouterr().err
