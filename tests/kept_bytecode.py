"""Keep the bytecode of Python's modules where the environment says that none is to be written.

Tests start hundreds of processes. With ``PYTHONDONTWRITEBYTECODE``, as containers often set it, every one of them would
compile all that it imports, which takes longer than the test. What the variable is set for is kept: nothing is
written beside the sources.
"""

from __future__ import annotations

import os
import sys
import tempfile


def _folder() -> str:
    """Return a folder that only this user can write, the same one at every run."""
    path = os.path.join(tempfile.gettempdir(), f"f5py-tests-{os.getuid()}-bytecode")
    os.makedirs(path, 0o700, exist_ok=True)
    about = os.lstat(path)
    return path if about.st_uid == os.getuid() and not about.st_mode & 0o022 else tempfile.mkdtemp(prefix="f5py-tests-")


if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = sys.pycache_prefix or _folder()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
