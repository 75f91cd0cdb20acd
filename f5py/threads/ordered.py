"""Threads with ordered results: prefetching, and a pool."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Portion = TypeVar("Portion")


def prefetch_ordered(
    portions: Iterator[Portion], work: Callable[[Portion], T], n_threads: int, name: str
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
    tasks: queue.SimpleQueue[tuple[Portion, Future[T]] | None] = queue.SimpleQueue()
    ahead: queue.SimpleQueue[Future[T] | None] = queue.SimpleQueue()
    room = threading.Semaphore(n_threads)
    stopping = threading.Event()
    threads: list[threading.Thread] = []
    error: BaseException | None = None

    def run() -> None:
        while (task := tasks.get()) is not None:
            portion, result = task
            try:
                result.set_result(work(portion))
            except BaseException as problem:
                result.set_exception(problem)
            del task, portion, result

    def feed() -> None:
        nonlocal error
        try:
            while not stopping.is_set():
                task = next(portions), Future[T]()  # before there is room: taking it may last, too
                room.acquire()
                if stopping.is_set():
                    break
                if len(threads) < n_threads:
                    threads.append(threading.Thread(target=run, name=f"{name}-{len(threads)}", daemon=True))
                    threads[-1].start()
                ahead.put(task[1])
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
        while (result := ahead.get()) is not None:
            results = [result.result()]
            del result
            yield results.pop()  # nothing here keeps it
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


class OrderedWork(Generic[P, T]):
    """Threads with a bounded queue of portions; results are consumed in order.

    `work` is called in the threads with the arguments of `add`, `take` with each result by the callers of `add` and
    `finish`. At most `n_waiting` portions, by default one more for each thread, are in progress or queued.
    """

    def __init__(
        self, n_threads: int, work: Callable[P, T], take: Callable[[T], object], name: str, n_waiting: int | None = None
    ) -> None:
        self._work = work
        self._take = take
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix=name)
        self._jobs: deque[Future[T]] = deque()
        self._n_waiting = n_waiting or 2 * n_threads + 2

    def add(self, *portion: P.args, **named: P.kwargs) -> None:
        """Queue a portion; consume the first result if the queue is full."""
        if len(self._jobs) >= self._n_waiting:
            self._take_first()
        self._jobs.append(self._pool.submit(self._work, *portion, **named))

    def finish(self) -> None:
        """Consume the results of all portions."""
        while self._jobs:
            self._take_first()

    def close(self) -> None:
        """End the threads; drop unconsumed results."""
        self._pool.shutdown(cancel_futures=True)

    def _take_first(self) -> None:
        result = self._jobs[0].result()  # an interrupt of the wait must not lose the portion
        self._jobs.popleft()
        self._take(result)
