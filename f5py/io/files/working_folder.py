"""Change of the working folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def working_folder(path: str | os.PathLike[str]) -> Iterator[None]:
    """Work in a folder within the block, as `contextlib.chdir`, which Python 3.10 lacks."""
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)
