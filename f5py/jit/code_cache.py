"""Cache of compiled code: one private folder for exactly these sources.

Numba loads cached code with pickle, which can run anything, and checks only the kernel's own file. So the folder must
belong to this user, only writable by them, and a digest of all sources is in its name.
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from f5py.jit.cache_folder import cache_folder, is_trusted, temporary_cache_folder
from f5py.messages import console

_PACKAGE = Path(__file__).resolve().parents[1]
#: Settings of code generation; if unset, Numba reads ``.numba_config.yaml`` in the working folder, possibly malicious.
_SETTINGS = {"NUMBA_BOUNDSCHECK": "0", "NUMBA_CHROME_TRACE": "", "NUMBA_DISABLE_JIT": "0", "NUMBA_OPT": "3"}
#: Free space for a new cache, and for more code.
_NEW_CACHE_BYTES, _MORE_BYTES = 16 << 20, 1 << 20
_DAYS_UNUSED = 90


@cache
def code_folder() -> str | None:
    """Return the folder of compiled code, and set it for Numba, which must not have been imported.

    It is in the user's cache folder or ``NUMBA_CACHE_DIR``, or in the temporary folder if that is unsafe or not
    writable. None means that code cannot be cached.
    """
    os.environ.update(_SETTINGS | os.environ)
    os.environ["NUMBA_CACHE_LOCATOR_CLASSES"] = ""
    from f5py import __version__

    name = f"f5py-{__version__}-{_digest()}"
    wanted = os.environ.get("NUMBA_CACHE_DIR")
    if wanted is None:
        wanted = os.path.join(cache_folder(), "f5py", "code")
    elif os.path.basename(wanted).startswith(f"f5py-{__version__}-"):  # of the process that has started this one
        wanted = os.path.dirname(wanted)
    problem, source = "", None
    for make_place in (lambda: os.path.abspath(wanted), temporary_cache_folder):
        was_there = False
        try:
            folder = os.path.join(make_place(), name)
            was_there = is_trusted(folder)
            _make(folder, source)
        except OSError as failure:
            if was_there:
                source = source or folder
            if not was_there or failure.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                problem = problem or f"{failure.filename or wanted}: {failure.strerror or failure}"
            continue
        if problem:
            console.warning("accelerate", f"compiled code is kept in {folder} ({problem})")
        os.environ["NUMBA_CACHE_DIR"] = folder
        return folder
    console.warning(
        "accelerate",
        f"compiled code cannot be kept ({problem}), so every run compiles again; "
        "set NUMBA_CACHE_DIR to a folder that can be written",
    )
    os.environ["NUMBA_CACHE_DIR"] = ""
    return None


def _make(folder: str, source: str | None) -> None:
    """Create a private folder with space for code, perhaps copied from `source`, or check an existing one.

    Raises `OSError`.
    """
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    is_new = True
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        is_new = False
        if not is_trusted(folder):
            raise PermissionError(0, "others may write to it", folder) from None
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, _NEW_CACHE_BYTES if is_new else _MORE_BYTES)
    except OSError:
        if is_new:
            os.rmdir(folder)
        raise
    if is_new:
        _remove_unused(os.path.dirname(folder))
        if source is not None:
            shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*lock"), dirs_exist_ok=True)
    else:
        os.utime(folder)


def _remove_unused(place: str) -> None:
    """Remove the folders of versions that have not been used for long."""
    for entry in os.scandir(place):
        with suppress(OSError):
            if entry.name.startswith("f5py-") and time.time() - entry.stat().st_mtime > 86_400 * _DAYS_UNUSED:
                shutil.rmtree(entry.path, ignore_errors=True)


def _digest() -> str:
    """Return a digest of sizes and times of the sources, and of settings that change the code."""
    content = hashlib.sha256()
    for folder, folders, names in os.walk(_PACKAGE):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".py"):
                about = os.stat(os.path.join(folder, name))
                content.update(f"{folder}/{name} {about.st_size} {about.st_mtime_ns}\n".encode())
    settings = {name: value for name, value in os.environ.items() if name.startswith("NUMBA_")}
    settings.pop("NUMBA_CACHE_DIR", None)
    content.update(repr(sorted(settings.items())).encode())
    return content.hexdigest()[:16]


class CodeGuard:
    """Guard of a code folder against mixed and damaged files of several processes.

    Two processes that save code of one kernel for different types could choose the same name. So one at a time saves,
    between Numba's events ``numba:compile`` and ``numba:compiler_lock``, and records checksums. Damaged files in
    `folder` are removed.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._thread = threading.local()
        if self._unlike_notes():
            with self._locked():
                for path in self._unlike_notes():
                    with suppress(OSError):
                        os.unlink(os.path.join(folder, path))
                    console.warning("accelerate", f"{os.path.join(folder, path)}: is damaged; compiling again")

    def begin_saving(self, kernel: Any) -> None:
        """Wait until no other process saves code, if that of `kernel` is cached."""
        place = kernel.stats.cache_path
        if place is not None:
            self._thread.saving = ExitStack()
            self._thread.saving.enter_context(self._locked())
            self._thread.saving.callback(self._note, os.path.basename(place))

    def end_saving(self) -> None:
        """Record checksums of the code saved by this thread, if any, and let others save."""
        saving = getattr(self._thread, "saving", None)
        if saving is not None:
            self._thread.saving = None
            saving.close()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the folder until the end of the block or process, if the file system has locks."""
        descriptor = os.open(os.path.join(self._folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _note(self, place: str) -> None:
        """Record the checksums of all files in a subfolder."""
        notes = {path: sums for path, sums in self._notes().items() if not path.startswith(f"{place}/")}
        notes |= _checksums(self._folder, [place])
        path = os.path.join(self._folder, "checksums")
        with open(f"{path}.new", "w") as file:
            json.dump(notes, file)
        os.replace(f"{path}.new", path)

    def _notes(self) -> dict[str, int]:
        try:
            with open(os.path.join(self._folder, "checksums")) as file:
                notes = json.load(file)
        except (OSError, ValueError):
            return {}
        return notes if isinstance(notes, dict) else {}

    def _unlike_notes(self) -> list[str]:
        """List the files with other checksums than recorded."""
        notes = self._notes()
        places = [entry.name for entry in os.scandir(self._folder) if entry.is_dir()]
        return [path for path, checksum in _checksums(self._folder, places).items() if notes.get(path) != checksum]


def _checksums(folder: str, places: Iterable[str]) -> dict[str, int]:
    """Return the checksum of each code file in subfolders."""
    sums = {}
    for place in places:
        for entry in os.scandir(os.path.join(folder, place)):
            if entry.name.endswith((".nbi", ".nbc")):
                with open(entry.path, "rb") as file:
                    sums[f"{place}/{entry.name}"] = zlib.crc32(file.read())
    return sums
