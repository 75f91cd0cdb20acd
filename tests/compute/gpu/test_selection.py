"""Selection of a backend for each batch, and the start of GPUs."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from f5py.compute.gpu import device as opening
from f5py.compute.gpu import selection
from f5py.compute.gpu.device import GpuUnavailableError
from f5py.compute.gpu.expected_work import seconds_of_threads
from f5py.compute.gpu.selection import AutoGpuScheduler
from f5py.options.signal_commands import CallOptions

from ...abea.batch_maker import made_batch
from ...patience import PATIENCE


class _Clock:
    def __init__(self):
        self.now = 0.0
        self.meanwhile = lambda: None

    def __call__(self):
        return self.now


class _Recorder:
    """A backend that takes `seconds` for a batch."""

    def __init__(self, clock, seconds=1.0, name="GPU 0"):
        self.started, self.finished, self.closed = [], [], False
        self.name, self.is_broken, self.seconds = name, False, seconds
        self._clock = clock

    def compute(self, batch):
        self.started.append(batch.number)
        self._clock.now += self.seconds
        self._clock.meanwhile()
        self.finished.append(batch.number)

    def close(self):
        self.closed = True


@pytest.fixture
def clock():
    return _Clock()


def _batches(n):
    made = []
    for number in range(n):
        batch = made_batch(np.random.default_rng(0), 2)
        batch.number = number
        batch.sample_offsets = 9 * batch.base_offsets
        made.append(batch)
    return made


def _wait_for_start():
    for thread in threading.enumerate():
        if thread.name == opening.START_THREAD:
            thread.join()


def _compute(backend, *batches):
    for batch in batches:
        backend.compute(batch)


def _compute_at_once(backend, clock, *batches):
    """Each batch begins before those before it have ended."""
    left = list(batches)

    def next_one():
        if left:
            backend.compute(left.pop(0))

    clock.meanwhile = next_one
    next_one()
    clock.meanwhile = lambda: None


def test_the_gpu_takes_over_when_the_cpu_has_spent_its_start_time(clock):
    cpu, gpu = _Recorder(clock, selection._START_SECONDS / 2), _Recorder(clock, 0.1)
    backend = AutoGpuScheduler(cpu, iter([gpu]), clock=clock)
    one, two, three = _batches(3)
    _compute(backend, one, two)
    _wait_for_start()
    _compute(backend, three)
    backend.close()
    assert cpu.started == cpu.finished == [0, 1]
    assert gpu.started == gpu.finished == [2]
    assert gpu.closed


@pytest.mark.parametrize(
    ("seconds", "share", "expects_little"),
    [
        (1.0, None, False), (1.0, 0.3, False), (10.0, 0.8, False), (10.0, 1.0, False),
        (2.0 * selection._START_SECONDS, None, True),
    ],
)  # fmt: skip
def test_short_runs_and_the_end_of_long_ones_never_open_a_gpu(clock, capfd, seconds, share, expects_little):
    def gpus():
        pytest.fail("opened")
        yield

    cpu = _Recorder(clock, seconds)
    backend = AutoGpuScheduler(cpu, gpus(), expects_little=expects_little, clock=clock)
    (batch,) = _batches(1)
    batch.share_of_input = share
    _compute(backend, batch)
    backend.close()
    assert cpu.finished == [0]
    assert "would not have paid" in capfd.readouterr().err


class _Held(_Recorder):
    """Batches end when they may."""

    def __init__(self, clock):
        super().__init__(clock, 1.0)
        self.begun, self.may_end = threading.Semaphore(0), threading.Semaphore(0)

    def compute(self, batch):
        self.started.append(batch.number)
        self.begun.release()
        assert self.may_end.acquire(timeout=PATIENCE)
        self.finished.append(batch.number)


def test_a_gpu_that_is_soon_ready_is_waited_for(clock, monkeypatch):
    """Batches of the CPU threads would be done, and written, later than all others."""
    monkeypatch.setattr(selection, "_GRACE_SECONDS", PATIENCE)
    cpu, gpu = _Recorder(clock, 0.1), _Recorder(clock, 0.1)
    has_come = threading.Event()

    def come():
        has_come.wait(PATIENCE)
        yield gpu

    backend = AutoGpuScheduler(cpu, come(), at_once=True, clock=clock)
    thread = threading.Thread(target=_compute, args=[backend, *_batches(2)])
    thread.start()
    has_come.set()
    thread.join()
    backend.close()
    assert gpu.finished == [0, 1]
    assert cpu.started == []


def test_at_once_the_cpu_has_two_batches_at_a_time_until_the_gpu_is_ready(clock):
    is_ready = threading.Event()
    cpu, gpu = _Held(clock), _Recorder(clock, 0.5)

    def come():
        is_ready.wait(PATIENCE)
        yield gpu

    backend = AutoGpuScheduler(cpu, come(), at_once=True, clock=clock)
    threads = []
    for n_begun, batch in zip((1, 2, 2, 2), _batches(4), strict=True):
        threads.append(threading.Thread(target=backend.compute, args=[batch]))
        threads[-1].start()
        if batch.number < n_begun:
            assert cpu.begun.acquire(timeout=PATIENCE)
    assert opening.is_starting()
    assert sorted(cpu.started) == [0, 1]
    cpu.may_end.release()  # one of the two that wait takes its place
    assert cpu.begun.acquire(timeout=PATIENCE)
    assert len(cpu.started) == 3
    assert gpu.started == []
    is_ready.set()
    _wait_for_start()
    cpu.may_end.release(2)
    for thread in threads:
        thread.join()
    backend.close()
    assert len(cpu.finished) == 3
    assert len(gpu.finished) == 1


def test_batches_wait_for_a_gpu_that_is_asked_for(clock):
    is_ready = threading.Event()
    cpu, gpu = _Recorder(clock), _Recorder(clock, 20.0)

    def come():
        is_ready.wait(PATIENCE)
        yield gpu

    backend = AutoGpuScheduler(cpu, come(), alone=True, clock=clock)
    first = threading.Thread(target=backend.compute, args=_batches(1))
    first.start()
    assert opening.is_starting()
    assert cpu.started == gpu.started == []
    is_ready.set()
    first.join()
    backend.close()
    assert gpu.finished == [0]


def test_the_cpu_may_help_until_a_gpu_that_is_asked_for_is_ready(clock):
    is_ready = threading.Event()
    cpu, gpu = _Recorder(clock, 0.01), _Recorder(clock, 20.0)

    def come():
        is_ready.wait(PATIENCE)
        yield gpu

    backend = AutoGpuScheduler(cpu, come(), alone=True, clock=clock, meanwhile=1)
    batches = _batches(5)
    _compute(backend, *batches[:2])
    assert cpu.finished == [0, 1]
    is_ready.set()
    _wait_for_start()
    _compute(backend, *batches[2:])
    backend.close()
    assert cpu.finished == [0, 1]
    assert gpu.finished == [2, 3, 4]


@pytest.mark.parametrize("gpu_seconds", [0.5, 20.0])
def test_at_once_a_slow_gpu_is_helped(clock, gpu_seconds):
    cpu, gpu = _Recorder(clock, 1.0), _Recorder(clock, gpu_seconds)
    backend = AutoGpuScheduler(cpu, iter([gpu]), at_once=True, clock=clock)
    _wait_for_start()
    _compute(backend, *_batches(5))
    backend.close()
    assert gpu.finished == ([0, 1, 2, 3, 4] if gpu_seconds < 1 else [0])
    assert cpu.finished == ([] if gpu_seconds < 1 else [1, 2, 3, 4])


@pytest.mark.parametrize("gpu_seconds", [0.5, 20.0])
def test_batches_go_where_they_are_finished_first(clock, gpu_seconds):
    """A slow GPU is tried once, and now and then again; a fast one gets all."""
    cpu, gpu = _Recorder(clock, 2.0), _Recorder(clock, gpu_seconds)
    backend = AutoGpuScheduler(cpu, iter([gpu]), clock=clock)
    batches = _batches(40)
    _compute(backend, batches[0])
    _wait_for_start()
    _compute(backend, *batches[1:])
    backend.close()
    assert gpu.started == (list(range(1, 40)) if gpu_seconds < 1 else [1, 2 + selection._RETRY])


def test_a_gpu_with_batches_waiting_leaves_some_to_the_cpu(clock):
    """Not faster than the CPU threads, which have loading to do too; another batch would have to wait for the first."""
    cpu, gpu = _Recorder(clock, selection._START_SECONDS), _Recorder(clock, 1.0)
    backend = AutoGpuScheduler(cpu, iter([gpu]), clock=clock)
    batches = _batches(6)
    _compute(backend, batches[0])
    _wait_for_start()
    cpu.seconds = 1.8 / selection._CPU_MARGIN
    for _ in range(20):  # until that is what is thought of them
        backend._cpu.done(0, int(batches[0].n_samples.sum()), cpu.seconds)
    _compute(backend, batches[1])
    _compute_at_once(backend, clock, *batches[2:])
    assert gpu.started[:2] == [1, 2]
    assert cpu.started[:2] == [0, 3]
    backend.close()


def test_the_end_of_a_run_does_not_wait_for_gpus(clock, capfd):
    """The one that is being started is closed when it is there, others are not started any more."""
    may_go_on = threading.Event()
    gpus = [_Recorder(clock, 1.0, f"GPU {i}") for i in range(3)]

    def come():
        for gpu in gpus:
            may_go_on.wait(PATIENCE)
            yield gpu

    backend = AutoGpuScheduler(_Recorder(clock, selection._START_SECONDS), come(), clock=clock)
    _compute(backend, *_batches(1))
    assert opening.is_starting()
    backend.close()
    assert not any(gpu.closed for gpu in gpus)
    may_go_on.set()
    _wait_for_start()
    assert not opening.is_starting()
    assert [gpu.closed for gpu in gpus] == [True, False, False]
    assert "would not have paid" in capfd.readouterr().err


def test_what_is_wrong_with_a_gpu_is_not_told_after_the_end(clock, capfd):
    may_go_on = threading.Event()

    def come():
        may_go_on.wait(PATIENCE)
        yield GpuUnavailableError("the NVIDIA driver is too old")

    backend = AutoGpuScheduler(_Recorder(clock, selection._START_SECONDS), come(), clock=clock)
    _compute(backend, *_batches(1))
    backend.close()
    may_go_on.set()
    _wait_for_start()
    assert "driver" not in capfd.readouterr().err


def test_a_process_ends_while_a_gpu_is_being_started():
    code = (
        "import time\n"
        "from f5py.cli import _exit\n"
        "from f5py.compute.gpu.selection import AutoGpuScheduler\n"
        "backend = AutoGpuScheduler(None, (time.sleep(600) for _ in range(1)))\n"
        "backend._start_gpus()\n"
        "backend.close()\n"
        "print('written', flush=True)\n"
        "_exit(0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert ended.stdout == "written\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, size in (("reads.fasta", 10_000_000), ("small.fastq", 100_000), ("all.bam", 4_000_000)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    (tmp_path / "pod5").mkdir()
    for i in range(3):
        with (tmp_path / "pod5" / f"{i}.pod5").open("wb") as file:
            file.truncate(20_000_000)
    return tmp_path


def _seconds(files: Path, threads: int = 1, per_site: bool = False, **names: str) -> Any:
    paths: dict[str, Any] = {name: str(files / file) for name, file in names.items()}
    if "pod5" in paths:
        paths["pod5"] = (paths["pod5"],)
    return seconds_of_threads(CallOptions(genome="-", per_site=per_site, **{"bam": "-", "threads": threads} | paths))


def test_the_least_input_decides(files: Path) -> None:
    whole = _seconds(files, reads="reads.fasta", bam="all.bam", pod5="pod5")
    assert whole == _seconds(files, pod5="pod5")
    assert whole is not None
    assert _seconds(files, reads="small.fastq", bam="all.bam", pod5="pod5") < whole / 50
    assert _seconds(files, reads="reads.fasta", bam="missing.bam") >= whole
    assert _seconds(files, reads="reads.fasta", threads=10) == pytest.approx(_seconds(files, reads="reads.fasta") / 10)


def test_a_folder_counts_with_all_its_files(files: Path) -> None:
    assert _seconds(files, pod5="pod5") == pytest.approx(3 * _seconds(files / "pod5", pod5="0.pod5"))


def test_files_behind_links_count(files: Path) -> None:
    (files / "linked").mkdir()
    (files / "linked" / "run").symlink_to(files / "pod5")
    (files / "linked" / "back").symlink_to(".")
    assert _seconds(files, pod5="linked") == _seconds(files, pod5="pod5")


def test_single_sites_take_longer(files: Path) -> None:
    assert _seconds(files, reads="reads.fasta", per_site=True) > 1.5 * _seconds(files, reads="reads.fasta")


def test_nothing_is_told_where_it_cannot_be(files: Path) -> None:
    assert _seconds(files, bam="missing.bam") is None
    options = CallOptions(genome="-", bam="-", reads=str(files / "reads.fasta"), window=("chr1:1-20",))
    assert seconds_of_threads(options) is None
