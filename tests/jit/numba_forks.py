"""Programs in processes that fork from one that has imported Numba and compiled something, which takes a second."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

#: Forks for each line, before anything of f5py is imported. The child leaves its modules to the system.
_PROGRAM = """
import json, os, sys
import numba
numba.njit(lambda x: x)(1)
for line in sys.stdin:
    run = json.loads(line)
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    for number, path in enumerate(run["streams"], 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(run["folder"])
    os.environ.update(run["environment"])
    numba.config.reload_config()
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in run["environment"]
    sys.path[:0] = [run["folder"]]
    status = 1
    try:
        exec(run["program"], {"__name__": "__main__"})
        sys.stdout.flush()
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    os._exit(status)
"""


class NumbaForks:
    """The process that forks; a context manager."""

    def __enter__(self) -> NumbaForks:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM], stdin=pipe, stdout=pipe, text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()

    def run(self, program: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a program in a folder, from which it imports first, with these variables more."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as place:
            streams = [Path(place) / name for name in ("out", "err")]
            run = {
                "program": program, "folder": str(folder), "environment": dict(environment),
                "streams": list(map(str, streams)),
            }  # fmt: skip
            self._process.stdin.write(f"{json.dumps(run)}\n")
            self._process.stdin.flush()
            status = int(self._process.stdout.readline())
            return subprocess.CompletedProcess([], status, *(stream.read_text() for stream in streams))
