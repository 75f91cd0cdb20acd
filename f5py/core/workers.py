"""A pool of threads that run a kernel for one read after another, taken from a shared counter."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from f5py.errors import F5pyError


class WorkerPool:
    """Threads for kernels that release the GIL.

    Parameters
    ----------
    n_threads : int
        With 1, everything runs in the calling thread.

    Raises
    ------
    F5pyError
        If the system does not allow so many threads.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"f5py-worker-{i}", daemon=True) for i in range(n_threads - 1)
        ]
        for started, thread in enumerate(self._threads):
            try:
                thread.start()
            except RuntimeError:
                self._threads = self._threads[:started]
                self.close()
                raise F5pyError(f"cannot start {n_threads} worker threads; use a smaller -t") from None

    def run(self, function: Callable[[int], None], reads: Iterable[int]) -> None:
        """Call ``function(read)`` for every element of `reads`, in this order but concurrently; wait for all.

        The first exception is raised again here, after the reads in progress have ended. An interrupt of the wait
        does not wait for them.
        """
        job = _Job(function, list(reads), len(self._threads))
        for _ in self._threads:
            self._jobs.put(job)
        job.work()
        job.wait()

    def close(self) -> None:
        """End the threads."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job.work()
            finally:
                job.helpers_done.release()


class _Job:
    def __init__(self, function: Callable[[int], None], reads: list[int], n_helpers: int) -> None:
        self._function = function
        self._reads = reads
        self._counter = itertools.count()
        self._n_helpers = n_helpers
        self._error: BaseException | None = None
        self.helpers_done = threading.Semaphore(0)

    def work(self) -> None:
        """Take reads until there are none left or one has failed."""
        n_reads = len(self._reads)
        try:
            while self._error is None and (i := next(self._counter)) < n_reads:
                self._function(self._reads[i])
        except BaseException as error:
            self._error = error

    def wait(self) -> None:
        for _ in range(self._n_helpers):
            self.helpers_done.acquire()
        if self._error is not None:
            raise self._error


def longest_first(work: NDArray, wanted: NDArray[np.bool_]) -> list[int]:
    """Indices of the wanted reads, those with most work first, so that no long read is left for the end."""
    reads = np.flatnonzero(wanted)
    return reads[np.argsort(-work[reads], kind="stable")].tolist()
