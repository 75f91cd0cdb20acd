"""Ordered prefetching with several threads."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import Any, TypeVar

P = TypeVar("P")
T = TypeVar("T")


class _Task:
    """A portion and its result."""

    def __init__(self, portion: Any) -> None:
        self.portion = portion
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = threading.Event()

    def take(self) -> Any:
        """Remove and return the result, or raise its exception."""
        if self.error is not None:
            raise self.error
        result, self.result = self.result, None
        return result


def prefetch_ordered(
    portions: Iterator[P], work: Callable[[P], T], n_threads: int, name: str
) -> Generator[T, None, None]:
    """Yield ``work(portion)`` of every portion, in order, with up to `n_threads` in progress.

    A further thread consumes `portions`, and closes a generator. At most `n_threads` results exist or are in progress,
    including the last one yielded, and one more portion is read ahead. Exceptions of `portions` or `work` are raised
    after the results before them. The daemon threads end with the generator, each after its current portion.

    Parameters
    ----------
    name : str
        Prefix of the threads' names.
    """
    tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
    ahead: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
    room = threading.Semaphore(n_threads)
    stopping = threading.Event()
    threads: list[threading.Thread] = []
    error: BaseException | None = None

    def run() -> None:
        while (task := tasks.get()) is not None:
            try:
                task.result = work(task.portion)
            except BaseException as problem:
                task.error = problem
            task.portion = None
            task.is_done.set()
            del task

    def feed() -> None:
        nonlocal error
        try:
            while not stopping.is_set():
                task = _Task(next(portions))  # before there is room: taking it may last, too
                room.acquire()
                if stopping.is_set():
                    break
                if len(threads) < n_threads:
                    threads.append(threading.Thread(target=run, name=f"{name}-{len(threads)}", daemon=True))
                    threads[-1].start()
                ahead.put(task)
                tasks.put(task)
                del task
        except StopIteration:
            pass
        except BaseException as problem:
            error = problem
        finally:
            ahead.put(None)
            if isinstance(portions, Generator):
                portions.close()

    feeder = threading.Thread(target=feed, name=f"{name}-feeder", daemon=True)
    feeder.start()
    try:
        while (task := ahead.get()) is not None:
            task.is_done.wait()
            yield task.take()
            room.release()
        if error is not None:
            raise error
    finally:
        stopping.set()
        room.release()
        feeder.join()
        with suppress(queue.Empty):
            while True:  # what no thread has begun is not wanted any more
                tasks.get_nowait()
        for _ in threads:
            tasks.put(None)
        for thread in threads:
            thread.join()
