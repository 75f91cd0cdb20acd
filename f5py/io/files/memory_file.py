"""Files in memory, for libraries that want a file."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from typing import BinaryIO


def memory_descriptor(name: str) -> int:
    """Return the number of an open file in memory, or, where the system has or allows none, of one without a name.

    Raises `OSError` if there is no folder for temporary files either.

    Parameters
    ----------
    name : str
        What the system shows.
    """
    if hasattr(os, "memfd_create"):
        with suppress(OSError):  # kernels and sandboxes may refuse it
            return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def memory_file(name: str, buffering: int = -1) -> BinaryIO:
    """Open a file to be written and read; see `memory_descriptor`."""
    return open(memory_descriptor(name), "w+b", buffering)
