"""Compiles what a run will need in processes beside it, when the kept code of an earlier run is not there.

Numba compiles one function at a time in a process, and a first run would wait for one after the other. So other
processes take one part of the work after the other and leave the code in Numba's cache, while this one loads and
compiles what that takes. A stage whose part is being compiled waits for it; one whose part nobody has begun compiles it
itself. So all are at work until there is nothing left. Nothing depends on that: a process that fails leaves the work to
the stage.
"""

from __future__ import annotations

import gc
import io
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import Calls, Events, ReadBatch, Rows
from f5py.core.mapping_batch import Anchors, ChainedHits, Hits, MappingBatch
from f5py.core.names import Names
from f5py.io.signals.helper_process import environment, python_command
from f5py.mapping.hits.hit_fields import N_FIELDS
from f5py.messages import console
from f5py.options.cores import usable_cores

if TYPE_CHECKING:
    from f5py.mapping.index.reference_index import ReferenceIndex
    from f5py.mapping.settings import Parameters
    from f5py.pore_model.model import PoreModel

#: More processes than this have nothing to do.
_MOST_PROCESSES = 6
_WAIT_SECONDS = 120.0


#: What every run over signals needs besides its own, in the order in which other processes are to compile it: a stage
#: that comes later is waited for less by this one.
OF_SIGNALS = ("recalibration", "alignment", "scaling", "events")


class CompileAhead:
    """The processes that compile for a run.

    Parameters
    ----------
    parts : list of str
        Names in `PARTS` of what this run needs, the longest first.
    """

    def __init__(self, parts: list[str]) -> None:
        missing = [part for part in parts if not _is_kept(part)]
        self._lock = threading.Lock()
        self._to_do = deque(missing)
        self._is_done = {part: threading.Event() for part in missing}
        self._processes: list[subprocess.Popen] = []
        for _ in range(min(_MOST_PROCESSES, usable_cores() - 1, len(missing))):
            with suppress(OSError):
                self._start()
        if missing:
            console.info("accelerate", "compiling for this processor; the code is kept for the next runs")

    def _start(self) -> None:
        process = subprocess.Popen(
            python_command(f"from {__name__} import compile_parts; compile_parts()"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING": "1", **environment()},
        )
        self._processes.append(process)
        threading.Thread(target=self._serve, args=(process,), name="f5py-compile", daemon=True).start()

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
        if part in self._is_done:
            self._is_done[part].wait(_WAIT_SECONDS)

    def before(self, function: Callable[[ReadBatch], None], *parts: str) -> Callable[[ReadBatch], None]:
        """Wrap a function of a batch so that it waits for parts first."""

        def waiting(batch: ReadBatch) -> None:
            for part in parts:
                self.wait(part)
            function(batch)

        return waiting

    def close(self) -> None:
        """End the processes that are still at work."""
        with self._lock:
            self._to_do.clear()
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes.clear()


def compile_everything() -> None:
    """Compile all parts, in several processes, and come back when all of them are kept."""
    ahead = CompileAhead(list(PARTS))
    try:
        for part, (_, compile_it) in PARTS.items():
            ahead.wait(part)
            compile_it()
    finally:
        ahead.close()


def compile_parts() -> None:
    """Compile the parts whose names come line by line on standard input, and say of each that it is done."""
    gc.disable()  # the process ends before that is worth its time
    for line in sys.stdin:
        part = line.strip()
        PARTS[part][1]()
        print(part, flush=True)


class _AtOnce:
    """Calls kernels in the calling thread, also without a read: for that they are compiled."""

    n_threads = 1

    def run(self, kernel: Callable[..., object], reads: NDArray[np.int64], *arguments: object, order: int = 0) -> float:
        kernel(np.zeros(1, np.int64), np.ascontiguousarray(reads, np.int64), *arguments)
        return 0.0


_AT_ONCE: Any = _AtOnce()


def _model(name: str = "r9.4_450bps.nucleotide.6mer") -> PoreModel:
    from f5py.pore_model import builtin

    return builtin(name)


def _no_reads() -> ReadBatch:
    """Make a batch without reads whose arrays have the types that all batches have."""

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
        events=Events.none()._replace(offsets=offsets),
        rows=Rows.none()._replace(offsets=offsets, n=nothing(np.int64)),
        shift=nothing(np.float32),
        scale=nothing(np.float32),
        var=nothing(np.float32),
        calls=Calls.none()._replace(offsets=offsets, n=nothing(np.int64)),
    )


