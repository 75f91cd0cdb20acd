"""CPU stages from samples to the recalibrated alignment, shared by all signal commands."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.abea.align import F5C_LIMITS, AlignmentLimits, drop_over_segmented, drop_unaligned
from f5py.compute.aligned_reads import align_reads
from f5py.core.batch import ReadBatch
from f5py.event_alignment.align import RowOffload
from f5py.methylation.calls import ScoreOffload
from f5py.pore_model.model import PoreModel
from f5py.signal.events import EventOffload, EventParameters, detect_events
from f5py.signal.scaling import QualityLimits, drop_short, drop_unfit
from f5py.threads.pool import WorkerPool


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
        """Wait for the alignment, and fill the events and all results of `align_reads` except those of `fetch_fit`.

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

        Parameters
        ----------
        gpu_slice : BatchSlice, optional
            Event detection of its reads has begun. The samples are kept, as it may fail.
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
