"""Event detection: cutting the raw signal into stretches of one current level.

The method is scrappie's: t-statistics between the samples left and right of every position, for a short and a long
window, and a peak detector on each; a strong short peak silences the long detector around it. Event boundaries are
the peaks. Statistics are computed from cumulative sums in double precision, mixed with single precision in the
places where the reference does, because boundaries depend on exact comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from f5py.core.batch import ReadBatch, ReadStatus, offsets_of
from f5py.core.workers import WorkerPool, longest_first


@dataclass(frozen=True)
class EventParameters:
    """Windows in samples, thresholds and peak height in units of the t-statistic."""

    window_short: int
    window_long: int
    threshold_short: float
    threshold_long: float
    peak_height: float


DNA = EventParameters(3, 6, 1.4, 9.0, 0.2)
RNA = EventParameters(7, 14, 2.5, 9.0, 1.0)


def detect_events(batch: ReadBatch, parameters: EventParameters, pool: WorkerPool) -> None:
    """Fill the batch's event arrays from its samples.

    Parameters
    ----------
    batch : ReadBatch
        Samples and calibration are read; `event_offsets`, `event_start`, `event_length`, `event_mean` and
        `event_stdv` are filled. Reads that have dropped out get no events.
    parameters : EventParameters
    pool : WorkerPool
    """
    from f5py.signal._events_numba import find_boundaries, summarise_events

    n_samples = batch.n_samples
    wanted = (batch.status == ReadStatus.OK) & (n_samples > 0)
    order = longest_first(n_samples, wanted)
    # Two boundaries of one detector are more than half a window apart, so a read cannot have more than these.
    capacity = n_samples // (parameters.window_short // 2 + 1) + n_samples // (parameters.window_long // 2 + 1) + 2
    slots = offsets_of(capacity * wanted)
    boundaries = np.empty(slots[-1], np.int32)  # mostly never touched, so never given memory
    n_boundaries = np.zeros(len(batch), np.int64)
    window_short, window_long = parameters.window_short, parameters.window_long
    threshold_short = np.float32(parameters.threshold_short)
    threshold_long = np.float32(parameters.threshold_long)
    peak_height = np.float32(parameters.peak_height)
    sample_offsets = batch.sample_offsets

    def find(read: int) -> None:
        n_boundaries[read] = find_boundaries(
            batch.samples[sample_offsets[read] : sample_offsets[read + 1]],
            batch.offset[read],
            batch.unit[read],
            window_short,
            window_long,
            threshold_short,
            threshold_long,
            peak_height,
            boundaries[slots[read] : slots[read + 1]],
        )

    pool.run(find, order)

    batch.event_offsets = offsets_of((n_boundaries + 1) * wanted)
    n_events = batch.event_offsets[-1]
    batch.event_start = np.empty(n_events, np.int32)
    batch.event_length = np.empty(n_events, np.int32)
    batch.event_mean = np.empty(n_events, np.float32)
    batch.event_stdv = np.empty(n_events, np.float32)

    def summarise(read: int) -> None:
        first, end = batch.event_offsets[read], batch.event_offsets[read + 1]
        summarise_events(
            batch.samples[sample_offsets[read] : sample_offsets[read + 1]],
            batch.offset[read],
            batch.unit[read],
            boundaries[slots[read] : slots[read] + n_boundaries[read]],
            batch.event_start[first:end],
            batch.event_length[first:end],
            batch.event_mean[first:end],
            batch.event_stdv[first:end],
        )

    pool.run(summarise, order)


def reverse_events(batch: ReadBatch) -> None:
    """Put each read's events into the order of the bases' 5' to 3' direction, as RNA needs it.

    RNA goes through the pore with the 3' end first. Starts in samples stay what they are, so that they descend then.
    """
    for read in np.flatnonzero(batch.n_events).tolist():
        events = slice(batch.event_offsets[read], batch.event_offsets[read + 1])
        for array in (batch.event_start, batch.event_length, batch.event_mean, batch.event_stdv):
            array[events] = array[events][::-1].copy()
