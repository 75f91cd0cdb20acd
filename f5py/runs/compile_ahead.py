"""Compiles what a run will need in processes beside it, when the kept code of an earlier run is not there.

Numba compiles one function at a time in a process, and a first run would wait for one after the other. So other
processes take one part of the work after the other and leave the code in Numba's cache, while this one loads and
compiles what that takes. A stage whose part is being compiled waits for it; one whose part nobody has begun compiles it
itself. So all are at work until there is nothing left. Nothing depends on that: a process that fails leaves the work to
the stage.

What is kept is loaded in a thread while the run opens its inputs, in the order in which it is used: else all threads
would wait in the first batch for one kernel after the other. A GPU's start does that with what runs need beside it.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from f5py.core.batch import ReadBatch
from f5py.io.signals.helper_process import environment, python_command
from f5py.jit.cache_folder import has_kept_file
from f5py.messages import console
from f5py.options.cores import usable_cores
from f5py.runs.compiled.cpu_parts import CPU_PARTS
from f5py.runs.compiled.gpu_parts import GPU_PARTS

#: See `f5py.runs.compiled.cpu_parts.CPU_PARTS`.
PARTS = CPU_PARTS | GPU_PARTS
#: More processes than this have nothing to do.
_MOST_PROCESSES = 8
_WAIT_SECONDS = 120.0
#: Colours in messages that nobody sees cost a twentieth of the time, where colorama is installed.
_QUIET = {"NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING": "1"}


#: What every run over signals needs besides its own, in the order in which other processes are to compile it: a stage
#: that comes later is waited for less by this one.
OF_SIGNALS = ("alignment", "events")


class CompileAhead:
    """The processes that compile for a run.

    Parameters
    ----------
    parts : list of str
        Names in `PARTS` of what this run needs, the longest first.
    loads : bool
        Load those that are kept.
    """

    def __init__(self, parts: list[str], loads: bool = True) -> None:
        self._processes: list[subprocess.Popen] = []
        # those of a first run begin while this process imports what it needs to look into files of kept code
        self._start(sum(not has_kept_file(*PARTS[part][0][:2]) for part in parts))
        missing = [part for part in parts if not _is_kept(part)]
        self._lock = threading.Lock()
        self._to_do = deque(missing)
        self._is_done = {part: threading.Event() for part in missing}
        self._start(len(missing))
        for process in self._processes:
            threading.Thread(target=self._serve, args=(process,), name="f5py-compile", daemon=True).start()
        if missing:
            console.info("accelerate", "compiling for this processor; the code is kept for the next runs")
        self._is_closed = False
        kept = _in_order_of_use(set(parts).difference(missing))
        self._loader = threading.Thread(target=self._load, args=(kept,), name="f5py-load", daemon=True)
        if loads and kept:
            self._loader.start()

    def _load(self, parts: list[str]) -> None:
        _load_each(parts, lambda: self._is_closed)

    def load(self, parts: list[str]) -> None:
        """Load parts, or compile them, in the calling thread."""
        for part in parts:
            self.wait(part)
            if self._is_closed:
                break
            PARTS[part][1]()

    def _start(self, n_parts: int) -> None:
        """Have as many processes as can be at work on so many parts."""
        with suppress(OSError):
            while len(self._processes) < min(_MOST_PROCESSES, usable_cores() - 1, n_parts):
                self._processes.append(
                    subprocess.Popen(
                        python_command(f"from {__name__} import compile_parts; compile_parts()"),
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                        env={**environment(), **_QUIET},
                    )
                )

    def _serve(self, process: subprocess.Popen) -> None:
        """Give a process one part after the other."""
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError, ValueError), process.stdin, process.stdout:
            while (part := self._next_part()) is not None:
                try:
                    process.stdin.write(f"{part}\n".encode())
                    process.stdin.flush()
                    process.stdout.readline()
                finally:  # also when the process has died
                    self._is_done[part].set()

    def _next_part(self) -> str | None:
        with self._lock:
            return self._to_do.popleft() if self._to_do else None

    def wait(self, part: str) -> None:
        """Wait until a part has been compiled, if a process does that already. May be called in several threads."""
        with self._lock:
            if part in self._to_do:
                self._to_do.remove(part)
                self._is_done[part].set()  # for other batches: Numba lets only one of them compile
        if part in self._is_done and not self._is_done[part].wait(_WAIT_SECONDS):
            self._is_done[part].set()  # else every batch would wait as long again

    def before(self, function: Callable[[ReadBatch], None], *parts: str) -> Callable[[ReadBatch], None]:
        """Wrap a function of a batch so that it waits for parts first."""

        def waiting(batch: ReadBatch) -> None:
            for part in parts:
                self.wait(part)
            function(batch)

        return waiting

    def close(self) -> None:
        """End the processes that are still at work."""
        self._is_closed = True
        with self._lock:
            self._to_do.clear()
        for is_done in self._is_done.values():
            is_done.set()  # nobody will compile what none has begun
        if self._loader.is_alive():
            self._loader.join()
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes.clear()


def compile_everything() -> None:
    """Compile all parts, in several processes, and come back when all of them are kept."""
    ahead = CompileAhead(list(PARTS), loads=False)
    try:
        for part, (_, compile_it) in PARTS.items():
            ahead.wait(part)
            compile_it()
    finally:
        ahead.close()


def compile_parts() -> None:
    """Compile the parts whose names come line by line on standard input, and say of each that it is done."""
    gc.disable()  # the process ends before that is worth its time
    sys.modules["cffi"] = None  # type: ignore[assignment]  # Numba would import it, and no kernel calls such functions
    from f5py.jit.shortcuts import load_compiler

    load_compiler()
    for line in sys.stdin:
        part = line.strip()
        PARTS[part][1]()
        print(part, flush=True)
    os._exit(0)  # taking apart what was compiled takes longer than some of it took


def load_kept(parts: list[str]) -> None:
    """Load those parts that are kept, before the run that needs them."""
    _load_each(_in_order_of_use({part for part in parts if _is_kept(part)}))


def _in_order_of_use(parts: set[str]) -> list[str]:
    return [part for part in CPU_PARTS if part in parts]


def _load_each(parts: list[str], is_over: Callable[[], bool] = lambda: False) -> None:
    for part in parts:
        if is_over():
            break
        with suppress(Exception):  # the stage will tell
            PARTS[part][1]()


def _is_kept(part: str) -> bool:
    """Return whether Numba's cache has code of the part's kernel."""
    from importlib import import_module

    from f5py.jit.kernel import is_kept

    module, name, argument = (*PARTS[part][0], "")[:3]
    return is_kept(getattr(import_module(module), name), argument)
