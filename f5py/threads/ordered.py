"""Threads that work on portions, whose results are taken in the order of the portions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class OrderedWork(Generic[P, T]):
    """Threads that work on portions, of which a few wait at any time; results are taken in order.

    Parameters
    ----------
    work : callable
        Makes the result of a portion, in whatever form `add` is given that; is called in the threads.
    take : callable of one result
        Called by `add` and `finish` in their callers' thread.
    name : str
        What the threads' names begin with.
    n_waiting : int, optional
        Maximum number of portions that are worked on or wait. By default each thread always finds another one.
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
        """Let a portion be worked on; if many are waiting, the result of the first is taken before."""
        if len(self._jobs) >= self._n_waiting:
            self._take_first()
        self._jobs.append(self._pool.submit(self._work, *portion, **named))

    def finish(self) -> None:
        """Take the results of all portions."""
        while self._jobs:
            self._take_first()

    def close(self) -> None:
        """End the threads; results that have not been taken are dropped."""
        self._pool.shutdown(cancel_futures=True)

    def _take_first(self) -> None:
        result = self._jobs[0].result()  # an interrupt of the wait must not lose the portion
        self._jobs.popleft()
        self._take(result)
