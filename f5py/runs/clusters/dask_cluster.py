"""Dask cluster for the parts of a plan, started in the background.

Its workers have much to import. The process that they are forked from is started first of all, so this module imports
little before that.
"""

from __future__ import annotations

import importlib.util
import logging
import multiprocessing
import os
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from f5py.errors import F5pyError, unavailable
from f5py.options.cores import usable_cores

#: Modules that workers take long to import, besides that of their command.
_OF_WORKERS = "distributed", "f5py.cli", "f5py.jit.kernel", "f5py.runs.engines"


def begin_workers(module: str) -> None:
    """Start the fork server of a local cluster, which preloads imports while this process continues.

    `module` is that of the command.
    """
    if importlib.util.find_spec("distributed") is None:
        return
    from multiprocessing import forkserver

    multiprocessing.set_forkserver_preload([*_OF_WORKERS, module])
    with suppress(OSError):  # the cluster will say what it cannot do
        forkserver.ensure_running()


def n_local_workers(options: Any) -> int:
    """Return the number of workers of a local cluster: as many as have cores for their threads."""
    return options.workers or max(usable_cores() // options.threads, 1)


class Cluster:
    """Cluster that is started, or connected to, in a thread; a context manager.

    Raises `MissingDependencyError` without dask.
    """

    def __init__(self) -> None:
        try:
            import distributed
        except ImportError as problem:
            raise unavailable(problem, "--engine dask needs", "distributed", "dask") from problem
        self.module: Any = distributed
        self._thread = ThreadPoolExecutor(1, "f5py-cluster")
        self._client: Future[Any] | None = None
        self._is_closing = False

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *problem: object) -> None:
        self.begin_to_close()
        self._thread.shutdown()

    def start(self, options: Any) -> None:
        """Begin to start the cluster, or to connect to the scheduler of `options`."""
        self._client = self._thread.submit(_client, options, self.module)

    def client(self) -> Any:
        """Wait for the cluster; return dask's client. Raises `F5pyError` if no scheduler answers."""
        assert self._client is not None
        return self._client.result()

    def begin_to_close(self) -> None:
        """Close the cluster in its thread, for which leaving the context waits."""
        if self._client is not None and not self._is_closing:
            self._is_closing = True
            self._thread.submit(_close, self._client)


def _close(client: Future[Any]) -> None:
    if client.exception() is None:
        client.result().close()


def _client(options: Any, distributed: Any) -> Any:
    """Connect to a running cluster, or start one on this machine that ends with the client."""
    if options.scheduler is None:
        client = _local_client(options, distributed)
        client.run(_prepare)
        return client
    try:
        if os.path.exists(options.scheduler):
            return distributed.Client(scheduler_file=options.scheduler)
        return distributed.Client(options.scheduler)
    except (OSError, ValueError, TimeoutError) as problem:
        raise F5pyError(f"--scheduler {options.scheduler}: no scheduler of dask answers there ({problem})") from None


def _local_client(options: Any, distributed: Any) -> Any:
    import dask

    # Nobody would see the profile, for which the stacks of all threads are looked at a hundred times a second.
    profile, method = "distributed.worker.profile.enabled", "distributed.worker.multiprocessing-method"
    with dask.config.set({profile: False, method: "forkserver"}):
        return distributed.Client(
            n_workers=n_local_workers(options), threads_per_worker=1, processes=True, memory_limit=0,
            # a server of its own at any port: a second cluster on the machine would warn of the usual one
            scheduler_kwargs={"dashboard": False, "dashboard_address": ":0"},
        )  # fmt: skip


def _prepare() -> None:
    """Initialize a worker."""
    # it would show a traceback if the cluster ends while it asks for news
    logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)
