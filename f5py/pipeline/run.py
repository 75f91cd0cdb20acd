"""Load, compute and write at the same time, over bounded queues, in the order of the input."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_END = object()
_POLL_SECONDS = 0.1
#: After an error the loader, and after an interrupt the writer too, are waited for no longer than this: they may be
#: in a library call that does not return, such as reading from or writing to a pipe that nobody serves.
_PATIENCE_SECONDS = 0.8
#: How the names of this module's threads begin.
THREAD_PREFIX = "f5py-stage-"


def run_pipeline(
    load: Iterable[T],
    compute: Callable[[T], None],
    write: Callable[[T], None],
    start: Callable[[T], None] = lambda _: None,
    ahead: Callable[[], bool] = lambda: False,
    synchronous: bool = False,
) -> None:
    """Pass every item of `load` through `start`, `compute` and `write`.

    `load` runs in one thread, `start` and `compute` in the calling thread and `write` in another one, each at most one
    item ahead of the next. When a stage fails or is interrupted, the items before it are still written, in order, and
    its exception is raised here. If `load` is a generator, it is closed in its thread.

    Parameters
    ----------
    load : iterable
    compute, write : callables of one item
    start : callable of one item, optional
        Called before `compute`.
    ahead : callable, optional
        While this is true, every item is started before the item before it is computed, so that something always goes
        on in the background.
    synchronous : bool
        Run everything in the calling thread, for debugging.
    """
    if synchronous:
        for item in _started(load, start, ahead):
            compute(item)
            write(item)
        return
    source: _Prefetch[T] = _Prefetch(load)
    sink: _Sink[T] = _Sink(write)
    try:
        for item in _started(source, start, ahead):
            compute(item)
            sink.put(item)
        sink.finish()
    except BaseException as problem:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        source.stop(deadline)
        sink.finish(deadline if isinstance(problem, KeyboardInterrupt) else None)
        raise
    sink.raise_error()


def _started(items: Iterable[T], start: Callable[[T], None], ahead: Callable[[], bool]) -> Iterator[T]:
    """The items after `start`; while `ahead` each one when the next one has been started."""
    waiting: list[T] = []
    try:
        for item in items:
            start(item)
            waiting.append(item)
            while len(waiting) > ahead():
                yield waiting.pop(0)
    except Exception:
        yield from waiting  # what was started before the failure is still to be written
        raise
    yield from waiting


def stages_running() -> bool:
    """Whether a thread of a pipeline that has failed or was interrupted has not come to its end."""
    return any(thread.name.startswith(THREAD_PREFIX) for thread in threading.enumerate())


class _Prefetch(Generic[T]):
    """Iterates over items in a thread that stays one item ahead."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = items
        self._queue: queue.Queue = queue.Queue(maxsize=1)
        self._stopping = threading.Event()
        self._taken = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"{THREAD_PREFIX}loader", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for item in self._items:
                self._put(item)
                # Items are large: the next one is made only when this one has been taken.
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

    def __iter__(self) -> Iterator[T]:
        while (item := self._queue.get()) is not _END:
            self._taken.release()
            yield item
        self._thread.join()
        if self._error is not None:
            raise self._error

    def stop(self, deadline: float) -> None:
        self._stopping.set()
        self._thread.join(_seconds_until(deadline))


class _Sink(Generic[T]):
    """Hands items to a function in a thread, in order."""

    def __init__(self, consume: Callable[[T], None]) -> None:
        self._consume = consume
        self._queue: queue.Queue = queue.Queue(maxsize=1)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"{THREAD_PREFIX}writer", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (item := self._queue.get()) is not _END:
            if self._error is None:
                try:
                    self._consume(item)
                except BaseException as error:
                    self._error = error

    def put(self, item: T) -> None:
        self.raise_error()
        self._queue.put(item)

    def finish(self, deadline: float | None = None) -> None:
        """Write what has been put, then end; give up at the deadline. May be called twice."""
        try:
            self._queue.put(_END, timeout=_seconds_until(deadline))
        except queue.Full:
            return
        self._thread.join(_seconds_until(deadline))

    def raise_error(self) -> None:
        if self._error is not None:
            raise self._error


def _seconds_until(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)
