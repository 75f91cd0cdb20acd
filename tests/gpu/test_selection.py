"""When a GPU aligner takes over from the CPU threads."""

import threading

import numpy as np
import pytest

from f5py.gpu import selection
from f5py.gpu.device import GpuUnavailableError
from f5py.gpu.selection import GpuWhenItPays

from ..abea.batch_maker import made_batch


class _Recorder:
    def __init__(self):
        self.started, self.finished, self.closed = [], [], False

    def start(self, batch, reads, keep_pairs):
        self.started.append(batch.number)

    def finish(self, batch):
        self.finished.append(batch.number)

    def close(self):
        self.closed = True


def _batches(n):
    made = []
    for number in range(n):
        batch = made_batch(np.random.default_rng(0), 2)
        batch.number = number
        made.append(batch)
    return made


def _wait_for_start():
    for thread in threading.enumerate():
        if thread.name == "f5py-gpu-start":
            thread.join()


def test_the_gpu_takes_over_when_the_cpu_has_spent_its_start_time(monkeypatch):
    cpu, gpu = _Recorder(), _Recorder()
    aligner = GpuWhenItPays(cpu, lambda: gpu)
    monkeypatch.setattr(selection, "_START_SECONDS", 1e9)
    one, two, three = _batches(3)
    aligner.start(one, [0], False)
    monkeypatch.setattr(selection, "_START_SECONDS", 0.0)
    aligner.start(two, [0], False)
    _wait_for_start()
    aligner.start(three, [0], False)
    for batch in (one, two, three):
        aligner.finish(batch)
    aligner.close()
    assert cpu.started == cpu.finished == [0, 1]
    assert gpu.started == gpu.finished == [2]
    assert gpu.closed


def test_short_runs_never_open_the_gpu(capfd):
    def open_gpu():
        pytest.fail("opened")

    cpu = _Recorder()
    aligner = GpuWhenItPays(cpu, open_gpu)
    (batch,) = _batches(1)
    aligner.start(batch, [0], False)
    aligner.finish(batch)
    aligner.close()
    assert cpu.finished == [0]
    assert "would not have paid" in capfd.readouterr().err


def test_at_once():
    cpu, gpu = _Recorder(), _Recorder()
    aligner = GpuWhenItPays(cpu, lambda: gpu, at_once=True)
    (batch,) = _batches(1)
    aligner.start(batch, [0], False)
    aligner.finish(batch)
    assert gpu.finished == [0]
    assert cpu.started == []


def test_without_a_usable_gpu_the_cpu_goes_on_and_the_reason_is_said_once(capfd):
    def open_gpu():
        raise GpuUnavailableError("there is no CUDA device")

    cpu = _Recorder()
    aligner = GpuWhenItPays(cpu, open_gpu, at_once=True)
    for batch in _batches(2):
        aligner.start(batch, [0], False)
        aligner.finish(batch)
    aligner.close()
    assert cpu.finished == [0, 1]
    assert capfd.readouterr().err.count("there is no CUDA device") == 1


def test_a_programming_error_while_opening_is_not_swallowed():
    def open_gpu():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        GpuWhenItPays(_Recorder(), open_gpu, at_once=True)
