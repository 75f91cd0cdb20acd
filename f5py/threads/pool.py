"""Worker threads shared by all batches in flight.

A stage is one compiled function with a batch's arrays and its reads. Every free worker calls it; inside, without the
GIL, they claim reads from a shared counter until none is left (see `f5py.jit.work_queue`). A returning worker joins
another stage with unclaimed reads, of the oldest batch first: so the last long read of a stage does not idle the other
threads. Idle threads also join stages that already have their share of threads. Workers wake each other one by one
while unclaimed work exists: short stages do not cost the interpreter as many wake-ups as there are threads.
"""

from __future__ import annotations

import ctypes
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np
from numpy.typing import NDArray

from f5py.errors import F5pyError

#: Index beyond every list of reads.
_NO_MORE = 1 << 62
#: Heaps that all threads share. Else each thread gets one of its own, in which stays what it has freed: with 16 threads
#: that is a fifth of a run's memory. Only the first one can keep large arrays: the others give them back to the system.
_N_HEAPS = 1
_M_ARENA_MAX = -8  # malloc.h of glibc
#: Freed memory is kept up to this size, and arrays below the other one are made of it: glibc comes to these limits by
#: itself, unless it is told others.
_M_TRIM_THRESHOLD, _TRIM_BYTES = -1, 64 << 20
_M_MMAP_THRESHOLD, _MMAP_BYTES = -3, 32 << 20
_NEVER = (1 << 31) - 1
#: During a run arrays from this size on have memory of their own, which goes back to the system with them. Between them
#: those of the heap would leave gaps that the next ones, a little larger, do not fit into: a third of the heap.
_OWN_BYTES = 16 << 20

#: How long threads that were told to stop are waited for.
_PATIENCE_SECONDS = 0.3
#: Up to this number of threads two batches are computed at the same time, with more of them three or more: while the
#: last reads of one are at work, or it is in the hands of a single thread, the others keep all threads busy.
FEW_THREADS = 4


class BorrowedPool:
    """Borrowed threads while available, else own ones, started on first use."""

    def __init__(self, n_threads: int) -> None:
        self._n_threads = n_threads
        self._lent: WorkerPool | None = None
        self._own: WorkerPool | None = None
        self._lock = threading.Lock()

    def lend(self, pool: WorkerPool) -> None:
        """Use these threads instead of own ones, which end."""
        self._lent = pool
        self._end_own()

    def workers(self) -> WorkerPool:
        """Return the threads; thread-safe."""
        if self._lent is not None and not self._lent.is_closed:
            return self._lent
        with self._lock:
            if self._own is None:
                self._own = WorkerPool(self._n_threads)
            return self._own

    def close(self) -> None:
        """End own threads, and return borrowed ones. May be called twice."""
        self._lent = None
        self._end_own()

    def _end_own(self) -> None:
        with self._lock:
            if self._own is not None:
                self._own.close()
                self._own = None


