"""Services of a file system that not every one has, or lets everybody use; results do not depend on them."""

from __future__ import annotations

import errno
import fcntl
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

    Those of the same prefix that killed processes have left are removed. Raises `OSError` if it cannot be made.
    """
    where = os.fspath(beside or tempfile.gettempdir())
    for name in os.listdir(where):
        if name.startswith(prefix):
            _remove_if_left(os.path.join(where, name))
    folder, lock = _locked_folder(prefix, beside)
    try:
        yield folder
    finally:
        remove_folder(folder)
        if lock is not None:
            os.close(lock)


def _locked_folder(prefix: str, beside: str | os.PathLike[str] | None) -> tuple[str, int | None]:
    """Make a folder and lock it as long as this process lives; also return what has the lock, if it can be locked."""
    while True:
        folder = tempfile.mkdtemp(prefix=prefix, dir=beside)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another process takes it for a left one
            os.close(lock)
            continue
        except OSError:  # file systems without locks
            os.close(lock)
            return folder, None
        if os.path.isdir(folder):
            return folder, lock
        os.close(lock)


def _remove_if_left(folder: str) -> None:
    """Remove a folder of temporary files if it is this user's and the process that made it has ended."""
    with suppress(OSError):
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(lock).st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
        finally:
            os.close(lock)
