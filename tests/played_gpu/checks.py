"""Checks that played GPUs have passed, kept as those of real ones are, but no longer than the tests run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from f5py.compute.gpu import self_check


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """Keep in a folder that a played GPU computes what the CPU does; one with a fault is checked at every start."""

    def file_of(number: int, what: bytes) -> Path | None:
        if os.environ.get("F5PY_PLAYED_FAULT"):
            return None
        lanes = os.environ.get("F5PY_PLAYED_LANES", "")
        return folder / hashlib.sha256(b"%d %s " % (number, lanes.encode()) + what).hexdigest()

    with mock.patch.object(self_check, "_file_of", file_of):
        yield
