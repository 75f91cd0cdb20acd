"""Lets one of several processes compile a kernel while the others wait for its code in the cache.

Processes that start together, such as the jobs of an array or the workers of a cluster, all find the cache empty at the
same time. Without this each of them would compile everything for itself.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

#: Then the other process is taken for stopped, and this one compiles too.
_PATIENCE_SECONDS = 60.0
_LOOK_EVERY = 0.02
_thread = threading.local()


def let_one_compile(kernel: Any, is_kept: Callable[[Any, Any], bool]) -> None:
    """Let a kernel that is not kept be compiled by one process at a time; the next one finds its code.

    Parameters
    ----------
    kernel : Dispatcher
        With a cache on the disk.
    is_kept : callable
        Whether the cache has code of a kernel for a signature.
    """
    compile_as_before = kernel.compile
    kept: set[Any] = set()  # so that only the first of many threads looks into the cache

    def compile_(signature: Any) -> Any:
        # within another compilation Numba's lock is held, and waiting for two locks could take for ever
        if getattr(_thread, "is_compiling", False):
            return compile_as_before(signature)
        if signature not in kept and is_kept(kernel, signature):
            kept.add(signature)
        # also what is kept may be compiled: if it is damaged
        with nullcontext() if signature in kept else _alone(f"{kernel._cache._cache_file._index_path}.lock"):
            _thread.is_compiling = True
            try:
                return compile_as_before(signature)
            finally:
                _thread.is_compiling = False

    kernel.compile = compile_


@contextmanager
def _alone(path: str) -> Iterator[None]:
    """Hold a lock that ends with the process; where there are no locks, or one is held for very long, go on without."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:  # then code cannot be kept there either
        yield
        return
    try:
        until = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < until:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_LOOK_EVERY)
            except OSError:  # a file system without locks
                break
        yield
    finally:
        os.close(descriptor)
