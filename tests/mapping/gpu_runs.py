"""Tools of the tests of ``f5py map`` with played GPUs."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

from f5py.compute.gpu import device as opening
from f5py.compute.gpu import selection

COMPUTE = selection.AutoGpuScheduler.compute
#: Faults of the played machine, and what the one warning says.
FAULTS = {
    "import": "cupy cannot be loaded",
    "driver": "the NVIDIA driver is missing",
    "devices": "there is no CUDA device",
    "nvrtc": "CUDA's run-time compiler is missing",
    "compile": "the kernels do not compile",
    "memory": "there is too little free memory",
    "launch": "GPU",
    "launch@3": "GPU 0 failed",
    "lost@4": "GPU 0 failed",
    "free": "could not be closed",
}


def batches_by(messages: str, done: str) -> dict[str, int]:
    """Count the batches of each processor; `done` is what was done with them."""
    found = re.search(rf"batches {done}: (.*)", messages)
    assert found is not None, messages
    return {name: int(number) for number, name in re.findall(r"(\d+) by ([^,]+)", found[1])}


def assert_one_warning(messages: str, fault: str) -> None:
    assert messages.count("WARNING") == 1, messages
    assert FAULTS[fault] in messages
    assert "Traceback" not in messages


def give_gpus_all(monkeypatch) -> None:
    """Let batches wait until the GPUs have started: so small a run would be over before."""

    def compute_when_all_are_there(self, batch) -> None:
        if self._waits:
            join_starts()
        COMPUTE(self, batch)

    monkeypatch.setattr(selection.AutoGpuScheduler, "compute", compute_when_all_are_there)


def join_starts() -> None:
    for thread in [thread for thread in threading.enumerate() if thread.name == opening.START_THREAD]:
        thread.join()


def wait_for_start(map_reads: Callable[[], object], monkeypatch) -> None:
    """Map with a GPU that joins at once, and wait until it has started."""
    monkeypatch.setattr(selection, "_START_SECONDS", 1e-12)
    map_reads()
    join_starts()
