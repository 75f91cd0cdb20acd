"""Whole copies of files that are named by URLs, kept for later runs as long as there is room for them."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from contextlib import suppress
from typing import Any

from f5py.errors import InputFileError, OutputFileError, UsageError
from f5py.io.remote.urls import cannot_be_kept, file_system, identity, reading, without_secrets

#: Names the number of bytes that may be kept.
LIMIT_VARIABLE = "F5PY_REMOTE_CACHE"
_LIMIT = 64 << 30
#: What file systems say that have no second names for files, or allow none.
_NO_LINKS = (errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def limit() -> int:
    """Choose how many bytes may be kept on the disk.

    Raises `UsageError` if the environment says something else than a number.
    """
    given = os.environ.get(LIMIT_VARIABLE, "")
    text = given.strip().upper().removesuffix("B")
    if not text:
        return _LIMIT
    number, unit = (text[:-1], text[-1]) if text[-1] in _UNITS else (text, "")
    if not number.isdecimal() or int(number) == 0:
        raise UsageError(f"{LIMIT_VARIABLE}={given}: give a number of bytes such as 20G")
    return int(number) * _UNITS[unit]


def copy_into(folder: str, url: str, about: dict[str, Any], path: str) -> None:
    """Let `path` be a copy of a file.

    Parameters
    ----------
    folder : str
        Where copies are kept, on the same file system as `path`.
    about : dict
        What the file system says of the file.

    Raises
    ------
    InputFileError
        The file cannot be read, or is larger than what may be kept.
    OutputFileError
        The disk is full.
    """
    system, name = file_system(url)
    shown = without_secrets(url)
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
        raise cannot_be_kept(url, folder, problem) from None


def _download(system: Any, name: str, path: str) -> None:
    try:
        system.get_file(name, path)
    except OSError as problem:
        if problem.filename == path or problem.errno == errno.ENOSPC:  # of this machine
            raise OutputFileError(f"{path}: cannot write: {problem.strerror}") from None
        raise


def _has_linked(kept: str, path: str) -> bool:
    """Give a copy that is kept another name, if there is one."""
    try:
        os.link(kept, path)
    except FileNotFoundError:
        return False
    except OSError as problem:
        if problem.errno not in _NO_LINKS:
            raise
        return False
    with suppress(OSError):
        os.utime(kept)  # what was used last goes last
    return True


def _make_room(folder: str, most: int) -> None:
    """Remove the copies that have not been used for the longest time, until no more than so many bytes are kept."""
    found = []
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):
            about = entry.stat()
            found.append((about.st_mtime_ns, about.st_size, entry.path))
    size = sum(one[1] for one in found)
    for _, n_bytes, path in sorted(found):
        if size <= most:
            break
        with suppress(OSError):  # another run has removed it, or nobody may
            os.unlink(path)
            size -= n_bytes
