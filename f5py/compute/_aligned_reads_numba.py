"""Kernel that scales and aligns reads after event detection; see `f5py.compute.aligned_reads`."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.abea.align import AlignmentLimits, EventMap, align_read
from f5py.jit.c_memory import address_of_data, call_with_two
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.pore_model.model import Levels
from f5py.signal.events import reverse_events
from f5py.signal.scaling import estimate_scaling, fill_ranks, recalibrate

_CLOCK = time.CLOCK_MONOTONIC


class AlignmentSettings(NamedTuple):
    """Settings that all reads share."""

    model: Levels
    codes: NDArray[np.uint8]  # shape (256,): of the letters of bases
    limits: AlignmentLimits
    is_rna: bool  # the events are still to be reversed
    clock: int  # address of C's ``clock_gettime``


class AlignmentResults(NamedTuple):
    """Per-read results besides event maps and scaling."""

    pairs: NDArray[np.int32]  # shape (pair_offsets[-1], 2): see `f5py.abea.align.EventMap`
    pair_offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    n_pairs: NDArray[np.int64]  # shape (n_reads,)
    events_per_base: NDArray[np.float64]  # shape (n_reads,)
    verdict: NDArray[np.uint8]  # shape (n_reads,): `f5py.abea.align.ALIGNED` or why not
    n_calibration: NDArray[np.int64]  # shape (n_reads,)
    aligning: NDArray[np.float64]  # shape (n_reads,): seconds of the alignment alone


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
    found : AlignmentResults
        Filled; `n_calibration` only of aligned reads.
    """
    model = settings.model
    spec = np.zeros(2, np.int64)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        first = base_map.offsets[read]
        stop = base_map.offsets[read + 1]
        end = stop - model.k + 1
        event_mean = events.mean[events.offsets[read] : events.offsets[read + 1]]
        kmer_rank = np.empty(end - first, np.int32)
        fill_ranks(bases[first:stop], model.k, settings.codes, kmer_rank)
        shift, scale = estimate_scaling(event_mean, kmer_rank, model.level_mean)
        if settings.is_rna:
            reverse_events(events, read)
        begun = _seconds(settings.clock, spec)
        first_event = base_map.first_event[first:end]
        pairs = found.pairs[found.pair_offsets[read] : found.pair_offsets[read + 1]]
        event_map = EventMap(first_event, base_map.last_event[first:end], pairs)
        found.verdict[read], n_pairs, event_span = align_read(
            event_mean, kmer_rank, model, shift, scale, event_map, settings.limits
        )
        found.aligning[read] = _seconds(settings.clock, spec) - begun
        base_map.first_event[end:stop] = -1
        base_map.last_event[end:stop] = -1
        found.n_pairs[read] = n_pairs
        found.events_per_base[read] = event_span / (end - first)
        if n_pairs > 0:
            found.n_calibration[read], shift, scale, scaling.var[read] = recalibrate(
                event_mean, kmer_rank, first_event, model.level_mean, model.level_stdv
            )
        scaling.shift[read], scaling.scale[read] = shift, scale
