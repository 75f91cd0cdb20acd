"""CPU stages from samples to the recalibrated alignment, shared by all signal commands.

After event detection a read is scaled, aligned to its bases and recalibrated in one claim of a worker: as separate
stages, the short ones would wait for threads that are busy with long stages of other batches.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.abea.align import F5C_LIMITS, AlignmentLimits, EventMap, align_read, drop_over_segmented, drop_unaligned
from f5py.core.batch import Cause, ReadBatch, ReadStatus
from f5py.core.kmers import base_codes
from f5py.core.offsets import elements_of, offsets_of
from f5py.event_alignment.align import RowOffload
from f5py.jit.c_memory import address_of_data, call_with_two, clock_function
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.methylation.calls import ScoreOffload
from f5py.pore_model.model import PoreModel
from f5py.signal.events import EventOffload, EventParameters, detect_events, reverse_events
from f5py.signal.scaling import QualityLimits, drop_short, drop_unfit, estimate_scaling, fill_ranks, recalibrate
from f5py.threads.pool import WorkerPool, longest_first

_CLOCK = time.CLOCK_MONOTONIC


@exact_inner
def _seconds(clock, spec):
    call_with_two(clock, _CLOCK, address_of_data(spec))
    return spec[0] + 1e-9 * spec[1]


@exact_kernel
def align_all(queue, reads, bases, events, base_map, scaling, found, settings):
    """Rank, scale and align `reads`, and recalibrate the aligned ones.

    Parameters
    ----------
    bases, events : uint8, f5py.core.batch.Events
        Letters of the reads as sequenced; events are reversed for RNA.
    base_map, scaling : f5py.core.batch.BaseMap, f5py.core.batch.Scaling
        Filled; var only of aligned reads, last events if the array is not empty.
    found, settings : tuple
        See `align_reads`; `found` is filled, and the clock is C's ``clock_gettime``.
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
    """Align the events of every read to its k-mers. Return the thread seconds of the alignment, and of all else.

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


class StageTimes:
    """Seconds of each compute stage: the thread seconds divided by the number of threads.

    Wall times would count a second several times, as several batches are computed at once.
    """

    def __init__(self, n_threads: int) -> None:
        self.seconds: dict[str, float] = {"Events": 0.0, "Alignment": 0.0, "Estimate scaling": 0.0}
        self.output = 0.0
        #: Worker threads, those of other processes included.
        self.n_threads = n_threads
        self._lock = threading.Lock()

    def add(self, name: str, thread_seconds: float) -> None:
        with self._lock:
            self.seconds[name] = self.seconds.get(name, 0.0) + thread_seconds / self.n_threads


class BatchSlice(EventOffload, ScoreOffload, RowOffload, Protocol):
    """Reads of a batch that a GPU computes; each step is started as soon as its input is complete."""

    def align(self, batch: ReadBatch) -> None:
        """Start scaling and alignment of the reads that have not failed."""
        ...

    def fetch_event_map(self, batch: ReadBatch) -> None:
        """Wait for the alignment, and fill the events and the results of `align_reads` but for the fit.

        With `SignalStages.skip_event_copy`, events and event maps stay on the device.
        """
        ...

    def fetch_fit(self, batch: ReadBatch) -> None:
        """Fill `n_calibration`, `shift`, `scale` and `var` of the recalibrated alignment."""
        ...


@dataclass
class SignalStages:
    """Stages from a loaded batch to the recalibrated alignment of events to the read's bases."""

    parameters: EventParameters
    rna: bool  # reads go through the pore with the 3' end first
    model: PoreModel
    pool: WorkerPool
    times: StageTimes
    limits: AlignmentLimits = F5C_LIMITS
    quality: QualityLimits = field(default_factory=QualityLimits)
    means_only: bool = False  # compute only the means of events
    # only scoring needs the events and the first one of each base: a GPU that scores keeps those of its reads; the
    # last event of each base is not filled
    skip_event_copy: bool = False
    keep_pairs: bool = False
    keep_samples: bool = False
    results: str = ""  # results of `finish` that a GPU computes: ``calls``, ``sites``, ``rows`` or none
    # last stage; returns its thread seconds; may be called again for a batch
    finish: Callable[[ReadBatch, BatchSlice | None], float] | None = None
    # called after each of two parts of the work on a batch, and after `finish`
    after_part: Callable[[ReadBatch], None] = lambda batch: None

    def compute(self, batch: ReadBatch, gpu_slice: BatchSlice | None = None) -> None:
        """Fill the batch's arrays; thread-safe for distinct batches.

        Event detection of `gpu_slice` has begun; the samples are kept, as it may fail.
        """
        pool, times = self.pool, self.times
        keep_samples = self.keep_samples or gpu_slice is not None
        times.add("Events", detect_events(batch, self.parameters, pool, self.means_only, gpu_slice, keep_samples))
        self.after_part(batch)
        here: NDArray[np.bool_] | bool = True if gpu_slice is None else ~gpu_slice.reads
        drop_short(batch, self.model)
        drop_over_segmented(batch, self.limits)
        if gpu_slice is not None:
            gpu_slice.align(batch)
        alignment, scaling = align_reads(
            batch, self.model, pool, self.limits, is_rna=self.rna, keep_pairs=self.keep_pairs,
            firsts_only=self.skip_event_copy, here=here,
        )  # fmt: skip
        times.add("Alignment", alignment)
        times.add("Estimate scaling", scaling)  # with k-mer ranks, and the reversal of events for RNA
        if gpu_slice is not None:
            gpu_slice.fetch_event_map(batch)
        drop_unaligned(batch)
        if gpu_slice is not None:
            gpu_slice.fetch_fit(batch)
        drop_unfit(batch, self.quality)
        self.after_part(batch)
        if self.finish is not None:
            times.add("HMM", self.finish(batch, gpu_slice))
            self.after_part(batch)

    def close(self) -> None:
        """Do nothing: the caller owns the pool."""
