"""Shared libraries that g++ builds of CUDA sources for the CPU, kept for all test processes of this user."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

_FLAGS = (
    "-std=c++17", "-O2", "-march=native", "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC", "-shared",
    "-U_FORTIFY_SOURCE",  # fortified longjmps abort
)  # fmt: skip


def build(text: str, options: Sequence[str], headers: Sequence[Path]) -> Path:
    """Build a library, or find the one that was built of the same sources before.

    Parameters
    ----------
    text : str
        A C++ source.
    options : sequence of str
        Of g++, beside those that all libraries have.
    headers : sequence of Path
        Files that the source may include; their folders are searched.

    Raises
    ------
    RuntimeError
        There is no g++, or it refuses the source; the message is the compiler's.
    """
    folder = Path(os.environ.get("F5PY_PLAYED_BUILDS") or Path(tempfile.gettempdir()) / f"f5py-played-{os.getuid()}")
    folder.mkdir(parents=True, exist_ok=True)
    made_of = [text, *_FLAGS, *options, *(header.read_text() for header in headers)]
    library = folder / f"{hashlib.sha256('|'.join(made_of).encode()).hexdigest()[:24]}.so"
    if library.exists():
        return library
    compiler = shutil.which("g++")
    if compiler is None:
        raise RuntimeError("the played device needs g++")
    with library.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test may be building it
        if library.exists():
            return library
        with tempfile.TemporaryDirectory(dir=folder) as work:
            source, out = Path(work) / "kernel.cpp", Path(work) / "kernel.so"
            source.write_text(text)
            searched = dict.fromkeys(f"-I{header.parent}" for header in headers)
            command = [compiler, *_FLAGS, *options, *searched, str(source), "-o", str(out)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr)
            os.replace(out, library)
    return library
