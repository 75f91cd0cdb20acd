"""The start of several GPUs at the same time."""

from __future__ import annotations

import threading

import pytest

from f5py.compute.gpu import device as opening
from f5py.compute.gpu.device import GpuUnavailableError, open_gpus

from ...patience import PATIENCE


class _Gpu:
    is_broken = False

    def __init__(self, number: int) -> None:
        self.name = f"GPU {number}"
        self.closed_by: threading.Thread | None = None

    def compute(self, batch: object) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self.closed_by = threading.current_thread()


def _join_starts() -> None:
    for thread in [thread for thread in threading.enumerate() if thread.name == opening.START_THREAD]:
        thread.join(PATIENCE)


def test_all_are_opened_at_the_same_time():
    together = threading.Barrier(3)

    def open_one(number: int) -> _Gpu:
        together.wait(PATIENCE)
        return _Gpu(number)

    assert sorted(gpu.name for gpu in open_gpus([0, 2, 5], open_one)) == ["GPU 0", "GPU 2", "GPU 5"]


def test_each_comes_when_it_is_ready():
    may_come = threading.Event()

    def open_one(number: int) -> _Gpu:
        assert number or may_come.wait(PATIENCE)
        return _Gpu(number)

    gpus = open_gpus([0, 1], open_one)
    assert next(gpus).name == "GPU 1"
    may_come.set()
    assert [gpu.name for gpu in gpus] == ["GPU 0"]


def test_the_same_reason_comes_once():
    def open_one(number: int) -> _Gpu:
        if number < 3:
            raise GpuUnavailableError("is busy" if number else "is old")
        return _Gpu(number)

    found = list(open_gpus([0, 1, 2, 3], open_one))
    assert sorted(str(one) for one in found if isinstance(one, Exception)) == ["is busy", "is old"]
    assert [one.name for one in found if isinstance(one, _Gpu)] == ["GPU 3"]


def test_given_up_each_is_closed_once():
    """One has been taken, one is ready, and one is closed by the thread that opens it."""
    is_late, may_come, is_put = threading.Event(), threading.Event(), threading.Event()
    made = {number: _Gpu(number) for number in range(3)}
    threads = {}

    def open_one(number: int) -> _Gpu:
        threads[number] = threading.current_thread()
        if number == 1:
            assert is_put.wait(PATIENCE)
        if number == 2:
            is_late.set()
            assert may_come.wait(PATIENCE)
        return made[number]

    gpus = open_gpus([0, 1, 2], open_one)
    assert next(gpus) is made[0]
    is_put.set()
    assert is_late.wait(PATIENCE)
    threads[1].join(PATIENCE)
    gpus.close()
    assert made[1].closed_by is threading.current_thread()
    assert made[2].closed_by is None
    assert opening.is_starting()
    may_come.set()
    _join_starts()
    assert made[2].closed_by is threads[2]
    assert made[0].closed_by is None  # belongs to who has taken it


def test_no_device_is_opened_while_contexts_are_made(monkeypatch: pytest.MonkeyPatch):
    made: list[str] = []
    early = threading.Timer(0.1, lambda: made.append("contexts"))
    monkeypatch.setattr(opening, "_early", early)
    early.start()
    assert [gpu.name for gpu in open_gpus([0], lambda number: made.append("GPU") or _Gpu(number))] == ["GPU 0"]
    assert made == ["contexts", "GPU"]