def _calls(per_site: bool = False, correlated: bool = False) -> None:
    from f5py.core.motifs import motif_named
    from f5py.core.noise import OF_PORES
    from f5py.methylation.calls import call_methylation

    motif = motif_named("cpg")
    assert motif.model is not None
    noise = OF_PORES["r9"] if correlated else None
    call_methylation(_no_reads(), motif, _model(motif.model), _AT_ONCE, per_site, noise=noise)


def _calls_table() -> None:
    from f5py.outputs.calls.calls_writer import CallsWriter

    CallsWriter(io.BytesIO(), 2, [], 6).format(_no_reads())


def _events() -> None:
    from f5py.compute.chemistry import R9_DNA
    from f5py.signal.events import detect_events

    detect_events(_no_reads(), R9_DNA.event_parameters, _AT_ONCE, means_only=True)


def _scaling() -> None:
    from f5py.signal.scaling import estimate_scaling, rank_kmers

    batch, model = _no_reads(), _model()
    rank_kmers(batch, model, _AT_ONCE)
    estimate_scaling(batch, model, _AT_ONCE)


def _recalibration() -> None:
    from f5py.signal.scaling import recalibrate

    recalibrate(_no_reads(), _model(), _AT_ONCE)


def _alignment() -> None:
    from f5py.abea.align import align

    align(_no_reads(), _model(), _AT_ONCE)


def _event_rows() -> None:
    from f5py.event_alignment.align import align_events

    align_events(_no_reads(), _model(), _AT_ONCE, None)


def _event_table() -> None:
    from f5py.outputs.events.eventalign_table import EventalignTable

    EventalignTable([], _model()).compile(_no_reads())


def _mapping() -> tuple[MappingBatch, ReferenceIndex, Parameters]:
    """Make a batch without reads, with the arrays that the stages of the mapper fill; an index; and the settings."""
    from f5py.mapping.index.reference_index import ReferenceIndex
    from f5py.mapping.settings import PRESETS, parameters

    def nothing(kind: type) -> NDArray:
        return np.empty(0, kind)

    offsets = np.zeros(1, np.int64)
    batch = MappingBatch(
        Names.of([]), nothing(np.uint8), offsets, nothing(np.uint8), nothing(np.uint8), offsets,
    )  # fmt: skip
    batch.anchors = Anchors(
        nothing(np.uint64), nothing(np.int64), offsets, nothing(np.int64), offsets, nothing(np.int64),
        nothing(np.int32), nothing(np.int32),
    )  # fmt: skip
    batch.hits = Hits(np.empty((0, N_FIELDS), np.int64), offsets, nothing(np.int64))
    settings = PRESETS["map-ont"]
    index = ReferenceIndex(
        [], nothing(np.uint8), offsets, nothing(np.uint64), nothing(np.int64), nothing(np.int32), settings.k,
        settings.w, settings.hpc,
    )  # fmt: skip
    return batch, index, parameters(settings, 10)


def _seeds() -> None:
    from f5py.mapping.chain.chaining import score_chains
    from f5py.mapping.index.seeds import find_anchors

    batch, index, settings = _mapping()
    find_anchors(batch, index, settings, _AT_ONCE)
    score_chains(batch, settings, _AT_ONCE)


def _mem_seeds() -> None:
    from f5py.mapping.chain.chaining import score_chains
    from f5py.mapping.mem.fm_index import FmIndex
    from f5py.mapping.mem.mem_seeds import MemSearch, find_mem_anchors

    batch, index, settings = _mapping()
    nothing = FmIndex(
        np.empty((0, 4), np.uint64), np.empty(0, np.int64), np.empty(4, np.int64), np.empty(0, np.int32),
        np.empty((0, 2), np.uint32), 1,
    )  # fmt: skip
    find_mem_anchors(batch, MemSearch(nothing, index.offsets, 17, settings), _AT_ONCE)
    score_chains(batch, settings, _AT_ONCE)


def _chained_hits() -> None:
    from f5py.mapping.hits.hits import chain_hits

    chain_hits(*_mapping(), _AT_ONCE)


def _hits() -> None:
    from f5py.mapping.hits.hits import align_hits

    batch, index, settings = _mapping()
    batch.chained = ChainedHits(
        np.empty((0, N_FIELDS), np.int64), batch.offsets, np.empty(0, np.uint64), np.empty(0, np.int64), batch.offsets
    )
    align_hits(batch, index, settings, _AT_ONCE)


