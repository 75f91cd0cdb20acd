"""Tests that look at the machine's named shared memory, and those that put something there, take turns."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path

from .patience import comes_true

FOLDER = "/dev/shm"


@contextmanager
def to_oneself() -> Iterator[None]:
    """Wait until no other test process is in such a block."""
    with (Path(tempfile.gettempdir()) / f"f5py-tests-{os.getuid()}-shared-memory.lock").open("w") as lock:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
        yield


def named() -> Set[str]:
    return set(os.listdir(FOLDER)) if os.path.isdir(FOLDER) else set()


def left_since(before: Set[str]) -> Set[str]:
    """Names that came and stay. What other programs of the machine put there meanwhile goes, if one waits."""
    comes_true(lambda: named() <= before)
    return named() - before
