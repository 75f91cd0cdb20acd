"""Stages of runs over signals, by calls that compile them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from f5py.core.batch import Calls, Events, ReadBatch, Rows, empty
from f5py.io.signals import SignalBlock
from f5py.pipeline.sequence_loader import unmapped_batch
from f5py.threads.pool import CallingThread

if TYPE_CHECKING:
    from f5py.pore_model.model import PoreModel

_HERE: Any = CallingThread()


def _model() -> PoreModel:
    from f5py.pore_model import builtin

    return builtin("r9.4_450bps.nucleotide.6mer")


def _no_reads() -> ReadBatch:
    """Make a batch without reads but with arrays of the usual types."""
    offsets = np.zeros(1, np.int64)
    signals = SignalBlock(empty(np.int16), offsets, np.empty((5, 0), np.float32), {})
    batch = unmapped_batch(0, [], empty(np.uint8), offsets, signals)
    batch.events = Events.none()._replace(offsets=offsets)
    batch.rows = Rows.none()._replace(offsets=offsets, n=empty(np.int64))
    batch.shift = batch.scale = batch.var = empty(np.float32)
    batch.calls = Calls.none()._replace(offsets=offsets, n=empty(np.int64))
    return batch


def _events() -> None:
    from f5py.compute.chemistry import R9_DNA
    from f5py.signal.events import detect_events

    detect_events(_no_reads(), R9_DNA.event_parameters, _HERE, means_only=True)


def _alignment() -> None:
    from f5py.compute.cpu import align_reads

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
    from f5py.outputs.calls.calls_table import CallsText

    CallsText(2, [], 6).format(_no_reads(), 0, 0)


def _event_rows() -> None:
    from f5py.event_alignment.align import align_events

    align_events(_no_reads(), _model(), _HERE, None)


def _event_table() -> None:
    from f5py.outputs.events.eventalign_table import EventalignTable

    EventalignTable([], _model()).compile(_no_reads())


#: See `f5py.jit.warm_up.Stages`.
STAGES: dict[str, Callable[[], object]] = {
    "calls": partial(_calls, per_site=False, correlated=False),
    "site calls": partial(_calls, per_site=True, correlated=False),
    "correlated calls": partial(_calls, per_site=False, correlated=True),
    "correlated site calls": partial(_calls, per_site=True, correlated=True),
    "event rows": _event_rows,
    "events": _events,
    "alignment": _alignment,
    "calls table": _calls_table,
    "event table": _event_table,
}
#: What every run over signals needs besides its own.
OF_SIGNALS = ("events", "alignment")