def _ranks() -> None:
    from f5py.mapping.hits.hits import rank_hits

    batch, _, settings = _mapping()
    rank_hits(batch, settings, _AT_ONCE)


def _mapped_records() -> None:
    from f5py.outputs.mapped_records import RecordStyle, records_of

    batch, index, _ = _mapping()
    records_of(batch, index, Names.of([]), RecordStyle(md=True), _AT_ONCE)


def _mapped_lines() -> None:
    from f5py.outputs.mapped_records import RecordStyle, paf_lines_of

    batch, index, _ = _mapping()
    paf_lines_of(batch, index, Names.of([]), RecordStyle(), _AT_ONCE)


def _darwin_integers() -> NDArray[np.int64]:
    from f5py.mapping.darwin.darwin_settings import DarwinSettings, darwin_integers

    return darwin_integers(DarwinSettings(), 14, (1, -1, -1, -1), 0)


def _candidates() -> None:
    from f5py.mapping.darwin.dsoft import ReadStrands, find_candidates_of

    batch, index, _ = _mapping()
    strands = ReadStrands.of(batch.letters, batch.offsets, _AT_ONCE, 0)
    find_candidates_of(strands, np.empty(0, np.int64), index, _darwin_integers(), _AT_ONCE, 0)


def _tiles() -> None:
    from f5py.mapping.darwin.extensions import N_CANDIDATE, Extensions
    from f5py.mapping.darwin.gact import extend_all

    batch, index, _ = _mapping()
    nothing = Extensions.of(np.empty((2, 0), np.uint8), batch.offsets, np.empty((0, N_CANDIDATE), np.int64))
    extend_all(nothing, index, _darwin_integers(), _AT_ONCE)


#: Each part's kernel by module and name, and what compiles it.
PARTS: dict[str, tuple[tuple[str, str], Callable[[], None]]] = {
    "events": (("f5py.signal._events_numba", "find_all_events"), _events),
    "scaling": (("f5py.signal._scaling_numba", "estimate_all"), _scaling),
    "recalibration": (("f5py.signal._scaling_numba", "recalibrate_all"), _recalibration),
    "calls": (("f5py.methylation._calls_numba", "call_all"), _calls),
    "site calls": (("f5py.methylation._per_site_numba", "call_all_sites"), lambda: _calls(per_site=True)),
    "correlated calls": (("f5py.methylation._calls_numba", "call_all"), lambda: _calls(correlated=True)),
    "correlated site calls": (
        ("f5py.methylation._per_site_numba", "call_all_sites"),
        lambda: _calls(per_site=True, correlated=True),
    ),
    "calls table": (("f5py.outputs.calls._calls_writer_numba", "format_calls"), _calls_table),
    "alignment": (("f5py.abea._align_numba", "align_all"), _alignment),
    "event rows": (("f5py.event_alignment._align_numba", "align_all"), _event_rows),
    "seeds": (("f5py.mapping.index._seeds_numba", "seed_reads"), _seeds),
    "mem seeds": (("f5py.mapping.mem._mem_anchors_numba", "seed_reads_by_mems"), _mem_seeds),
    "chained hits": (("f5py.mapping.hits._chained_hits_numba", "chain_reads"), _chained_hits),
    "hits": (("f5py.mapping.hits._hit_reads_numba", "align_reads"), _hits),
    "ranks": (("f5py.mapping.hits._mapping_quality_numba", "rank_reads"), _ranks),
    "mapped records": (("f5py.outputs._mapped_records_numba", "records_of_reads"), _mapped_records),
    "mapped lines": (("f5py.outputs._mapped_paf_numba", "lines_of_reads"), _mapped_lines),
    "candidates": (("f5py.mapping.darwin._dsoft_numba", "find_candidates"), _candidates),
    "tiles": (("f5py.mapping.darwin._gact_numba", "extend_candidates"), _tiles),
    "event table": (("f5py.outputs.events._eventalign_table_numba", "format_table"), _event_table),
}


def _is_kept(part: str) -> bool:
    """Return whether Numba's cache has code of the part's kernel."""
    from importlib import import_module

    from f5py.jit.kernel import is_kept

    module, name = PARTS[part][0]
    return is_kept(getattr(import_module(module), name))
