"""Compilation of a first run, in several processes.

Numba compiles one function at a time in a process, and a first run would wait for one after the other. So other
processes compile some of its stages and leave the code in the cache while this one opens the inputs and compiles the
others. Whoever takes a stage locks it: two first runs at the same time share the work. What is not listed here is
compiled by the run itself.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import Calls, Events, ReadBatch, Rows
from f5py.core.mapping_batch import Anchors, ChainedHits, Hits, MappingBatch
from f5py.core.names import Names
from f5py.io.signals.helper_process import end_with_parent, environment, python_command
from f5py.jit.code_cache import code_folder
from f5py.mapping.hits.hit_fields import N_FIELDS
from f5py.messages import console
from f5py.options.cores import usable_cores
from f5py.threads.pool import CallingThread

if TYPE_CHECKING:
    from f5py.mapping.index.reference_index import ReferenceIndex
    from f5py.mapping.settings import Parameters
    from f5py.pore_model.model import PoreModel

#: More processes would wait for the one with the largest stage.
_MOST_PROCESSES = 4
#: All is compiled by calls without a read.
_HERE: Any = CallingThread()


@contextmanager
def warm_up(stages: Sequence[str]) -> Iterator[None]:
    """Compile stages of a run that are not cached, beside what is done in this context; at its end they are cached.

    Parameters
    ----------
    stages : sequence of str
        Names in `STAGES`, the longest first.
    """
    folder = code_folder()
    missing = [] if folder is None else [stage for stage in stages if not os.path.exists(_mark(folder, stage))]
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
                        [*python_command(program), folder, *missing], env=environment(),
                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    )
                )  # fmt: skip
        yield
        _compile_free(folder, missing)
        for stage in missing:  # which another process may be at, or has failed with
            _compile(folder, stage, fcntl.LOCK_EX)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def compile_in_process() -> None:
    """Compile stages in a process that was started for that."""
    end_with_parent()
    folder, *stages = sys.argv[1:]
    _compile_free(folder, stages)


def _compile_free(folder: str, stages: Sequence[str]) -> None:
    """Compile those stages that no other process is at."""
    for stage in stages:
        with suppress(BlockingIOError):
            _compile(folder, stage, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _compile(folder: str, stage: str, how: int) -> None:
    """Compile a stage under its lock, unless it is cached by then, and note that it is."""
    mark = _mark(folder, stage)
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
            STAGES[stage]()
            Path(mark).touch()


def _mark(folder: str, stage: str) -> str:
    """Return the path of the file that says that a stage's code is cached."""
    return os.path.join(folder, f"{stage}-{_processor()}".replace(" ", "-"))


@cache
def _processor() -> str:
    """Return a digest of what Numba compiles for: processors of a cluster may share the folder."""
    import numba
    from llvmlite import binding

    kind = sys.version, numba.__version__, binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    return hashlib.sha256(repr(kind).encode()).hexdigest()[:16]


def _nothing(kind: type) -> NDArray:
    return np.empty(0, kind)


def _model() -> PoreModel:
    from f5py.pore_model import builtin

    return builtin("r9.4_450bps.nucleotide.6mer")


def _no_reads() -> ReadBatch:
    """Make a batch without reads whose arrays have the types that all batches have."""
    offsets = np.zeros(1, np.int64)
    return ReadBatch(
        number=0, names=Names.of([]), read_index=_nothing(np.int64), status=_nothing(np.uint8),
        contig=_nothing(np.int32), reference_start=_nothing(np.int64), reference_end=_nothing(np.int64),
        reverse=_nothing(np.bool_), cigar=_nothing(np.uint32), cigar_offsets=offsets,
        reference=_nothing(np.uint8), reference_offsets=offsets, bases=_nothing(np.uint8), base_offsets=offsets,
        samples=_nothing(np.int16), sample_offsets=offsets, offset=_nothing(np.float32),
        unit=_nothing(np.float32), sampling_rate=_nothing(np.float32),
        events=Events.none()._replace(offsets=offsets),
        rows=Rows.none()._replace(offsets=offsets, n=_nothing(np.int64)),
        shift=_nothing(np.float32), scale=_nothing(np.float32), var=_nothing(np.float32),
        calls=Calls.none()._replace(offsets=offsets, n=_nothing(np.int64)),
    )  # fmt: skip


def _events() -> None:
    from f5py.compute.chemistry import R9_DNA
    from f5py.signal.events import detect_events

    detect_events(_no_reads(), R9_DNA.event_parameters, _HERE, means_only=True)


