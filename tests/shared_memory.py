"""Tests that look at the machine's named shared memory, and those that put something there, take turns."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = "/dev/shm"


@contextmanager
def to_oneself() -> Iterator[None]:
    """Wait until no other test process is in such a block."""
    with (Path(tempfile.gettempdir()) / f"f5py-tests-{os.getuid()}-shared-memory.lock").open("w") as lock:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
        yield
