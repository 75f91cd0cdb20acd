"""Files that can be made again, and their folders: compiled code, and indices that cannot stand beside their files."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKSUM_SIZE = hashlib.sha256().digest_size


def cache_folder() -> str:
    """Choose the user's cache folder or, if none can be written, a private one in the folder for temporary files.

    So it is for a user without a home, and in containers, whose user often has ``/`` or another's folder as home.

    What the environment says (``XDG_CACHE_HOME``) is obeyed, and told to the libraries that are asked later.
    """
    if not os.environ.get("XDG_CACHE_HOME"):
        home = os.path.expanduser("~")
        if home != "~" and os.path.isabs(home) and _can_be_written(folder := os.path.join(home, ".cache")):
            return folder
        os.environ["XDG_CACHE_HOME"] = temporary_cache_folder()
    return os.environ["XDG_CACHE_HOME"]


def is_trusted(folder: str) -> bool:
    """Return whether nobody writes to a folder but this user, or the owner of the package, whose code is run anyway.

    The latter makes the folder of an image of a container.
    """
    try:
        about = os.lstat(folder)
    except OSError:
        return False
    owners = os.geteuid(), os.stat(_PACKAGE).st_uid
    return stat.S_ISDIR(about.st_mode) and about.st_uid in owners and not about.st_mode & 0o022


def with_checksum(code: bytes) -> bytes:
    """Return what is kept of compiled code: what damaged code does cannot be foreseen."""
    return hashlib.sha256(code).digest() + code


def without_checksum(content: bytes) -> bytes | None:
    """Return the code of what `with_checksum` has made; None if it is damaged."""
    code = content[_CHECKSUM_SIZE:]
    return code if hashlib.sha256(code).digest() == content[:_CHECKSUM_SIZE] else None


def kept(path: str) -> bytes | None:
    """Read the code that `keep` has put into a file, unless there is none or it is damaged."""
    try:
        if not is_trusted(os.path.dirname(path)):
            return None
        with open(path, "rb") as file:
            return without_checksum(file.read())
    except OSError:
        return None


def keep(path: str, code: bytes) -> None:
    """Put compiled code into a file, which appears when it is complete. Raises `OSError`."""
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(dir=os.path.dirname(path))
    try:
        with open(descriptor, "wb") as file:
            file.write(with_checksum(code))
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise


def _can_be_written(folder: str) -> bool:
    """Return whether files can be made in a folder, which is made first if it is not there."""
    while not os.path.lexists(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def temporary_cache_folder() -> str:
    """Make a folder that only this user can read and write; the same one at every run, if it is really this user's."""
    path = os.path.join(tempfile.gettempdir(), f"f5py-cache-{os.geteuid()}")
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    return path if is_trusted(path) and os.access(path, os.W_OK) else tempfile.mkdtemp(prefix="f5py-cache-")
