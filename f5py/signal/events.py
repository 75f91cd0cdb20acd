"""Event detection: cutting the raw signal into stretches of one current level.

The method is scrappie's: t-statistics between the samples left and right of every position, for a short and a long
window, and a peak detector on each; a strong short peak silences the long detector around it. Event boundaries are
the peaks. Statistics are computed from cumulative sums in double precision, mixed with single precision in the
places where f5c does, because boundaries depend on exact comparisons.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import Events, ReadBatch, ReadStatus
from f5py.core.large_arrays import recycled_array
from f5py.core.offsets import offsets_of
from f5py.threads.pool import WorkerPool, longest_first, threads_for

#: So many events are copied by the thread that needs them before those of the pool are done with what they are at.
_FEW_EVENTS = 1 << 17


class EventParameters(NamedTuple):
    """Windows in samples, thresholds and peak height in units of the t-statistic."""

    window_short: int
    window_long: int
    threshold_short: np.float32
    threshold_long: np.float32
    peak_height: np.float32


DNA = EventParameters(3, 6, np.float32(1.4), np.float32(9.0), np.float32(0.2))
RNA = EventParameters(7, 14, np.float32(2.5), np.float32(9.0), np.float32(1.0))


class EventsElsewhere(Protocol):
    """Something that finds the events of some reads of a batch at the same time."""

    @property
    def reads(self) -> NDArray[np.bool_]:
        """Which reads of the batch."""
        ...

    def count(self) -> NDArray[np.int64]:
        """Wait for it; return the number of events of each read of the batch, 0 for those that it does not have.

        Reads that it gives back have 0 too, and are not among `reads` from now on.
        """
        ...


def most_boundaries(n_samples: NDArray[np.int64], parameters: EventParameters) -> NDArray[np.int64]:
    """Bound the number of boundaries of reads: two of one detector are more than half a window apart."""
    return n_samples // (parameters.window_short // 2 + 1) + n_samples // (parameters.window_long // 2 + 1) + 2


def detect_events(
    batch: ReadBatch,
    parameters: EventParameters,
    pool: WorkerPool,
    means_only: bool = False,
    elsewhere: EventsElsewhere | None = None,
    keep_samples: bool = True,
) -> float:
    """Fill the batch's event arrays from its samples.

    Return the seconds that all threads together have worked.

    Parameters
    ----------
    batch : ReadBatch
        Samples and calibration are read; `event_offsets`, `event_start`, `event_length`, `event_mean` and
        `event_stdv` are filled. Reads that have dropped out get no events.
    means_only : bool
        Leave `event_start`, `event_length` and `event_stdv` empty.
    elsewhere : EventsElsewhere, optional
        The arrays get room for its reads, but what is in there is left to it.
    keep_samples : bool
        Do not release the samples when the events have been found.
    """
    from f5py.signal._events_numba import Room, find_all_events, take_all_events

    n_samples = batch.n_samples
    wanted = (batch.status == ReadStatus.OK) & (n_samples > 0)
    here = wanted if elsewhere is None else wanted & ~elsewhere.reads
    most = (most_boundaries(n_samples, parameters) + 1) * wanted
    n_most = most.sum()  # what lies beyond those that are found is never touched, and so never given memory
    n_further = 0 if means_only else n_most
    found = (
        recycled_array(n_further, np.int32),
        recycled_array(n_most, np.float32),
        recycled_array(n_further, np.float32),
    )
    room = Room(most, np.zeros(1, np.int64), np.zeros(len(batch), np.int64))
    n_found = np.zeros(len(batch), np.int64)

    def find(some: NDArray[np.int64]) -> float:
        inputs = batch.signals, batch.stored_samples, parameters
        return pool.run(find_all_events, some, *inputs, room, found, n_found, order=batch.number)

    reads = longest_first(n_samples, here)
    seconds = find(reads)
    others: NDArray[np.int64] | int = 0
    if elsewhere is not None:
        others = elsewhere.count()
        given_back = wanted & ~here & (others == 0)
        seconds += find(longest_first(n_samples, given_back))
        here = here | given_back
        reads = longest_first(n_samples, here)
    if not keep_samples:
        batch.release("samples")  # the events are made of their memory
    offsets = offsets_of(n_found * here + others)
    n_events = offsets[-1]
    n_further = 0 if means_only else n_events
    batch.events = Events(
        offsets, np.empty(n_further, np.int32), np.empty(n_further, np.int32), np.empty(n_events, np.float32),
        np.empty(n_further, np.float32),
    )  # fmt: skip
    inputs = batch.signals, room.places, found
    n_taken = int(n_found[reads].sum())
    threads = threads_for(pool, n_taken, _FEW_EVENTS) if n_taken else pool
    return seconds + threads.run(take_all_events, reads, *inputs, batch.events, order=batch.number)