def _alignment() -> None:
    from f5py.compute.aligned_reads import align_reads

    align_reads(_no_reads(), _model(), _HERE)


def _calls(per_site: bool, correlated: bool) -> None:
    from f5py.core.motifs import motif_named
    from f5py.core.noise import OF_PORES
    from f5py.methylation.calls import call_methylation
    from f5py.pore_model import builtin

    motif = motif_named("cpg")
    assert motif.model is not None
    noise = OF_PORES["r9"] if correlated else None
    call_methylation(_no_reads(), motif, builtin(motif.model), _HERE, per_site, noise=noise)


def _calls_table() -> None:
    from f5py.outputs.calls.calls_writer import CallsWriter

    CallsWriter(io.BytesIO(), 2, [], 6).format(_no_reads())


def _event_rows() -> None:
    from f5py.event_alignment.align import align_events

    align_events(_no_reads(), _model(), _HERE, None)


def _event_table() -> None:
    from f5py.outputs.events.eventalign_table import EventalignTable

    EventalignTable([], _model()).compile(_no_reads())


def _no_mapping() -> tuple[MappingBatch, ReferenceIndex, Parameters]:
    """Make a batch without reads, with the arrays that the stages of the mapper fill; an index; and the settings."""
    from f5py.mapping.index.reference_index import ReferenceIndex
    from f5py.mapping.settings import PRESETS, parameters

    offsets = np.zeros(1, np.int64)
    batch = MappingBatch(
        Names.of([]), _nothing(np.uint8), offsets, _nothing(np.uint8), _nothing(np.uint8), offsets,
    )  # fmt: skip
    batch.anchors = Anchors(
        _nothing(np.uint64), _nothing(np.int64), offsets, _nothing(np.int64), offsets, _nothing(np.int64),
        _nothing(np.int32), _nothing(np.int32),
    )  # fmt: skip
    hits = np.empty((0, N_FIELDS), np.int64)
    batch.hits = Hits(hits, offsets, _nothing(np.int64))
    batch.chained = ChainedHits(hits, offsets, _nothing(np.uint64), _nothing(np.int64), offsets)
    settings = PRESETS["map-ont"]
    index = ReferenceIndex(
        [], _nothing(np.uint8), offsets, _nothing(np.uint64), _nothing(np.int64), _nothing(np.int32), settings.k,
        settings.w, settings.hpc,
    )  # fmt: skip
    return batch, index, parameters(settings, 10)


def _seeds() -> None:
    from f5py.mapping.chain.chaining import score_chains
    from f5py.mapping.index.seeds import find_anchors

    batch, index, settings = _no_mapping()
    find_anchors(batch, index, settings, _HERE)
    score_chains(batch, settings, _HERE)


def _chained_hits() -> None:
    from f5py.mapping.hits.hits import chain_hits

    chain_hits(*_no_mapping(), _HERE)


def _hits() -> None:
    from f5py.mapping.hits.hits import align_hits

    align_hits(*_no_mapping(), _HERE)


def _ranks() -> None:
    from f5py.mapping.hits.hits import rank_hits

    batch, _, settings = _no_mapping()
    rank_hits(batch, settings, _HERE)


def _mapped_records() -> None:
    from f5py.outputs.mapped_records import RecordStyle, records_of

    batch, index, _ = _no_mapping()
    records_of(batch, index, Names.of([]), RecordStyle(md=True), _HERE)


def _mapped_lines() -> None:
    from f5py.outputs.mapped_records import RecordStyle, paf_lines_of

    batch, index, _ = _no_mapping()
    paf_lines_of(batch, index, Names.of([]), RecordStyle(), _HERE)


#: Functions that call a stage with a batch without reads, and so compile it.
STAGES: dict[str, Callable[[], None]] = {
    "calls": partial(_calls, per_site=False, correlated=False),
    "site calls": partial(_calls, per_site=True, correlated=False),
    "correlated calls": partial(_calls, per_site=False, correlated=True),
    "correlated site calls": partial(_calls, per_site=True, correlated=True),
    "event rows": _event_rows,
    "events": _events,
    "alignment": _alignment,
    "calls table": _calls_table,
    "event table": _event_table,
    "hits": _hits,
    "chained hits": _chained_hits,
    "mapped records": _mapped_records,
    "mapped lines": _mapped_lines,
    "seeds": _seeds,
    "ranks": _ranks,
}
#: What every run over signals needs besides its own.
OF_SIGNALS = ("events", "alignment")
