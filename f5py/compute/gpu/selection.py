"""Scheduling of batches on the CPU threads and on GPUs that start during the run."""

import math
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from f5py.compute.gpu.device import START_THREAD, WHO, DeviceBackend, close_gpu, report_unavailable
from f5py.compute.gpu.placement import Backend
from f5py.messages import console

#: Loading the CUDA libraries, making a context and allocating the arena takes about this long. A GPU is started when
#: the CPU threads would need twice as long for what is left or, where that cannot be told, have spent as much time on
#: batches: a run is then hardly slowed down, and a short one not at all.
_START_SECONDS = 2.0
#: What is computed by the CPU threads is loaded and written more slowly: they must be so many times as fast.
_CPU_MARGIN = 2.0
#: Batches of a large input are left to GPUs that finish one within so many seconds.
_LONG_WAIT = 1.0
#: By so much a run must take longer than its inputs' sizes tell before a GPU is started after all.
_PATIENCE = 3.0
#: Batches that the CPU threads compute at a time while the first GPU of a long run is started: as many keep them busy.
_MEANWHILE = 2
#: They begin with that when the first batch has waited so many seconds. A GPU that is ready by then has computed all
#: batches sooner than the CPU threads theirs, which would be written, and so go out of the way, later.
_GRACE_SECONDS = 0.5
#: How much a batch changes what is thought of the speed of where it was.
_WEIGHT = 0.3
#: A GPU that has not been chosen for so many batches is tried again: what keeps it slow may be over.
_RETRY = 32


class BatchSource(Protocol):
    """A producer of batches with limits that tuning may change."""

    batch_size: int
    max_bases: int


@dataclass(eq=False)
class _Lane:
    """A backend and its measured speed."""

    backend: Backend
    name: str
    # samples, or whatever the size of a batch is, of the batches that it has and that are not finished
    waiting: int = 0
    rate: float | None = None  # seconds per sample; None before its first batch has come to its end
    passed_over: int = 0  # batches that others have got since its last one
    n_batches: int = 0
    n_under_way: int = 0  # batches that it has and that are not finished

    def seconds_for(self, samples: int) -> float:
        """Predict the seconds until it would finish another batch."""
        return (self.rate or 0.0) * (self.waiting + samples)

    def done(self, samples: int, ahead: int, seconds: float) -> None:
        """Update the rate by a finished batch with `ahead` samples queued before it."""
        self.waiting -= samples
        self.n_under_way -= 1
        rate = seconds / max(ahead + samples, 1)
        self.rate = rate if self.rate is None else self.rate + _WEIGHT * (rate - self.rate)


def _n_samples(batch: Any) -> int:
    return int(batch.n_samples.sum())


