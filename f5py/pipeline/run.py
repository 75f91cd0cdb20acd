"""Load, compute and write at the same time, over bounded queues, in the order of the input."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_END = object()
_POLL_SECONDS = 0.1


def run_pipeline(
    load: Iterable[T], compute: Callable[[T], None], write: Callable[[T], None], synchronous: bool = False
) -> None:
    """Pass every item of `load` through `compute` and `write`.

    `load` runs in one thread, `compute` in the calling thread and `write` in another one, each at most one item ahead
    of the next. When a stage fails or is interrupted, the items before it are still written, in order, and its
    exception is raised here.

    Parameters
    ----------
    load : iterable
    compute, write : callables of one item
    synchronous : bool
        Run everything in the calling thread, for debugging.
    """
    if synchronous:
        for item in load:
            compute(item)
            write(item)
        return
    source: _Prefetch[T] = _Prefetch(load)
    sink: _Sink[T] = _Sink(write)
    try:
        for item in source:
            compute(item)
            sink.put(item)
    finally:
        source.stop()
        sink.finish()
    sink.raise_error()


class _Prefetch(Generic[T]):
    """Iterates over items in a thread that stays one item ahead."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = items
        self._queue: queue.Queue = queue.Queue(maxsize=1)
        self._stopping = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="f5py-loader", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for item in self._items:
                self._put(item)
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
            yield item
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(timeout=1.0)


class _Sink(Generic[T]):
    """Hands items to a function in a thread, in order."""

    def __init__(self, consume: Callable[[T], None]) -> None:
        self._consume = consume
        self._queue: queue.Queue = queue.Queue(maxsize=1)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="f5py-writer", daemon=True)
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

    def finish(self) -> None:
        """Write what has been put, then end."""
        self._queue.put(_END)
        self._thread.join()

    def raise_error(self) -> None:
        if self._error is not None:
            raise self._error
