"""Work that is done ahead of who takes it, on several portions at the same time, and handed out in order."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import Any, TypeVar

P = TypeVar("P")
T = TypeVar("T")


class _Task:
    """A portion, and what becomes of it."""

    def __init__(self, portion: Any) -> None:
        self.portion = portion
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = threading.Event()

    def take(self) -> Any:
        """The result, or the error that came instead."""
        if self.error is not None:
            raise self.error
        return self.result


def worked_ahead(portions: Iterator[P], work: Callable[[P], T], n_threads: int, name: str) -> Generator[T, None, None]:
    """Yield ``work(portion)`` of every portion, in order; up to `n_threads` of them are worked on at the same time.

    Portions are taken from their iterator in the caller's thread, one after the other. No more than `n_threads` results
    are there or being made at any time, the one that has been yielded last included until the next one is asked for.

    Parameters
    ----------
    portions : iterator
    work : callable of a portion
        Called in threads of its own.
    n_threads : int
        At least 1.
    name : str
        What the threads' names begin with.

    Raises
    ------
    Exception
        What `portions` or `work` has raised, after the results before it have been yielded.

    Notes
    -----
    The threads end with the generator, each after the portion that it has. They do not keep the process from ending.
    """
    tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
    ahead: deque[_Task] = deque()
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

    def add_next() -> bool:
        nonlocal error
        try:
            task = _Task(next(portions))
        except StopIteration:
            return False
        except Exception as problem:
            error = problem
            return False
        if len(threads) < n_threads:
            threads.append(threading.Thread(target=run, name=f"{name}-{len(threads)}", daemon=True))
            threads[-1].start()
        ahead.append(task)
        tasks.put(task)
        return True

    has_more = True
    try:
        while True:
            while has_more and len(ahead) < n_threads:
                has_more = add_next()
            if not ahead:
                break
            ahead[0].is_done.wait()
            yield ahead.popleft().take()  # not kept here: results are large
        if error is not None:
            raise error
    finally:
        with suppress(queue.Empty):
            while True:  # what no thread has begun is not wanted any more
                tasks.get_nowait()
        for _ in threads:
            tasks.put(None)
        for thread in threads:
            thread.join()
