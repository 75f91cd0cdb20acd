"""Load, compute and write concurrently, over bounded queues, in input order."""

import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from f5py.threads.ordered import JoinableThread, OrderedThreads, seconds_until

T = TypeVar("T")

_END = object()
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
    one being written. When a stage fails or is interrupted, `stop` is called to cancel the computation, earlier items
    are still written, and the exception is raised here; after an interrupt a slow writer is abandoned. A generator
    `load` is closed in its thread. `waits` counts waiting times.
    """
    waits = WaitTimes() if waits is None else waits

    def work(item: T) -> T:
        compute(item)
        return item

    sink: _WriterThread[T] = _WriterThread(write)
    lanes = OrderedThreads(load, work, n_lanes, f"{THREAD_PREFIX}compute", _MOST_BEHIND, n_ahead)
    try:
        for item in lanes.results(lambda is_held: waits.of("computing" if is_held else "loading")):
            settle(item)
            with waits.of("writing"):
                sink.put(item)
            del item
        with waits.of("writing"):
            sink.finish()
    except BaseException as problem:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        stop()
        lanes.stop()
        try:
            sink.finish(deadline if isinstance(problem, KeyboardInterrupt) else None)
        except KeyboardInterrupt:  # while waiting because of another error
            sink.finish(time.monotonic() + _PATIENCE_SECONDS)
            raise
        lanes.join(deadline)
        raise
    lanes.stop()
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


class _WriterThread(Generic[T]):
    """Pass items to a function in a thread, in order."""

    def __init__(self, consume: Callable[[T], None]) -> None:
        self._consume = consume
        self._queue: queue.Queue = queue.Queue(maxsize=1)
        self._taken = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._stage = JoinableThread(_WRITER, self._run)

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
            self._queue.put(_END, timeout=seconds_until(deadline))
        except queue.Full:  # it ends after what it is writing
            with suppress(queue.Empty):
                self._queue.get_nowait()
            self._queue.put_nowait(_END)
        self._stage.join(deadline)

    def raise_error(self) -> None:
        if self._error is not None:
            raise self._error
