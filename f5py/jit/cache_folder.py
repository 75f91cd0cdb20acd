"""Cache folders of the user, and checksummed files of compiled code."""

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKSUM_SIZE = hashlib.sha256().digest_size


def cache_folder() -> str:
    """Return the user's cache folder or, if none is writable, a private temporary one.

    This covers users without a home, as in containers. ``XDG_CACHE_HOME`` takes precedence, and is set to a temporary
    folder for other libraries.
    """
    if not os.environ.get("XDG_CACHE_HOME"):
        home = os.path.expanduser("~")
        if home != "~" and os.path.isabs(home) and _can_be_written(folder := os.path.join(home, ".cache")):
            return folder
        os.environ["XDG_CACHE_HOME"] = temporary_cache_folder()
    return os.environ["XDG_CACHE_HOME"]


def is_trusted(folder: str) -> bool:
    """Return whether only this user, or the owner of the package, can write to a folder.

    The package's owner makes the folder of a container image.
    """
    try:
        about = os.lstat(folder)
    except OSError:
        return False
    owners = os.geteuid(), os.stat(_PACKAGE).st_uid
    return stat.S_ISDIR(about.st_mode) and about.st_uid in owners and not about.st_mode & 0o022


def with_checksum(code: bytes) -> bytes:
    """Prepend a checksum to compiled code, as damaged code is dangerous."""
    return hashlib.sha256(code).digest() + code


def without_checksum(content: bytes) -> bytes | None:
    """Return the code from `with_checksum`; None if it is damaged."""
    code = content[_CHECKSUM_SIZE:]
    return code if hashlib.sha256(code).digest() == content[:_CHECKSUM_SIZE] else None


def load_cached(path: str) -> bytes | None:
    """Load code that `save_cached` has saved; None if it is missing or damaged."""
    try:
        if not is_trusted(os.path.dirname(path)):
            return None
        with open(path, "rb") as file:
            return without_checksum(file.read())
    except OSError:
        return None


def save_cached(path: str, code: bytes) -> None:
    """Save compiled code atomically; raise `OSError` if that fails."""
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
    """Return whether a folder, or its first existing parent, is writable."""
    while not os.path.lexists(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def temporary_cache_folder() -> str:
    """Return a private folder in the system's temporary one, the same in every run if it is safe."""
    path = os.path.join(tempfile.gettempdir(), f"f5py-cache-{os.geteuid()}")
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    return path if is_trusted(path) and os.access(path, os.W_OK) else tempfile.mkdtemp(prefix="f5py-cache-")
