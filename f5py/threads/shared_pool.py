"""Own worker threads, or a pool borrowed from the caller."""

from __future__ import annotations

import threading

from f5py.threads.pool import WorkerPool


class BorrowedPool:
    """Borrowed threads while available, else own ones, started on first use.

    Parameters
    ----------
    n_threads : int
        Number of own threads.
    """

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
