"""Load, compute and write concurrently, over bounded queues, in input order."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from f5py.threads.interrupts import wait_for_event

T = TypeVar("T")

_END = object()
_POLL_SECONDS = 0.1
#: So many items may have been computed while one before them has not.
_MOST_BEHIND = 2
#: After an error the loader, and after an interrupt the writer too, are waited for no longer than this: they may be
#: in a library call that does not return, such as reading from or writing to a pipe that nobody serves.
_PATIENCE_SECONDS = 0.8
#: Threads that come back from compiled code wait so long for the interpreter, if another thread has it: many are there
#: for short.
_SWITCH_SECONDS = 5e-4
#: How the names of this module's threads begin.
THREAD_PREFIX = "f5py-stage-"
_WRITER = f"{THREAD_PREFIX}writer"
#: Share of the waiting that makes a reason the bottleneck.
_MOST = 0.5


@dataclass
class WaitTimes:
    """Seconds that the thread which passes batches on has waited, by reason."""

    loading: float = 0.0  # for the next batch, with room for its computation
    computing: float = 0.0  # for the next batch to write, with full computation
    writing: float = 0.0  # for the previous batch to be written

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        """Measure the time of the block."""
        started = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, what, getattr(self, what) + time.perf_counter() - started)

    @property
    def total(self) -> float:
        return self.loading + self.computing + self.writing

    @property
    def bound(self) -> str:
        """The reason for most of the waiting, ``loading``, ``computing`` or ``writing``, or ""."""
        most = max(("loading", "computing", "writing"), key=lambda what: getattr(self, what))
        return most if getattr(self, most) > _MOST * self.total else ""


@contextmanager
def _short_turns() -> Iterator[None]:
    """Shorten the interpreter's switch interval."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@_short_turns()
def run_pipeline(
    load: Iterable[T],
    compute: Callable[[T], object],
    write: Callable[[T], None],
    *,
    settle: Callable[[T], None] = lambda _: None,
    stop: Callable[[], None] = lambda: None,
    n_lanes: int = 2,
    n_ahead: int = 1,
    waits: WaitTimes | None = None,
) -> None:
    """Pass every item of `load` through `compute`, `settle` and `write`.

    `load` runs in one thread, `compute` in `n_lanes` others, each with an item of its own, `settle` in the calling
    thread and `write` in one more thread; all but `compute` see the items in order. At most `n_ahead` items are loaded
    and queued, `n_lanes` are being computed, two computed ones wait for an earlier one, one is queued for writing and
    one being written. When a stage fails or is interrupted, earlier items are still written, and the exception is
    raised here; after an interrupt a slow writer is abandoned. A generator `load` is closed in its thread.

    Parameters
    ----------
    stop : callable, optional
        Cancels the computation in progress.
    waits : WaitTimes, optional
        Counts waiting times.
    """
    waits = WaitTimes() if waits is None else waits
    source: _Prefetch[T] = _Prefetch(load, n_ahead)
    sink: _Sink[T] = _Sink(write)
    lanes = _ComputeThreads(compute, n_lanes)

    def pass_on() -> None:
        with waits.of("computing"):
            item = lanes.take()
        settle(item)
        with waits.of("writing"):
            sink.put(item)

    def pass_on_what_is_done() -> None:
        while lanes.first_is_done:
            pass_on()

    try:
        for item in source.until_end(pass_on_what_is_done, waits):
            pass_on_what_is_done()
            while not lanes.have_room:
                if lanes.first_is_done:
                    pass_on()
                else:
                    with waits.of("computing"):
                        lanes.wait_for_any()
            lanes.put(item)
            del item
        while len(lanes):
            pass_on()
        source.raise_error()
        with waits.of("writing"):
            sink.finish()
    except BaseException as problem:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        stop()
        source.stop()
        lanes.finish()
        try:
            sink.finish(deadline if isinstance(problem, KeyboardInterrupt) else None)
        except KeyboardInterrupt:  # while waiting because of another error
            sink.finish(time.monotonic() + _PATIENCE_SECONDS)
            raise
        source.join(deadline)
        lanes.join(deadline)
        raise
    lanes.finish()
    lanes.join()
    sink.raise_error()


def stages_running() -> bool:
    """Return whether a thread of a failed or interrupted pipeline is still running."""
    return any(name.startswith(THREAD_PREFIX) for name in _thread_names())


def writer_has_ended(seconds: float) -> bool:
    """Wait for the end of a pipeline's writer; return whether it ended in time."""
    deadline = time.monotonic() + seconds
    while _WRITER in _thread_names():
        if time.monotonic() > deadline:
            return False
        time.sleep(seconds / 100)
    return True


def _thread_names() -> list[str]:
    # not asking each thread whether it is alive: after an interrupted join CPython 3.11 takes it for dead
    return [thread.name for thread in threading.enumerate()]


class _Stage:
    """Joinable thread of a stage."""

    def __init__(self, name: str, run: Callable[[], None]) -> None:
        self._run = run
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run_and_tell, name=name, daemon=True)
        self._thread.start()

    def _run_and_tell(self) -> None:
        try:
            self._run()
        finally:
            self._ended.set()

    def join(self, deadline: float | None = None) -> None:
        if self._ended.wait(_seconds_until(deadline)):  # a join must not be interrupted, see `_thread_names`
            self._thread.join()