def part_of_threads(n_threads: int, n_parts: int) -> int:
    """Divide the threads into `n_parts` equal parts, unless they are few."""
    return n_threads if n_threads <= FEW_THREADS else -(-n_threads // n_parts)


class WorkerPool:
    """Threads for kernels that release the GIL. Raises `F5pyError` if the system refuses so many threads.

    At most `most_per_call`, by default all, are woken for a call while others are in progress: calls of milliseconds
    cost more wake-ups than they gain. Idle threads that return from other calls join as well.
    """

    def __init__(self, n_threads: int, most_per_call: int | None = None) -> None:
        share_heap()
        self.n_threads = n_threads
        self._most_per_call = n_threads if most_per_call is None else most_per_call
        self._jobs: list[_Job] = []  # that may have reads for more threads
        self._n_under_way = 0  # calls that have come and are not done
        self._n_idle = 0  # threads that wait to be woken, and have not been yet
        self._lock = threading.Lock()  # of all these
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()  # something for each idle thread that is woken
        self._closing = False
        self._stopped = False
        self._threads: list[threading.Thread] = []
        for i in range(n_threads):
            thread = threading.Thread(target=self._work, name=f"f5py-worker-{i}", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                self.close()
                raise F5pyError(f"cannot start {n_threads} worker threads; use a smaller -t") from None
            self._threads.append(thread)

    def run(
        self, kernel: Callable[..., object], reads: NDArray[np.int64], *arguments: object, order: int = -1
    ) -> float:
        """Call ``kernel(queue, reads, *arguments)`` in all threads until `reads` are done. Return the thread seconds.

        The kernel handles ``reads[i]`` for every i that it claims by `f5py.jit.work_queue.claimed_indices`. Of
        concurrent calls those of the lowest `order` come first: the number of the batch, by default before all batches.
        Thread-safe. Raises the first exception of the kernel, after the reads in progress.
        """
        reads = np.ascontiguousarray(reads, np.int64)
        next_index = np.zeros(1, np.int64)
        return self._run(_Job(order, next_index, len(reads), lambda: kernel(next_index, reads, *arguments)))

    def stop(self) -> None:
        """Cancel all calls after the reads in progress."""
        with self._lock:
            self._stopped = True
            for job in self._jobs:
                job.next_index[0] = _NO_MORE

    @property
    def is_closed(self) -> bool:
        """Whether the threads have ended, or are about to."""
        return self._closing

    def close(self) -> None:
        """End the threads; no call may be running, except after `stop`: its long reads are not waited for."""
        with self._lock:
            self._closing = True
            self._wake(len(self._threads))
        deadline = time.monotonic() + _PATIENCE_SECONDS
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0) if self._stopped else None)
        self._threads = []

    def _run(self, job: _Job) -> float:
        if job.n_reads == 0:
            return 0.0
        with self._lock:
            if self._closing:
                raise RuntimeError("the worker threads have ended")
            if self._stopped:
                job.next_index[0] = _NO_MORE
            # more than there are reads would find nothing to do
            job.most_workers = min(job.n_reads, self._most_per_call if self._n_under_way else self.n_threads)
            self._n_under_way += 1
            at = len(self._jobs)
            while at and self._jobs[at - 1].order > job.order:
                at -= 1
            self._jobs.insert(at, job)
            self._wake(1)
        job.done.acquire()
        job.work = lambda: None  # workers have the job until the next one comes, and its arrays are large
        if job.error is not None:
            raise job.error
        return job.seconds

    def _wake(self, n: int) -> None:
        """Wake up to `n` idle threads; the lock is held."""
        for _ in range(min(n, self._n_idle)):
            self._n_idle -= 1
            self._wakes.put(None)

    def _work(self) -> None:
        job = self._next_job(None, 0.0)
        while job is not None:
            started = time.perf_counter()
            try:
                job.work()
            except BaseException as error:
                job.error = job.error or error
                job.next_index[0] = _NO_MORE
            job = self._next_job(job, time.perf_counter() - started)

    def _next_job(self, done: _Job | None, seconds: float) -> _Job | None:
        """Return a job with its seconds, and wait for the next one; None at the end."""
        while True:
            with self._lock:
                is_awake = done is not None
                if done is not None:
                    self._come_back(done, seconds)
                    done = None
                wanting = [job for job in self._jobs if job.n_workers < job.most_workers]
                if wanting or (is_awake and self._jobs):
                    job = (wanting or self._jobs)[0]
                    job.n_workers += 1
                    if job.n_workers >= job.n_reads:
                        self._jobs.remove(job)
                    if len(wanting) > 1 or (wanting and job.n_workers < job.most_workers):
                        self._wake(1)
                    return job
                if self._closing:
                    return None
                self._n_idle += 1
            self._wakes.get()

    def _come_back(self, job: _Job, seconds: float) -> None:
        job.seconds += seconds
        job.n_workers -= 1
        if job in self._jobs:  # the first one to come back: nothing is left to be begun
            self._jobs.remove(job)
        if job.n_workers == 0:
            self._n_under_way -= 1
            job.done.release()


class CallingThread:
    """A `WorkerPool` of the calling thread, for work shorter than a wake-up."""

    n_threads = 1

    def run(
        self, kernel: Callable[..., object], reads: NDArray[np.int64], *arguments: object, order: int = -1
    ) -> float:
        """Call the kernel, even without reads, so that it is compiled."""
        started = time.perf_counter()
        kernel(np.zeros(1, np.int64), np.ascontiguousarray(reads, np.int64), *arguments)
        return time.perf_counter() - started


def threads_for(pool: WorkerPool, n: int, few: int) -> WorkerPool | CallingThread:
    """Return the pool, or the calling thread for at most `few` items."""
    return pool if n > few else CallingThread()


class _Job:
    """A call of `WorkerPool.run`."""

    def __init__(self, order: int, next_index: NDArray[np.int64], n_reads: int, work: Callable[[], object]) -> None:
        self.order = order
        self.next_index = next_index
        self.n_reads = n_reads
        self.work = work
        self.most_workers = 0
        self.n_workers = 0
        self.seconds = 0.0
        self.error: BaseException | None = None
        self.done = threading.Lock()  # free when it is
        self.done.acquire()


def longest_first(work: NDArray, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Sort the wanted reads by descending work."""
    reads = np.flatnonzero(wanted)
    return reads[np.argsort(-work[reads], kind="stable")]


def share_heap() -> None:
    """Let all threads share one heap with glibc; call it before threads are started."""
    if "MALLOC_ARENA_MAX" not in os.environ:
        _set_malloc(_M_ARENA_MAX, _N_HEAPS)


def keep_freed_memory() -> None:
    """Let glibc keep freed memory, in processes started with other settings.

    Allocating every batch from the system would take a fifth of the time.
    """
    _set_malloc(_M_TRIM_THRESHOLD, _TRIM_BYTES)
    _set_malloc(_M_MMAP_THRESHOLD, _MMAP_BYTES)


class _KeptMemory:
    """Let glibc keep freed memory while any context is active, except for the largest arrays.

    So most arrays of a batch reuse memory of earlier ones, instead of faulting in pages for every batch.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                _set_malloc(_M_MMAP_THRESHOLD, _OWN_BYTES)
                _set_malloc(_M_TRIM_THRESHOLD, _NEVER)
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    keep_freed_memory()
                    with suppress(AttributeError, OSError):
                        ctypes.CDLL(None).malloc_trim(0)


#: A context in which memory is kept; for a run.
kept_memory = _KeptMemory()


def _set_malloc(what: int, value: int) -> None:
    with suppress(AttributeError, OSError, TypeError):  # another library, or another system
        ctypes.CDLL(None).mallopt(what, value)
