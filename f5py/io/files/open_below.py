"""Access to files below an untrusted folder: no links are followed, only regular files are opened."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from f5py.errors import InputFileError


def open_below(folder: Path | str, *names: str) -> int:
    """Open a regular file below a folder; return its descriptor.

    The names are those of nested folders, and the file's; the first folder may be a link. Raises `OSError` if the file
    cannot be opened, is not a regular one, or a link is on the way.
    """
    if any(name in ("", ".", "..") or "/" in name or "\0" in name for name in names):
        raise OSError(errno.EINVAL, "is not the name of a file in a folder")
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names[:-1]:
            below = _open_at(name, os.O_RDONLY | os.O_DIRECTORY, at)
            os.close(at)
            at = below
        # opening a pipe would block
        descriptor = _open_at(names[-1], os.O_RDONLY | os.O_NONBLOCK, at)
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is not a regular file")
    return descriptor


def read_below(folder: Path | str, *names: str, most: int) -> bytes:
    """Read a file below a folder (see `open_below`); raise `OSError` if it exceeds `most` bytes."""
    with open(open_below(folder, *names), "rb") as file:
        if os.fstat(file.fileno()).st_size > most:
            raise OSError(errno.EFBIG, f"is longer than {most:,} bytes")
        return file.read(most)


def check_own_folder(folder: Path, name: str) -> None:
    """Raise `InputFileError` if `name` in a folder exists and is not a folder."""
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.lstat(folder / name).st_mode):
            raise InputFileError(f"{folder / name}: is a link or a file, where f5py makes a folder; remove it")


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder and not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _open_at(name: str, flags: int, at: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=at)
    except OSError as problem:
        if _is_link(name, at):
            raise OSError(problem.errno, "is a link, which is not followed") from None
        raise


def _is_link(name: str, at: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
    except OSError:
        return False
