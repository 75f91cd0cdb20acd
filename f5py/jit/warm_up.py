"""Compilation of a first run, in several processes.

Numba compiles one function at a time in a process, and a first run would wait for one after the other. So other
processes compile some of its stages and leave the code in the cache while this one opens the inputs and compiles the
others. Whoever takes a stage locks it: two first runs at the same time share the work. The run itself compiles
everything else.
"""

import fcntl
import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from f5py.jit.code_cache import code_folder
from f5py.messages import console
from f5py.options.cores import usable_cores
from f5py.threads.subprocesses import end_with_parent, environment, python_command

#: Functions without results by names: each calls one stage of a run with a batch without reads, and so compiles it.
Stages = Mapping[str, Callable[[], object]]
#: More processes would wait for the one with the largest stage.
_MOST_PROCESSES = 4


@contextmanager
def warm_up(stages: Stages, tell: Callable[[str], object] | None = None) -> Iterator[None]:
    """Compile and cache a run's missing stages in other processes during this context.

    `stages`, the longest first, are functions that can be pickled. `tell` is called with the name of each one that is
    compiled.
    """
    folder = code_folder()
    missing = (
        {} if folder is None else {name: one for name, one in stages.items() if not os.path.exists(_mark(folder, name))}
    )
    if folder is None or not missing:
        yield
        return
    console.info("accelerate", "compiling for this processor, which takes up to a minute, once: the code is kept")
    processes: list[subprocess.Popen] = []
    program = f"from {__name__} import compile_in_process; compile_in_process()"
    try:
        with suppress(OSError):  # then this process compiles alone
            while len(processes) < min(_MOST_PROCESSES, usable_cores(), len(missing)) - 1:
                processes.append(
                    subprocess.Popen(
                        [*python_command(program), folder, pickle.dumps(missing).hex()], env=environment(),
                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    )
                )  # fmt: skip
        yield
        for how in (fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_EX):  # those that no other process is at come first
            for name in list(missing):
                with suppress(BlockingIOError):
                    _compile(folder, name, missing[name], how)
                    missing.pop(name)
                    if tell is not None:
                        tell(name)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def compile_in_process() -> None:
    """Compile stages in a process that was started for that."""
    end_with_parent()
    folder, stages = sys.argv[1:]
    for name, stage in pickle.loads(bytes.fromhex(stages)).items():  # but those that another process is at
        with suppress(BlockingIOError):
            _compile(folder, name, stage, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _compile(folder: str, name: str, stage: Callable[[], object], how: int) -> None:
    """Compile a stage under its lock, unless it is cached by then, and note that it is."""
    mark = _mark(folder, name)
    if os.path.exists(mark):
        return
    with open(f"{mark}.lock", "w") as lock:
        try:
            fcntl.flock(lock, how)
        except BlockingIOError:
            raise
        except OSError:  # a file system without locks
            pass
        if not os.path.exists(mark):
            stage()
            Path(mark).touch()


def _mark(folder: str, name: str) -> str:
    """Return the path of the file that says that a stage's code is cached."""
    return os.path.join(folder, f"{name}-{_processor()}".replace(" ", "-"))


@cache
def _processor() -> str:
    """Return a digest of Numba's target: processors of a cluster may share the folder."""
    import numba
    from llvmlite import binding

    kind = sys.version, numba.__version__, binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    return hashlib.sha256(repr(kind).encode()).hexdigest()[:16]
