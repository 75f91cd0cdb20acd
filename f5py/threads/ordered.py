"""Thread pool with ordered results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class OrderedWork(Generic[P, T]):
    """Threads with a bounded queue of portions; results are consumed in order.

    Parameters
    ----------
    work : callable
        Called in the threads with the arguments of `add`.
    take : callable of one result
        Called by `add` and `finish` in their callers' thread.
    name : str
        Prefix of the threads' names.
    n_waiting : int, optional
        Most portions in progress or queued; by default one more for each thread.
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
