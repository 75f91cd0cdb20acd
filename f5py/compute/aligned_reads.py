"""Per-read stages after event detection: scaling, alignment to the read's bases, and recalibration.

A read runs through all three in one claim of a worker: as separate stages, the short ones would wait for threads that
are busy with long stages of other batches.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.abea.align import F5C_LIMITS, AlignmentLimits
from f5py.core.batch import Cause, ReadBatch, ReadStatus
from f5py.core.kmers import base_codes
from f5py.core.offsets import elements_of, offsets_of
from f5py.io.bytes.c_functions import clock_function
from f5py.pore_model.model import PoreModel
from f5py.threads.pool import WorkerPool, longest_first


def align_reads(
    batch: ReadBatch,
    model: PoreModel,
    pool: WorkerPool,
    limits: AlignmentLimits = F5C_LIMITS,
    *,
    is_rna: bool = False,
    keep_pairs: bool = False,
    firsts_only: bool = False,
    here: NDArray[np.bool_] | bool = True,
) -> tuple[float, float]:
    """Align the events of every read to its k-mers; return the thread seconds of the alignment, and of all else.

    Fills `shift`, `scale`, `base_map`, `n_pairs`, `events_per_base` and `verdict`, for aligned reads `var` and
    `n_calibration`, and with `keep_pairs` `aligned_pairs`. A read without an alignment has ``n_pairs == 0`` and
    moment estimates of its scaling; see `f5py.abea.align.drop_unaligned`. Letters that are no base count as A, U as T.

    Parameters
    ----------
    is_rna : bool
        Reverse the events, as RNA enters the pore with its 3' end; starts in samples then descend.
    firsts_only : bool
        Leave `base_map.last_event` empty.
    here : bool, shape (n,), optional
        Compute only these reads; arrays have room for all.
    """
    from f5py.compute._aligned_reads_numba import AlignmentResults, AlignmentSettings, align_all

    n, lengths, n_events = len(batch), batch.read_length, batch.n_events
    batch.shift, batch.scale = np.zeros(n, np.float32), np.zeros(n, np.float32)
    batch.var = np.ones(n, np.float32)
    # filled by the worker threads: for long reads that takes as long as aligning
    n_bases = len(batch.bases)
    first_event, last_event = np.empty(n_bases, np.int32), np.empty(0 if firsts_only else n_bases, np.int32)
    batch.base_map = batch.base_map._replace(first_event=first_event, last_event=last_event)
    batch.n_pairs = np.zeros(n, np.int64)
    batch.events_per_base = np.zeros(n, np.float64)
    batch.verdict = np.full(n, Cause.NOT_SPANNING, np.uint8)
    batch.n_calibration = np.zeros(n, np.int64)
    alignable = batch.status == ReadStatus.OK
    if not alignable.all():
        unaligned = elements_of(batch.base_offsets[:-1][~alignable], lengths[~alignable])
        for events in (first_event, last_event):
            if len(events):
                events[unaligned] = -1
    pair_offsets = np.zeros(n + 1, np.int64)
    if keep_pairs:
        # A path has at most one pair per event and one per k-mer.
        pair_offsets = batch.pair_offsets = offsets_of((lengths + n_events) * alignable)
        batch.aligned_pairs = np.empty((batch.pair_offsets[-1], 2), np.int32)
    aligning = np.zeros(n)
    found = AlignmentResults(
        batch.aligned_pairs, pair_offsets, batch.n_pairs, batch.events_per_base, batch.verdict, batch.n_calibration,
        aligning,
    )  # fmt: skip
    settings = AlignmentSettings(model.levels, base_codes(), limits, is_rna, clock_function())
    seconds = pool.run(
        align_all, longest_first(lengths + n_events, alignable & here), batch.bases, batch.events, batch.base_map,
        batch.scaling, found, settings, order=batch.number,
    )  # fmt: skip
    alignment = float(aligning.sum())
    return alignment, max(seconds - alignment, 0.0)