class AutoGpuScheduler:
    """Compute on the CPU until GPUs are ready, then wherever a batch finishes first.

    All give the same result. A GPU that fails is not used again, with a message. `gpus` yields each GPU when ready, or
    its error; the first request starts them: now if `at_once` or `alone`, else when the run has proved long, later if
    it `expects_little`. With `at_once` the CPU threads get batches until the first GPU is ready, `meanwhile` at a time,
    and later only if the GPUs are slow; if `alone` only the rest of the GPUs' work.

    `size_of` returns the size of a batch, which its time grows with, `seconds` those of the CPU threads on batches, by
    default the time during which they have had some. `verb` is the work on a batch, for messages.
    """

    def __init__(
        self,
        cpu: Backend,
        gpus: Iterator[DeviceBackend | Exception],
        at_once: bool = False,
        alone: bool = False,
        expects_little: bool = False,
        clock: Callable[[], float] = time.perf_counter,
        size_of: Callable[[Any], int] = _n_samples,
        verb: str = "computed",
        seconds: Callable[[], float] | None = None,
        meanwhile: int | None = None,
    ) -> None:
        self._size_of, self._verb, self._seconds = size_of, verb, seconds
        self._meanwhile = (0 if alone else _MEANWHILE) if meanwhile is None else meanwhile
        self._cpu = _Lane(cpu, "the CPU threads")
        self._gpus: list[_Lane] = []
        self._opened: list[_Lane] = []
        self._gpus_to_come = gpus
        self._prefers_gpus = alone
        self._waits = at_once or alone
        self._patience = _PATIENCE if expects_little else 1.0
        self._clock = clock
        self._cpu_time = console.Stopwatch(clock)
        self._closing = False
        self._lock = threading.Condition()  # batches come from several threads
        self._thread: threading.Thread | None = None
        self._has_one = False  # or never will
        self._patient_until: float | None = None  # by the clock, from the first batch on
        if self._waits:
            self._start_gpus()

    def compute(self, batch: Any) -> None:
        samples = self._size_of(batch)
        with self._lock:
            if self._waits and not self._prefers_gpus:
                self._lock.wait_for(lambda: self._has_one, self._patience_left())
            self._lock.wait_for(self._may_choose)
            lane = self._choose(samples)
            ahead = lane.waiting
            lane.waiting += samples
            lane.n_batches += 1
            lane.n_under_way += 1
        started = self._clock()
        with self._cpu_time if lane is self._cpu else nullcontext():
            lane.backend.compute(batch)
        with self._lock:
            lane.done(samples, ahead, self._clock() - started)
            self._lock.notify_all()
            if self._thread is None and self._start_pays(batch.share_of_input):
                self._start_gpus()
            if lane in self._gpus and lane.backend.is_broken:  # type: ignore[attr-defined]
                self._gpus.remove(lane)

    def close(self) -> None:
        """Close all GPUs; one that is starting is closed by its thread."""
        with self._lock:
            self._closing = True
            lanes = self._opened.copy()
        if self._thread is None or (not lanes and self._thread.is_alive()):
            hint = "" if self._prefers_gpus else " (--gpu on starts it at once)"
            done = f"the CPU threads {self._verb} all batches in {self._spent:.1f} sec"
            console.note(WHO, f"{done}; a GPU would not have paid{hint}")
        if lanes:
            shares = (f"{lane.n_batches} by {lane.name}" for lane in (*lanes, self._cpu))
            console.note(WHO, f"batches {self._verb}: {', '.join(shares)}")
        for lane in lanes:
            close_gpu(lane.backend)  # type: ignore[arg-type]

    def _patience_left(self) -> float:
        """Return the seconds left to wait for the first GPU before the CPU threads get batches."""
        if self._patient_until is None:
            self._patient_until = self._clock() + _GRACE_SECONDS
        return max(self._patient_until - self._clock(), 0.0)

    def _may_choose(self) -> bool:
        """Return whether a lane may be chosen now, before the first GPU is ready."""
        return self._has_one or not self._waits or self._cpu.n_under_way < self._meanwhile

    def _choose(self, samples: int) -> _Lane:
        """Choose the lane that finishes first; retry one without a rate or long unused."""
        idle = [lane for lane in self._gpus if lane.waiting == 0]
        untried = [lane for lane in idle if lane.rate is None or lane.passed_over >= _RETRY]
        known = [lane for lane in self._gpus if lane.rate is not None or self._waits]
        soonest = min((lane.seconds_for(samples) for lane in known), default=math.inf)
        if not known or (not self._prefers_gpus and (not self._waits or soonest > _LONG_WAIT)):
            known.append(self._cpu)
        # of equals the first, so that GPUs come before the CPU threads and in their order
        chosen = (untried or [min(known, key=lambda lane: (self._seconds_for(lane, samples), lane.waiting))])[0]
        for lane in self._gpus:
            lane.passed_over += 1
        chosen.passed_over = 0
        return chosen

    def _seconds_for(self, lane: _Lane, samples: int) -> float:
        return lane.seconds_for(samples) * (_CPU_MARGIN if lane is self._cpu else 1.0)

    @property
    def _spent(self) -> float:
        """Seconds of the CPU threads on batches."""
        return self._cpu_time.seconds if self._seconds is None else self._seconds()

    def _start_pays(self, share: float | None) -> bool:
        """Return whether GPUs are worth their start at this fraction of the input."""
        spent = self._spent
        if share is None:
            return spent >= _START_SECONDS * self._patience
        return spent * (1.0 - share) >= 2.0 * _START_SECONDS * share * self._patience

    def _start_gpus(self) -> None:
        self._thread = threading.Thread(target=self._open_gpus, name=START_THREAD)
        self._thread.start()

    def _open_gpus(self) -> None:
        try:
            for gpu in self._gpus_to_come:
                if not isinstance(gpu, Exception):
                    self._take(gpu)
                elif not self._closing:
                    report_unavailable(gpu, self._prefers_gpus)
                if self._closing:
                    break
        finally:
            if isinstance(self._gpus_to_come, Generator):
                self._gpus_to_come.close()
            self._announce_one()

    def _announce_one(self) -> None:
        with self._lock:
            self._has_one = True
            self._lock.notify_all()

    def _take(self, gpu: DeviceBackend) -> None:
        """Add a ready GPU to the lanes, or close it if the run is over."""
        lane = _Lane(gpu, gpu.name)
        with self._lock:
            is_over = self._closing
            if not is_over:
                for lanes in (self._opened, self._gpus):
                    lanes.append(lane)
                    lanes.sort(key=lambda lane: (len(lane.name), lane.name))
        self._announce_one()
        if is_over:
            close_gpu(gpu)
