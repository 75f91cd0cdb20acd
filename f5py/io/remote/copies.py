"""Cache of whole copies of remote files."""

import errno
import hashlib
import os
import secrets
from contextlib import suppress
from typing import Any

from f5py.errors import InputFileError, OutputFileError, UsageError
from f5py.io.remote.urls import disk_full_error, file_system, identity, reading, redact_url

#: Environment variable with the size limit.
LIMIT_VARIABLE = "F5PY_REMOTE_CACHE"
_LIMIT = 64 << 30
#: Errors of file systems without hard links.
_NO_LINKS = (errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def limit() -> int:
    """Return the cache's size limit in bytes; raise `UsageError` for a malformed environment variable."""
    given = os.environ.get(LIMIT_VARIABLE, "")
    text = given.strip().upper().removesuffix("B")
    if not text:
        return _LIMIT
    number, unit = (text[:-1], text[-1]) if text[-1] in _UNITS else (text, "")
    if not number.isdecimal() or int(number) == 0:
        raise UsageError(f"{LIMIT_VARIABLE}={given}: give a number of bytes such as 20G")
    return int(number) * _UNITS[unit]


def copy_into(folder: str, url: str, about: dict[str, Any], path: str) -> None:
    """Make `path` a copy of a remote file, through the cache on the same local disk.

    `about` is the description by the file system. Raises `InputFileError` if the file cannot be read or exceeds the
    limit, `OutputFileError` if the disk is full.
    """
    system, name = file_system(url)
    shown = redact_url(url)
    key = hashlib.sha256(f"{shown}\0{about['size']}\0{identity(about)}".encode()).hexdigest()[:32]
    kept = os.path.join(folder, key)
    if about["size"] > limit():
        raise InputFileError(
            f"{shown}: has {about['size']:,} bytes, and {limit():,} may be kept; set {LIMIT_VARIABLE} to more"
        )
    try:
        os.makedirs(folder, exist_ok=True)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not _has_linked(kept, path):
            _make_room(folder, limit() - about["size"])
            new = f"{kept}.{secrets.token_hex(8)}"
            try:
                with reading(url):
                    _download(system, name, new)
                if os.path.getsize(new) != about["size"]:
                    raise InputFileError(f"{shown}: has changed while it was read; start again")
                try:
                    os.link(new, path)
                    os.rename(new, kept)
                except OSError as problem:
                    if problem.errno not in _NO_LINKS:
                        raise
                    os.rename(new, path)  # for this run only
            finally:
                with suppress(OSError):
                    os.unlink(new)
    except OSError as problem:
        raise disk_full_error(url, folder, problem) from None


def _download(system: Any, name: str, path: str) -> None:
    try:
        system.get_file(name, path)
    except OSError as problem:
        if problem.filename == path or problem.errno == errno.ENOSPC:  # of this machine
            raise OutputFileError(f"{path}: cannot write: {problem.strerror}") from None
        raise


def _has_linked(kept: str, path: str) -> bool:
    """Link a cached copy to `path`, if there is one."""
    try:
        os.link(kept, path)
    except FileNotFoundError:
        return False
    except OSError as problem:
        if problem.errno not in _NO_LINKS:
            raise
        return False
    with suppress(OSError):
        os.utime(kept)
    return True


def _make_room(folder: str, most: int) -> None:
    """Remove the least recently used copies until at most `most` bytes are cached."""
    found = []
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):
            about = entry.stat()
            found.append((about.st_mtime_ns, about.st_size, entry.path))
    size = sum(one[1] for one in found)
    for _, n_bytes, path in sorted(found):
        if size <= most:
            break
        with suppress(OSError):
            os.unlink(path)
            size -= n_bytes
