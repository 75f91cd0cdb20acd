"""Cache of compiled code: one private folder for exactly these sources.

Numba loads cached code with pickle, which can run anything, and compares only a kernel's own file with the one that was
compiled. So the folder belongs to this user, nobody else may write to it, and its name has a digest of all sources.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from f5py import __version__
from f5py.jit.cache_folder import cache_folder, is_private, temporary_cache_folder
from f5py.messages import console

_PACKAGE = Path(__file__).resolve().parents[1]
#: Variables that choose which code is loaded, made or run. Where they are not set, Numba looks for a file
#: ``.numba_config.yaml`` in the working folder, which may be anybody's.
_SETTINGS = {"NUMBA_BOUNDSCHECK": "0", "NUMBA_CHROME_TRACE": "", "NUMBA_DISABLE_JIT": "0", "NUMBA_OPT": "3"}
#: Room that the code of all kernels needs, with some to spare.
_CACHE_BYTES = 32 << 20
_DAYS_UNUSED = 90


@cache
def code_folder() -> str | None:
    """Return the folder of compiled code, and point Numba at it, which must not have been imported.

    The user's cache folder holds it, or ``NUMBA_CACHE_DIR``; if others may write to the folder there, or nobody may,
    the folder for temporary files.

    Returns
    -------
    str or None
        None if code can be cached nowhere.
    """
    os.environ |= _SETTINGS | os.environ
    os.environ["NUMBA_CACHE_LOCATOR_CLASSES"] = ""
    name = f"f5py-{__version__}-{_digest()}"
    wanted = os.environ.get("NUMBA_CACHE_DIR")
    if wanted is None:
        wanted = os.path.join(cache_folder(), "f5py", "code")
    elif os.path.basename(wanted).startswith(f"f5py-{__version__}-"):  # of the process that has started this one
        wanted = os.path.dirname(wanted)
    problem = ""
    for make_place in (lambda: os.path.abspath(wanted), temporary_cache_folder):
        try:
            folder = os.path.join(make_place(), name)
            _make(folder)
        except OSError as failure:
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


def _make(folder: str) -> None:
    """Make a private folder with room for code, or check one that is there. Raises `OSError`."""
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    is_new = True
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        is_new = False
        if not is_private(folder):
            raise PermissionError(0, "others may write to it", folder) from None
    with tempfile.TemporaryFile(dir=folder) as file:
        if is_new:
            os.posix_fallocate(file.fileno(), 0, _CACHE_BYTES)
    if is_new:
        _remove_unused(os.path.dirname(folder))
    else:
        os.utime(folder)


def _remove_unused(place: str) -> None:
    """Remove folders with the code of other versions that no run has used for long."""
    for entry in os.scandir(place):
        with suppress(OSError):
            if entry.name.startswith("f5py-") and time.time() - entry.stat().st_mtime > 86_400 * _DAYS_UNUSED:
                shutil.rmtree(entry.path, ignore_errors=True)


def _digest() -> str:
    """Return a digest of the package's sources, as sizes and times tell, and of settings that change the code."""
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
