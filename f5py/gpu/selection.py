"""Where a batch is computed: by the CPU threads, or by one of the GPUs, once these are started."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Protocol

from f5py import console
from f5py.core.batch import ReadBatch
from f5py.gpu.device import NoGpuError, count_devices, remedy
from f5py.gpu.placement import Backend

_WHO = "init_cuda"
#: Loading the CUDA libraries, making a context and allocating the arena takes about this long. A GPU is started when
#: the CPU threads have spent as much time on batches: a run is then never slowed down by more than it may gain, and a
#: short one is not slowed down at all.
_START_SECONDS = 2.0
#: How much a batch changes what is thought of the speed of where it was.
_WEIGHT = 0.3
#: A GPU that has not been chosen for so many batches is tried again: what keeps it slow may be over.
_RETRY = 32


class BatchLimits(Protocol):
    """Where batches come from: what the tuning may change there."""

    batch_size: int
    max_bases: int


class GpuBackendLike(Backend, Protocol):
    """A backend on a device, which may fail; it has a name for messages."""

    name: str

    @property
    def is_broken(self) -> bool:
        """Whether the device has failed, so that the CPU threads do its work."""
        ...


@dataclass(eq=False)
class _Lane:
    """A backend and what is known of its speed.

    Attributes
    ----------
    backend : Backend
    name : str
    waiting : int
        Samples of the batches that it has and that are not finished.
    rate : float or None
        Seconds per sample; None before its first batch has come to its end.
    passed_over : int
        Batches that others have got since its last one.
    n_batches : int
    """

    backend: Backend
    name: str
    waiting: int = 0
    rate: float | None = None
    passed_over: int = 0
    n_batches: int = 0

    def seconds_for(self, samples: int) -> float:
        """When it would be done with another batch."""
        return (self.rate or 0.0) * (self.waiting + samples)

    def done(self, samples: int, ahead: int, seconds: float) -> None:
        """Take note of a finished batch that had so many samples before it."""
        self.waiting -= samples
        rate = seconds / max(ahead + samples, 1)
        self.rate = rate if self.rate is None else self.rate + _WEIGHT * (rate - self.rate)


def opened(
    numbers: list[int] | None, open_one: Callable[[int], GpuBackendLike], is_asked_for: bool
) -> Iterator[GpuBackendLike]:
    """Open devices one after the other; say why one cannot be used, and what helps.

    Parameters
    ----------
    numbers : list of int or None
        CUDA device numbers; None for all devices.
    open_one : callable of a device number
    is_asked_for : bool
        See `tell_unavailable`.
    """
    try:
        numbers = list(range(count_devices())) if numbers is None else numbers
    except Exception as problem:
        tell_unavailable(problem, is_asked_for)
        return
    for number in numbers:
        try:
            gpu = open_one(number)
        except Exception as problem:  # cupy and what it loads raise all kinds of them
            tell_unavailable(problem, is_asked_for)
        else:
            yield gpu


def tell_unavailable(problem: Exception, is_asked_for: bool) -> None:
    """Say why a GPU is not used; that there is none deserves a warning only if the user has asked for one."""
    say = console.info if isinstance(problem, NoGpuError) and not is_asked_for else console.warning
    say(_WHO, f"no GPU is used: {remedy(problem)}; the CPU threads compute all")


class GpusWhenTheyPay:
    """Computes on the CPU until GPUs, started in a thread meanwhile, are ready; then where a batch is finished first.

    All give the same result. A GPU that fails, when it is started or later, is left out from then on.

    Parameters
    ----------
    cpu : Backend
    gpus : iterator of backends
        Each comes when it is ready; nothing is started before the first one is asked for.
    at_once : bool
        Start them now and wait, rather than when the run has proved long enough; the CPU threads then get only what the
        GPUs leave.
    clock : callable
        Seconds.
    """

    def __init__(
        self,
        cpu: Backend,
        gpus: Iterator[GpuBackendLike],
        at_once: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._cpu = _Lane(cpu, "the CPU threads")
        self._gpus: list[_Lane] = []
        self._opened: list[_Lane] = []
        self._gpus_to_come = gpus
        self._prefers_gpus = at_once
        self._clock = clock
        self._cpu_time = console.Stopwatch(clock)
        self._closing = False
        self._lock = threading.Lock()  # batches come from several threads
        self._thread: threading.Thread | None = None
        if at_once:
            self._start_gpus()
            self._join()

    def compute(self, batch: ReadBatch) -> None:
        """See `Backend.compute`."""
        samples = int(batch.n_samples.sum())
        with self._lock:
            lane = self._choose(samples)
            ahead = lane.waiting
            lane.waiting += samples
            lane.n_batches += 1
        started = self._clock()
        with self._cpu_time if lane is self._cpu else nullcontext():
            lane.backend.compute(batch)
        with self._lock:
            lane.done(samples, ahead, self._clock() - started)
            if self._thread is None and self._cpu_time.seconds >= _START_SECONDS:
                self._start_gpus()
            if lane in self._gpus and lane.backend.is_broken:  # type: ignore[attr-defined]
                self._gpus.remove(lane)

    def close(self) -> None:
        """Wait for a GPU that is being started, and close all."""
        self._closing = True
        if self._thread is None:
            console.note(
                _WHO,
                f"the CPU threads computed all batches in {self._cpu_time.seconds:.1f} sec; a GPU would not have paid "
                "(--gpu on starts it at once)",
            )
        self._join()
        if self._opened:
            shares = (f"{lane.n_batches} by {lane.name}" for lane in (*self._opened, self._cpu))
            console.note(_WHO, f"batches computed: {', '.join(shares)}")
        for lane in self._opened:
            try:
                lane.backend.close()
            except Exception as problem:
                console.warning(_WHO, f"{lane.name} could not be closed: {remedy(problem)}")

    def _choose(self, samples: int) -> _Lane:
        """The lane that is done first; one that nothing is known of, and one long passed over, is tried."""
        idle = [lane for lane in self._gpus if lane.waiting == 0]
        untried = [lane for lane in idle if lane.rate is None or lane.passed_over >= _RETRY]
        known = [lane for lane in self._gpus if lane.rate is not None or self._prefers_gpus]
        if not self._prefers_gpus or not self._gpus:
            known.append(self._cpu)
        # of equals the first, so that GPUs come before the CPU threads and in their order
        chosen = (untried or [min(known, key=lambda lane: (lane.seconds_for(samples), lane.waiting))])[0]
        for lane in self._gpus:
            lane.passed_over += 1
        chosen.passed_over = 0
        return chosen

    def _start_gpus(self) -> None:
        self._thread = threading.Thread(target=self._run, name="f5py-gpu-start", daemon=True)
        self._thread.start()

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        for gpu in self._gpus_to_come:
            lane = _Lane(gpu, gpu.name)
            self._opened.append(lane)
            self._gpus.append(lane)
            if self._closing:  # the run is over before all were there
                break
