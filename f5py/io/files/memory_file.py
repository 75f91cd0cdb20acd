"""In-memory files for libraries that need a file."""

import os
import tempfile
from contextlib import suppress
from typing import BinaryIO


def memory_descriptor(name: str) -> int:
    """Open an in-memory file, or else an unnamed temporary one; return its descriptor."""
    if hasattr(os, "memfd_create"):
        with suppress(OSError):  # kernels and sandboxes may refuse it
            return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def memory_file(name: str, buffering: int = -1) -> BinaryIO:
    """Open an in-memory file for reading and writing."""
    return open(memory_descriptor(name), "w+b", buffering)
