"""Per-read stages after event detection: scaling, alignment to the read's bases, and recalibration.

A read runs through all three in one claim of a worker: as separate stages, the short ones would wait for threads that
are busy with long stages of other batches.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from f5py.abea.align import F5C_LIMITS, AlignmentLimits, EventMap, align_read
from f5py.core.batch import Cause, ReadBatch, ReadStatus
from f5py.core.kmers import base_codes
from f5py.core.offsets import elements_of, offsets_of
from f5py.io.bytes.c_functions import clock_function
from f5py.jit.c_memory import address_of_data, call_with_two
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.pore_model.model import PoreModel
from f5py.signal.events import reverse_events
from f5py.signal.scaling import estimate_scaling, fill_ranks, recalibrate
from f5py.threads.pool import WorkerPool, longest_first

_CLOCK = time.CLOCK_MONOTONIC


@exact_inner
def _seconds(clock, spec):
    call_with_two(clock, _CLOCK, address_of_data(spec))
    return spec[0] + 1e-9 * spec[1]


@exact_kernel
def align_all(queue, reads, bases, events, base_map, scaling, found, settings):
    """Apply `fill_ranks`, `estimate_scaling`, `align_read` and, where that succeeds, `recalibrate` to `reads`.

    Parameters
    ----------
    bases : uint8, shape (n_bases,)
        Letters of the reads as sequenced.
    events : f5py.core.batch.Events
        Reversed for RNA.
    base_map : f5py.core.batch.BaseMap
        First events are filled, and last ones if the array is not empty.
    scaling : f5py.core.batch.Scaling
        Shift, in pA, and scale are filled; var only of aligned reads.
    found : tuple
        Aligned pairs, int32, shape (n_pairs, 2), and offsets of the reads' pairs; of each read the number of pairs,
        int64, events per base, float64, verdict, uint8, `f5py.abea.align.ALIGNED` or the reason, number of events of
        the recalibration, int64, only of aligned reads, and seconds of the alignment, float64. Filled.
    settings : tuple
        Levels of the model, codes of letters, `AlignmentLimits`, RNA or not, and the address of C's ``clock_gettime``.
    """
    model, codes, limits, is_rna, clock = settings
    aligned_pairs, pair_offsets, n_pairs_of, events_per_base, verdict, n_calibration, aligning = found
    spec = np.zeros(2, np.int64)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        first = base_map.offsets[read]
        stop = base_map.offsets[read + 1]
        end = stop - model.k + 1
        event_mean = events.mean[events.offsets[read] : events.offsets[read + 1]]
        kmer_rank = np.empty(end - first, np.int32)
        fill_ranks(bases[first:stop], model.k, codes, kmer_rank)
        shift, scale = estimate_scaling(event_mean, kmer_rank, model.level_mean)
        if is_rna:
            reverse_events(events, read)
        begun = _seconds(clock, spec)
        first_event = base_map.first_event[first:end]
        pairs = aligned_pairs[pair_offsets[read] : pair_offsets[read + 1]]
        event_map = EventMap(first_event, base_map.last_event[first:end], pairs)
        verdict[read], n_pairs, event_span = align_read(event_mean, kmer_rank, model, shift, scale, event_map, limits)
        aligning[read] = _seconds(clock, spec) - begun
        base_map.first_event[end:stop] = -1
        base_map.last_event[end:stop] = -1
        n_pairs_of[read] = n_pairs
        events_per_base[read] = event_span / (end - first)
        if n_pairs > 0:
            n_calibration[read], shift, scale, scaling.var[read] = recalibrate(
                event_mean, kmer_rank, first_event, model.level_mean, model.level_stdv
            )
        scaling.shift[read], scaling.scale[read] = shift, scale


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
    found = (
        batch.aligned_pairs, pair_offsets, batch.n_pairs, batch.events_per_base, batch.verdict, batch.n_calibration,
        aligning,
    )  # fmt: skip
    settings = (model.levels, base_codes(), limits, is_rna, clock_function())
    seconds = pool.run(
        align_all, longest_first(lengths + n_events, alignable & here), batch.bases, batch.events, batch.base_map,
        batch.scaling, found, settings, order=batch.number,
    )  # fmt: skip
    alignment = float(aligning.sum())
    return alignment, max(seconds - alignment, 0.0)
