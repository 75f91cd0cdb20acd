"""Services of a file system that not every one has, or lets everybody use; results do not depend on them."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from f5py.messages import console

#: What file systems say that do not know of disks, or leave them to others.
_NO_SUCH_SERVICE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EACCES, errno.EROFS)


def to_disk(descriptor: int) -> None:
    """Let what has been written to an open file, or the names in an open folder, reach the disk, where that can be.

    Raises `OSError` if the disk has failed, or is full.
    """
    try:
        os.fsync(descriptor)
    except OSError as problem:
        if problem.errno not in _NO_SUCH_SERVICE:
            raise


def free_bytes(folder: str | os.PathLike[str]) -> int | None:
    """Return the free space where a folder is; None if the system does not tell."""
    with suppress(OSError):
        return shutil.disk_usage(folder).free
    return None


def remove_folder(folder: str | os.PathLike[str]) -> None:
    """Remove a folder of temporary files with all that it has; what cannot be removed is told."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as problem:
        shutil.rmtree(folder, ignore_errors=True)
        if os.path.lexists(folder):
            console.warning(
                "output", f"{folder}: cannot be removed ({problem.strerror}), and is of no use any more; remove it"
            )


@contextmanager
def temporary_folder(prefix: str, beside: str | os.PathLike[str] | None = None) -> Iterator[str]:
    """Give a new folder, in the folder for temporary files or another one, that goes at the end.

    Raises `OSError` if it cannot be made.
    """
    folder = tempfile.mkdtemp(prefix=prefix, dir=beside)
    try:
        yield folder
    finally:
        remove_folder(folder)
