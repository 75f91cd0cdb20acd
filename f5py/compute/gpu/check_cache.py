"""Cache of passed GPU self-checks.

An entry is valid for this device, driver and code until the machine reboots.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from f5py.compute.gpu.sources import source_folder
from f5py.jit.cache_folder import cache_folder

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PACKAGE = Path(__file__).resolve().parents[2]
_anew: ContextVar[bool] = ContextVar("anew", default=False)


@contextmanager
def without_cache() -> Iterator[None]:
    """Disable the cache of checks."""
    token = _anew.set(True)
    try:
        yield
    finally:
        _anew.reset(token)


def check_once(number: int, what: bytes | None, check: Callable[[], None]) -> None:
    """Run a check unless the cache has it.

    Parameters
    ----------
    number : int
        CUDA device number.
    what : bytes or None
        Key of computation and settings; None disables the cache.
    check : callable
        Raises if the device's results differ from the CPU's.
    """
    file = None if what is None or _anew.get() else _file_of(number, what)
    if file is not None and file.exists():
        return
    check()
    if file is not None:
        with suppress(OSError):  # then the next run checks again
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()


def _file_of(number: int, what: bytes) -> Path | None:
    """Return the cache file of a check; None if device or boot cannot be identified."""
    import cupy

    runtime = cupy.cuda.runtime
    try:
        device = bytes(runtime.getDeviceProperties(number)["uuid"])
        versions = runtime.driverGetVersion(), runtime.runtimeGetVersion(), cupy.__version__
        boot = _BOOT.read_text()
    except (AttributeError, KeyError, TypeError, OSError):
        return None
    digest = hashlib.sha256(b"\0".join([device, repr(versions).encode(), boot.encode(), what]))
    for line in _code():
        digest.update(line.encode())
    return Path(cache_folder(), "f5py", "checks", digest.hexdigest()[:40])


def _code() -> Iterator[str]:
    """Yield name, size and time of all sources of the package and the kernels."""
    for folder in (_PACKAGE, source_folder()):
        for parent, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(names):
                if name.endswith((".py", ".cu", ".cuh")):
                    state = os.stat(os.path.join(parent, name))
                    yield f"{name} {state.st_size} {state.st_mtime_ns}\n"
