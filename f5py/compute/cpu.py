"""From samples to recalibrated alignments: what all commands on signals compute, on the CPU threads."""

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
from f5py.methylation.calls import ScoredElsewhere
from f5py.pore_model.model import PoreModel
from f5py.signal.events import EventOffload, EventParameters, detect_events
from f5py.signal.scaling import QualityLimits, drop_short, drop_unfit
from f5py.threads.pool import WorkerPool


class StageTimes:
    """Seconds of each compute stage: those of all worker threads together, divided by their number.

    Several batches are computed at the same time, so that wall times would count the same second more than once.
    """

    def __init__(self, n_threads: int) -> None:
        self.seconds: dict[str, float] = {"Events": 0.0, "Alignment": 0.0, "Estimate scaling": 0.0}
        self.output = 0.0
        #: Worker threads, those of other processes included.
        self.n_threads = n_threads
        self._lock = threading.Lock()

    def add(self, name: str, thread_seconds: float) -> None:
        """Add to a stage what the threads together have worked."""
        with self._lock:
            self.seconds[name] = self.seconds.get(name, 0.0) + thread_seconds / self.n_threads


class Share(EventOffload, ScoredElsewhere, RowOffload, Protocol):
    """Reads of a batch that are computed elsewhere meanwhile; each step is asked for when it can begin."""

    def align(self, batch: ReadBatch) -> None:
        """Begin with all that follows the events, for those of its reads that have not dropped out."""
        ...

    def fetch_maps(self, batch: ReadBatch) -> None:
        """Wait until all is done, and fill the events, and what `align_reads` fills but for what `fetch_fit` does.

        With `SignalStages.leaves_events` neither the events nor the maps of bases to them.
        """
        ...

    def fetch_fit(self, batch: ReadBatch) -> None:
        """Fill `n_calibration`, and `shift`, `scale` and `var` of the recalibrated alignment."""
        ...


@dataclass
class SignalStages:
    """Fills a loaded batch's arrays up to the recalibrated alignment of events to the read's bases."""

    parameters: EventParameters
    rna: bool  # reads go through the pore with the 3' end first
    model: PoreModel
    pool: WorkerPool
    times: StageTimes
    limits: AlignmentLimits = F5C_LIMITS
    quality: QualityLimits = field(default_factory=QualityLimits)
    means_only: bool = False  # of the events only the means are needed
    # the events, and the first one of each base, are needed only by what scores them: a share that does so itself keeps
    # those of its reads. The last one of each base is not needed at all.
    leaves_events: bool = False
    keep_pairs: bool = False  # the aligned pairs are wanted too
    keep_samples: bool = False  # do not release the samples after event detection
    results: str = ""  # what `finish` makes: ``calls``, ``sites``, ``rows`` or nothing that a share helps with
    # called at the end with the batch and its share, if it has one; returns the seconds that all threads together have
    # worked. May be called again for a batch.
    finish: Callable[[ReadBatch, Share | None], float] | None = None
    # called with the batch after each of two parts of the work on it, and after `finish`
    after_part: Callable[[ReadBatch], None] = lambda batch: None

    def compute(self, batch: ReadBatch, share: Share | None = None) -> None:
        """Fill the batch's arrays. May be called in several threads, with a batch in each.

        Parameters
        ----------
        share : Share, optional
            Has begun with the events of its reads. The samples are kept then: it may fail.
        """
        pool, times = self.pool, self.times
        keep_samples = self.keep_samples or share is not None
        times.add("Events", detect_events(batch, self.parameters, pool, self.means_only, share, keep_samples))
        self.after_part(batch)
        here: NDArray[np.bool_] | bool = True if share is None else ~share.reads
        drop_short(batch, self.model)
        drop_over_segmented(batch, self.limits)
        if share is not None:
            share.align(batch)
        seconds = align_reads(
            batch, self.model, pool, self.limits, is_rna=self.rna, keep_pairs=self.keep_pairs,
            firsts_only=self.leaves_events, here=here,
        )  # fmt: skip
        times.add("Alignment", seconds.alignment)
        times.add("Estimate scaling", seconds.scaling)
        if share is not None:
            share.fetch_maps(batch)
        drop_unaligned(batch)
        if share is not None:
            share.fetch_fit(batch)
        drop_unfit(batch, self.quality)
        self.after_part(batch)
        if self.finish is not None:
            times.add("HMM", self.finish(batch, share))
            self.after_part(batch)

    def close(self) -> None:
        """Nothing: the pool belongs to the caller."""