class _ComputeThreads(Generic[T]):
    """Threads that each compute one item at a time; items are returned in order."""

    def __init__(self, compute: Callable[[T], object], n_lanes: int) -> None:
        self._compute = compute
        self._waiting: queue.SimpleQueue[tuple[T, _Result] | None] = queue.SimpleQueue()
        self._in_flight: deque[_Result] = deque()
        self._any_done = threading.Event()  # an item has been computed since `have_room` looked
        self._stages = [_Stage(f"{THREAD_PREFIX}compute-{i}", self._run) for i in range(n_lanes)]

    def __len__(self) -> int:
        return len(self._in_flight)

    @property
    def first_is_done(self) -> bool:
        return bool(self._in_flight) and self._in_flight[0].done.is_set()

    @property
    def have_room(self) -> bool:
        """Whether a lane is free, and not too many items wait for an earlier one."""
        self._any_done.clear()
        n_busy = sum(not result.done.is_set() for result in self._in_flight)
        return n_busy < len(self._stages) and len(self) < len(self._stages) + _MOST_BEHIND

    def wait_for_any(self) -> None:
        """Wait until an item has been computed since `have_room`."""
        wait_for_event(self._any_done)

    def put(self, item: T) -> None:
        result = _Result()
        self._in_flight.append(result)
        self._waiting.put((item, result))

    def take(self) -> T:
        """Wait for the first item; raise the exception of its computation."""
        result = self._in_flight[0]
        wait_for_event(result.done)
        self._in_flight.popleft()
        if result.error is not None:
            raise result.error
        item: T = result.item
        return item

    def finish(self) -> None:
        """Let the threads end after the last item. May be called twice."""
        for _ in self._stages:
            self._waiting.put(None)

    def join(self, deadline: float | None = None) -> None:
        for stage in self._stages:
            stage.join(deadline)

    def _run(self) -> None:
        while (entry := self._waiting.get()) is not None:
            item, result = entry
            try:
                self._compute(item)
                result.item = item
            except BaseException as error:
                result.error = error
            result.done.set()
            self._any_done.set()
            del entry, item, result


class _Result:
    def __init__(self) -> None:
        self.done = threading.Event()
        self.item: Any = None
        self.error: BaseException | None = None


class _Prefetch(Generic[T]):
    """Iterate over items in a thread that stays some items ahead."""

    def __init__(self, items: Iterable[T], n_ahead: int) -> None:
        self._items = items
        self._queue: queue.Queue = queue.Queue(maxsize=n_ahead)
        self._stopping = threading.Event()
        self._taken = threading.Semaphore(n_ahead - 1)
        self._error: BaseException | None = None
        self._stage = _Stage(f"{THREAD_PREFIX}loader", self._run)

    def _run(self) -> None:
        try:
            for item in self._items:
                self._put(item)
                del item
                # Items are large: the next one is made only when fewer of them wait to be computed.
                while not self._taken.acquire(timeout=_POLL_SECONDS):
                    if self._stopping.is_set():
                        return
        except BaseException as error:
            self._error = error
        finally:
            close = getattr(self._items, "close", None)
            if close is not None:
                close()
            self._put(_END)

    def _put(self, item) -> None:
        while not self._stopping.is_set():
            try:
                self._queue.put(item, timeout=_POLL_SECONDS)
                return
            except queue.Full:
                continue

    def until_end(self, waiting: Callable[[], None], waits: WaitTimes) -> Iterator[T]:
        """Yield the items; `waiting` is called periodically while waiting."""
        while True:
            try:
                with waits.of("loading"):
                    item = self._queue.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                waiting()
                continue
            if item is _END:
                break
            yield item
            del item
            self._taken.release()
        self._stage.join()

    def raise_error(self) -> None:
        """Raise the exception that ended the items."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        self._stopping.set()

    def join(self, deadline: float) -> None:
        self._stage.join(deadline)


class _Sink(Generic[T]):
    """Pass items to a function in a thread, in order."""

    def __init__(self, consume: Callable[[T], None]) -> None:
        self._consume = consume
        self._queue: queue.Queue = queue.Queue(maxsize=1)
        self._taken = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._stage = _Stage(_WRITER, self._run)

    def _run(self) -> None:
        while (item := self._queue.get()) is not _END:
            self._taken.release()
            if self._error is None:
                try:
                    self._consume(item)
                except BaseException as error:
                    self._error = error
            del item  # items are large: none is kept while the next one is waited for

    def put(self, item: T) -> None:
        """Queue an item once the previous one has been written."""
        self.raise_error()
        self._queue.put(item)
        self._taken.acquire()

    def finish(self, deadline: float | None = None) -> None:
        """Write queued items, then end; give up at the deadline. May be called twice."""
        try:
            self._queue.put(_END, timeout=_seconds_until(deadline))
        except queue.Full:  # it ends after what it is writing
            with suppress(queue.Empty):
                self._queue.get_nowait()
            self._queue.put_nowait(_END)
        self._stage.join(deadline)

    def raise_error(self) -> None:
        if self._error is not None:
            raise self._error


def _seconds_until(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)
