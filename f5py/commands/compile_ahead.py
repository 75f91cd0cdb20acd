"""Compiles what a run will need in processes beside it, when the kept code of an earlier run is not there.

Numba compiles one function at a time in a process, and a first run would wait for one after the other. So the longest
ones are compiled by other processes, which leave the code in Numba's cache, while this one loads and compiles what that
takes; a stage waits for its own before it takes the code from there. Nothing depends on that: a process that fails
leaves the work to the stage.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from f5py import console
from f5py.core.batch import ReadBatch
from f5py.core.names import Names
from f5py.io.helper_process import environment

#: More processes than this have nothing to do.
_MOST_PROCESSES = 3
_WAIT_SECONDS = 120.0


class CompileAhead:
    """The processes that compile for a run.

    Parameters
    ----------
    parts : list of str
        Names in `PARTS`, in the order in which they are to be ready; the longest first.
    """

    def __init__(self, parts: list[str]) -> None:
        self._processes: list[subprocess.Popen] = []
        self._is_done: dict[str, threading.Event] = {}
        missing = [part for part in parts if not _is_kept(part)]
        n_processes = min(_MOST_PROCESSES, (os.cpu_count() or 1) - 1, len(missing))
        for first in range(n_processes):
            with suppress(OSError):
                self._start(missing[first::n_processes])
        if missing:
            console.info("accelerate", "compiling for this processor; the code is kept for the next runs")

    def _start(self, parts: list[str]) -> None:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {__name__} import compile_parts; compile_parts({parts!r})"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
        self._processes.append(process)
        self._is_done.update({part: threading.Event() for part in parts})
        threading.Thread(target=self._follow, args=(process, parts), name="f5py-compile", daemon=True).start()

    def _follow(self, process: subprocess.Popen, parts: list[str]) -> None:
        """Hear of each part from its process; the end of that is the end of all."""
        assert process.stdout is not None
        with process.stdout as lines, suppress(OSError, ValueError):
            for part, _ in zip(parts, lines, strict=False):
                self._is_done[part].set()
        for part in parts:
            self._is_done[part].set()

    def wait(self, part: str) -> None:
        """Wait until a part has been compiled, if a process does that."""
        if part in self._is_done:
            self._is_done[part].wait(_WAIT_SECONDS)

    def before(self, function: Callable[[ReadBatch], None], *parts: str) -> Callable[[ReadBatch], None]:
        """A function of a batch that waits for parts first."""

        def waiting(batch: ReadBatch) -> None:
            for part in parts:
                self.wait(part)
            function(batch)

        return waiting

    def close(self) -> None:
        """End the processes that are still at work."""
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes.clear()


def compile_parts(parts: list[str]) -> None:
    """Compile the parts of these names one after the other, and say of each that it is done."""
    for part in parts:
        PARTS[part][1]()
        print(part, flush=True)


class _AtOnce:
    """Calls kernels in the calling thread, also without a read: for that they are compiled."""

    n_threads = 1

    def run(self, kernel: Callable[..., object], reads: NDArray[np.int64], *arguments: object, order: int = 0) -> float:
        kernel(np.zeros(1, np.int64), np.ascontiguousarray(reads, np.int64), *arguments)
        return 0.0


def _no_reads() -> ReadBatch:
    """A batch without reads whose arrays have the types that all batches have."""

    def nothing(kind: type) -> NDArray:
        return np.empty(0, kind)

    offsets = np.zeros(1, np.int64)
    return ReadBatch(
        number=0,
        names=Names.of([]),
        read_index=nothing(np.int64),
        status=nothing(np.uint8),
        contig=nothing(np.int32),
        reference_start=nothing(np.int64),
        reference_end=nothing(np.int64),
        reverse=nothing(np.bool_),
        cigar=nothing(np.uint32),
        cigar_offsets=offsets,
        reference=nothing(np.uint8),
        reference_offsets=offsets,
        bases=nothing(np.uint8),
        base_offsets=offsets,
        samples=nothing(np.int16),
        sample_offsets=offsets,
        offset=nothing(np.float32),
        unit=nothing(np.float32),
        sampling_rate=nothing(np.float32),
        event_offsets=offsets,
        n_rows=nothing(np.int64),
        shift=nothing(np.float32),
        scale=nothing(np.float32),
        var=nothing(np.float32),
        call_offsets=offsets,
        n_calls=nothing(np.int64),
    )


def _calls(per_site: bool = False) -> None:
    from f5py.core.motifs import motif_named
    from f5py.methylation.calls import call_methylation
    from f5py.pore_model import builtin

    motif = motif_named("cpg")
    assert motif.model is not None
    call_methylation(_no_reads(), motif, builtin(motif.model), _AtOnce(), per_site)  # type: ignore[arg-type]


def _calls_table() -> None:
    from f5py.outputs.calls_writer import CallsWriter

    CallsWriter(io.BytesIO(), 2, [], 6).format(_no_reads())


def _alignment() -> None:
    from f5py.abea.align import align
    from f5py.pore_model import builtin

    align(_no_reads(), builtin("r9.4_450bps.nucleotide.6mer"), _AtOnce())  # type: ignore[arg-type]


def _event_rows() -> None:
    from f5py.event_alignment.align import align_events
    from f5py.pore_model import builtin

    model = builtin("r9.4_450bps.nucleotide.6mer")
    align_events(_no_reads(), model, _AtOnce(), None)  # type: ignore[arg-type]


def _event_table() -> None:
    from f5py.outputs.eventalign_table import EventalignTable
    from f5py.pore_model import builtin

    EventalignTable([], builtin("r9.4_450bps.nucleotide.6mer")).compile(_no_reads())


#: Each part's kernel by module and name, and what compiles it.
PARTS: dict[str, tuple[tuple[str, str], Callable[[], None]]] = {
    "calls": (("f5py.methylation._calls_numba", "call_all"), _calls),
    "site calls": (("f5py.methylation._per_site_numba", "call_all_sites"), lambda: _calls(per_site=True)),
    "calls table": (("f5py.outputs._calls_writer_numba", "format_calls"), _calls_table),
    "alignment": (("f5py.abea._align_numba", "align_all"), _alignment),
    "event rows": (("f5py.event_alignment._align_numba", "align_all"), _event_rows),
    "event table": (("f5py.outputs._eventalign_table_numba", "format_table"), _event_table),
}


def _is_kept(part: str) -> bool:
    """Whether Numba's cache has code of the part's kernel."""
    from importlib import import_module

    from f5py.accelerate import is_kept

    module, name = PARTS[part][0]
    return is_kept(getattr(import_module(module), name))
