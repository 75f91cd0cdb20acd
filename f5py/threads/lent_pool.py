"""Worker threads of who may be lent others."""

from __future__ import annotations

import threading

from f5py.threads.pool import WorkerPool


class LentPool:
    """Threads that are lent, as long as they are there, else own ones, which are started when they are needed.

    Parameters
    ----------
    n_threads : int
        Of the own ones.
    """

    def __init__(self, n_threads: int) -> None:
        self._n_threads = n_threads
        self._lent: WorkerPool | None = None
        self._own: WorkerPool | None = None
        self._lock = threading.Lock()

    def lend(self, pool: WorkerPool) -> None:
        """Work with these threads instead of own ones, which end."""
        self._lent = pool
        self._end_own()

    def workers(self) -> WorkerPool:
        """Return the threads. May be called in several threads."""
        if self._lent is not None and not self._lent.is_closed:
            return self._lent
        with self._lock:
            if self._own is None:
                self._own = WorkerPool(self._n_threads)
            return self._own

    def close(self) -> None:
        """End own threads, and do without lent ones. May be called twice."""
        self._lent = None
        self._end_own()

    def _end_own(self) -> None:
        with self._lock:
            if self._own is not None:
                self._own.close()
                self._own = None
