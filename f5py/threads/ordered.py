"""Threads with ordered results: prefetching, and a pool."""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Generic, ParamSpec, TypeVar

from f5py.threads.interrupts import wait_for_event

P = ParamSpec("P")
T = TypeVar("T")
Portion = TypeVar("Portion")


class JoinableThread:
    """Daemon thread that an interrupt of a join leaves intact."""

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
        # after an interrupted join CPython 3.11 takes the thread for dead
        if self._ended.wait(seconds_until(deadline)):
            self._thread.join()


def seconds_until(deadline: float | None) -> float | None:
    """Return the seconds left until a time of the monotonic clock; None for none."""
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)


class OrderedThreads(Generic[Portion, T]):
    """Threads that work on portions, each on one of its own, with results in order.

    One more thread consumes `portions`, and closes a generator. At most `n_threads` + `n_done` results exist or are in
    progress, the last one taken included; besides them `n_ahead` portions are consumed.
    """

    def __init__(
        self, portions: Iterable[Portion], work: Callable[[Portion], T], n_threads: int, name: str, n_done: int = 0,
        n_ahead: int = 1,
    ) -> None:  # fmt: skip
        self._portions, self._work = iter(portions), work
        self._tasks: queue.SimpleQueue[tuple[Portion, Future[T]] | None] = queue.SimpleQueue()
        self._in_flight: deque[Future[T]] = deque()
        self._room = threading.Semaphore(n_threads + n_done)
        self._lanes = threading.Semaphore(n_threads + n_ahead - 1)
        self._stopping, self._changed = threading.Event(), threading.Event()
        self._is_held = False  # a portion waits for a thread
        self._is_over = False
        self._error: BaseException | None = None
        self._threads = [JoinableThread(f"{name}-{i}", self._run) for i in range(n_threads)]
        self._feeder = JoinableThread(f"{name}-feeder", self._feed)

    def results(self, waiting: Callable[[bool], AbstractContextManager[None]] = lambda _: nullcontext()) -> Iterator[T]:
        """Yield the results, and raise exceptions of portions or work after the results before them.

        Waits are interruptible, and within the context that `waiting` returns: called with True if no thread is free.
        """
        while True:
            while not self._is_ready():
                self._changed.clear()
                with waiting(self._is_held or self._is_over):
                    if not self._is_ready():
                        wait_for_event(self._changed)
            if not self._in_flight:
                break
            results = [self._in_flight.popleft().result()]
            yield results.pop()  # nothing here keeps it
            self._room.release()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Let the threads end, each after its current portion."""
        self._stopping.set()
        self._room.release()
        self._lanes.release()
        with suppress(queue.Empty):
            while True:
                self._tasks.get_nowait()
        for _ in self._threads:
            self._tasks.put(None)

    def join(self, deadline: float | None = None) -> None:
        for thread in (self._feeder, *self._threads):
            thread.join(deadline)

    def _is_ready(self) -> bool:
        """Return whether the next result is there, or the end."""
        is_over = self._is_over  # before looking for what came until then
        return self._in_flight[0].done() if self._in_flight else is_over

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            portion, result = task
            try:
                result.set_result(self._work(portion))
            except BaseException as problem:
                result.set_exception(problem)
            self._lanes.release()
            self._changed.set()
            del task, portion, result

    def _feed(self) -> None:
        try:
            while not self._stopping.is_set():
                task = next(self._portions), Future[T]()  # before there is room: taking it may last, too
                if not self._lanes.acquire(blocking=False):
                    self._is_held = True
                    self._changed.set()
                    self._lanes.acquire()
                    self._is_held = False
                self._room.acquire()
                if self._stopping.is_set():
                    break
                self._in_flight.append(task[1])
                self._tasks.put(task)
                self._changed.set()
                del task
        except StopIteration:
            pass
        except BaseException as problem:
            self._error = problem
        finally:
            if isinstance(self._portions, Generator):
                self._portions.close()
            self._is_over = True
            self._changed.set()


def prefetch_ordered(
    portions: Iterable[Portion], work: Callable[[Portion], T], n_threads: int, name: str
) -> Generator[T, None, None]:
    """Yield ``work(portion)`` of every portion, in order; see `OrderedThreads`, which end with it."""
    threads = OrderedThreads(portions, work, n_threads, name)
    try:
        yield from threads.results()
    finally:
        threads.stop()
        threads.join()


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
