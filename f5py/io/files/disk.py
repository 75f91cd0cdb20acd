"""Optional services of file systems: syncing, free space, temporary folders."""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from f5py.messages import console

#: Errors of file systems without fsync.
_NO_SUCH_SERVICE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EACCES, errno.EROFS)


def sync_to_disk(descriptor: int) -> None:
    """Sync an open file or folder, if the file system can; raise `OSError` if the disk fails or is full."""
    try:
        os.fsync(descriptor)
    except OSError as problem:
        if problem.errno not in _NO_SUCH_SERVICE:
            raise


def free_bytes(folder: str | os.PathLike[str]) -> int | None:
    """Return the free space on a folder's file system, None if it is unknown."""
    with suppress(OSError):
        return shutil.disk_usage(folder).free
    return None


def remove_folder(folder: str | os.PathLike[str]) -> None:
    """Remove a temporary folder; warn if it cannot be removed."""
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
    """Create a folder, by default in the system's temporary one, and remove it at the end.

    Folders with the same prefix from killed processes are removed. Raises `OSError` if it cannot be created.
    """
    where = os.fspath(beside or tempfile.gettempdir())
    for name in os.listdir(where):
        if name.startswith(prefix):
            _remove_if_left(os.path.join(where, name))
    hidden = tempfile.mkdtemp(prefix=f".{prefix}", dir=where)  # until it is locked
    lock = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with suppress(OSError):  # file systems without locks
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    folder = os.path.join(where, os.path.basename(hidden)[1:])
    os.rename(hidden, folder)
    try:
        yield folder
    finally:
        remove_folder(folder)
        os.close(lock)


def _remove_if_left(folder: str) -> None:
    """Remove a temporary folder of this user if its process has ended."""
    with suppress(OSError):
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(lock).st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
        finally:
            os.close(lock)


@contextmanager
def working_folder(path: str | os.PathLike[str]) -> Iterator[None]:
    """Work in a folder within the block, as `contextlib.chdir`, which Python 3.10 lacks."""
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)
