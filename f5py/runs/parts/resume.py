"""Folders of parts beside outputs, kept for resuming or temporary."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from f5py.errors import OutputFileError, UsageError
from f5py.io.files.atomic_write import is_special, temporary_name
from f5py.io.files.disk import remove_folder, temporary_folder

_ENDING = ".f5py-parts"


def folder_beside(output: str | None, advice: str) -> str:
    """Return the folder for ``--resume`` beside an output.

    Raises `UsageError` with `advice` if the output is not a regular file; ``-`` and None are standard output.
    """
    if output is None or output == "-":
        raise UsageError(f"--resume: the results go to standard output; {advice}")
    if is_special(output):
        raise UsageError(f"--resume: {output} is a device or a pipe; {advice}")
    return f"{output}{_ENDING}"


@contextmanager
def unfinished_folder(output: str | None) -> Iterator[str]:
    """Create a temporary folder beside an output, or anywhere for None; also remove one left by a killed run.

    Raises `OutputFileError` if it cannot be created, or another run is writing the output.
    """
    if output is None:
        with temporary_folder("f5py-parts-") as folder:
            yield folder
        return
    path = f"{temporary_name(os.path.realpath(output))}{_ENDING}"
    try:
        with suppress(FileExistsError):
            os.mkdir(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as problem:
        advice = "; make its folder first" if isinstance(problem, FileNotFoundError) else ""
        raise OutputFileError(f"{output}: cannot write: {problem.strerror}{advice}") from None
    try:
        with suppress(OSError):  # where there are no locks, two runs are not kept apart
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OutputFileError(f"{output}: another run is writing to it; give another name") from None
        try:
            remove_folder(folder := os.path.join(path, "run"))
            yield folder
        finally:
            remove_folder(path)
    finally:
        os.close(descriptor)
