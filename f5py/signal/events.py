"""Event detection: segment the raw signal into stretches of one current level.

The method is scrappie's (f5c's events.c): t-statistics between the samples left and right of every position, for a
short and a long window, and a peak detector on each. A strong short peak silences the long detector around it. The
peaks are the event boundaries. Single and double precision are mixed as in f5c: boundaries depend on exact comparisons.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.core._stored_samples_numba import expand_pieces
from f5py.core.batch import Events, ReadBatch, ReadStatus
from f5py.core.large_arrays import recycled_array
from f5py.core.offsets import offsets_of
from f5py.jit.c_memory import address_of_data
from f5py.jit.instructions import lowest_bit
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.simd import LANES
from f5py.jit.work_queue import add_to, claimed_indices, work_counter
from f5py.signal.peaks import (
    CHUNK,
    FLOOR,
    LONG,
    N_STATES,
    POSITION,
    WARM_UP,
    SignalStretches,
    advance_detectors,
    copy_lane,
    copy_states,
    reset_states,
    shift_states,
    states_agree,
    transpose,
)
from f5py.signal.t_statistics import CumulativeSums, t_statistics
from f5py.threads.pool import WorkerPool, longest_first, threads_for

#: Up to this many events are copied by the calling thread alone.
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


class Boundaries(NamedTuple):
    """Start of a read's open event, and the boundaries after it in the current block."""

    positions: NDArray[np.int64]
    sums: NDArray[np.float64]  # of the samples before each boundary
    squares: NDArray[np.float64]
    last: NDArray[np.int64]  # shape (1,): index of the last boundary


class OpenPeaks(NamedTuple):
    """Open peaks of both detectors at the end of a block; they may become boundaries later."""

    positions: NDArray[np.int64]  # shape (2,): -1 without an open peak
    sums: NDArray[np.float64]  # shape (4,): sums of the samples before each, then of their squares


@exact_inner
def _append_boundary(position, total, square_total, boundaries):
    """Append a boundary with the sums before it."""
    last = boundaries.last[0] + 1
    boundaries.positions[last] = position
    boundaries.sums[last] = total
    boundaries.squares[last] = square_total
    boundaries.last[0] = last


@exact_inner
def _append_marked(begin, end, marks, sums, peaks, boundaries):
    """Append the marked boundaries of a block, after those of peaks that were open at its start."""
    first = 0 if peaks.positions[0] < peaks.positions[1] else 1
    for k in range(2):
        which = first ^ k
        at = peaks.positions[which]
        if at > boundaries.positions[boundaries.last[0]] and marks[at >> 6] >> np.uint64(at & 63) & np.uint64(1):
            _append_boundary(at, peaks.sums[which], peaks.sums[2 + which], boundaries)
    to = sums.lead - begin
    for word in range(begin >> 6, (end + 63) >> 6):
        left = marks[word]
        while left:
            position = 64 * word + lowest_bit(left)
            left &= left - np.uint64(1)
            _append_boundary(position, sums.values[to + position], sums.squares[to + position], boundaries)


@exact_inner
def _fill_events(boundaries, n, start, mean, stdv):
    """Fill the events between boundaries from event `n` on; return the new number, or -1 if full.

    The last boundary becomes the first one of the next block.
    """
    count = boundaries.last[0]
    if n < 0 or n + count > mean.shape[0]:
        boundaries.last[0] = 0
        return -1
    positions, sums, squares = boundaries.positions, boundaries.sums, boundaries.squares
    for j in range(count):  # vectorized
        e = np.uint64(j)
        width = np.float32(positions[e + np.uint64(1)] - positions[e])
        mean[np.uint64(n) + e] = np.float32(sums[e + np.uint64(1)] - sums[e]) / width
    if start.shape[0] > 0:
        for e in range(count):
            start[n + e] = positions[e]
            width = np.float32(positions[e + 1] - positions[e])
            variance = np.float32(squares[e + 1] - squares[e]) / width - mean[n + e] * mean[n + e]
            stdv[n + e] = np.sqrt(max(variance, np.float32(0.0)))
    positions[0], sums[0], squares[0] = positions[count], sums[count], squares[count]
    boundaries.last[0] = 0
    return n + count


@exact_inner
def _save_open_peaks(begin, end, states, sums, peaks):
    """Save the open peaks at the end of a block; lane 0 of `states` continues there."""
    for which in range(2):
        detector = which * LONG
        position = end + np.int64(states[(detector + POSITION) * LANES])
        if not states[(detector + FLOOR) * LANES] < 0:
            peaks.positions[which] = -1
        elif position >= begin:  # an earlier one is saved already
            peaks.positions[which] = position
            peaks.sums[which] = sums.values[sums.lead + position - begin]
            peaks.sums[2 + which] = sums.squares[sums.lead + position - begin]


#: Most positions of a stretch: the sums of a block of 16 stretches stay in the second-level cache.
_LONGEST = 1024
#: Samples summed at a time: they stay in the first-level cache.
_TOGETHER = 256


class _Scratch(NamedTuple):
    """Buffers of a thread, reused for all of its reads."""

    sums: CumulativeSums
    rows: NDArray[np.float32]  # shape (2 * 16 * CHUNK,): t-statistics of a chunk of all stretches, lane by lane
    columns: NDArray[np.float32]  # the same, position by position
    between: NDArray[np.float32]  # shape (16 * 16,): scratch space of `transpose`
    boundaries: Boundaries


@exact_inner
def _in_cache_lines(n):
    """Allocate zeros aligned to cache lines."""
    space = np.zeros(n + LANES, np.float32)
    first = -(address_of_data(space) >> 2) & (LANES - 1)
    return space[first : first + n]


@exact_inner
def scratch_for(parameters):
    """Allocate the buffers of `find_events`."""
    margin = parameters.window_long
    lead = WARM_UP + margin
    n = lead + LANES * _LONGEST + CHUNK + margin + 2
    chunk = 2 * CHUNK * LANES
    rows, columns, between = _in_cache_lines(chunk), _in_cache_lines(chunk), _in_cache_lines(LANES * LANES)
    most = LANES * _LONGEST + 4
    boundaries = Boundaries(
        np.zeros(most, np.int64), np.zeros(most, np.float64), np.zeros(most, np.float64), np.zeros(1, np.int64)
    )
    sums = CumulativeSums(np.empty(n, np.float64), np.empty(n, np.float64), lead)
    return _Scratch(sums, rows, columns, between, boundaries)


@exact_inner
def _add_samples(raw, offset, unit, first, end, begin, margin, sums):
    """Continue the cumulative sums of the block at sample `begin` with the samples from `first` to `end`."""
    at = sums.lead - begin
    values, squares = sums.values, sums.squares
    total, square_total = values[at + first], squares[at + first]
    for together in range(first, end, _TOGETHER):
        stop = min(together + _TOGETHER, end)
        to = np.uint64(at + together + 1)
        for j in range(stop - together):  # vectorized
            i = np.uint64(j)
            x = (np.float32(raw[np.uint64(together) + i]) + offset) * unit
            values[to + i] = x
            squares[to + i] = x * x
        for j in range(stop - together):
            i = np.uint64(j)
            total += values[to + i]
            square_total += squares[to + i]
            values[to + i] = total
            squares[to + i] = square_total
    if end == raw.shape[0]:
        for i in range(at + end + 1, at + end + 1 + CHUNK + margin):  # read, but not used
            values[i], squares[i] = total, square_total


@exact_inner
def _scan_stretches(scratch, begin, first, end, parameters, n_samples, stretches):
    """Detect peaks at the positions from `first` to `end` of all stretches.

    The loops over stretches are in the called functions: counting a reference to an array costs as much as three
    positions.
    """
    sums, rows, columns, between, _ = scratch
    begins, short, long = stretches.begin, parameters.window_short, parameters.window_long
    for position in range(first, end, CHUNK):
        t_statistics(sums, begin, begins, position, short, n_samples, rows, 0)
        t_statistics(sums, begin, begins, position, long, n_samples, rows, LANES * CHUNK)
        transpose(rows, columns, between)
        advance_detectors(columns, position, parameters, stretches)


@exact_inner
def _mark_boundaries(begin, length, parameters, n_samples, stretches, entered, shifted, scratch):
    """Mark the boundaries found in the block of 16 stretches at sample `begin`.

    Lane 0 starts in the states of `shifted`, which are replaced by its states after the block.
    """
    states = stretches.states
    for lane in range(LANES):
        stretches.begin[lane] = begin + lane * length
        stretches.limit[lane] = -np.inf
    reset_states(states)
    copy_states(shifted, entered)
    warm_up = WARM_UP
    for _ in range(LANES):  # each round makes one more lane exact
        _scan_stretches(scratch, begin, -warm_up, 0, parameters, n_samples, stretches)
        copy_lane(entered, 0, states)
        copy_states(states, entered)
        for lane in range(LANES):
            stretches.limit[lane] = min(n_samples - stretches.begin[lane], length)
        for word in range(begin >> 6, min((begin + LANES * length) >> 6, stretches.marks.shape[0])):
            stretches.marks[word] = np.uint64(0)
        _scan_stretches(scratch, begin, 0, length, parameters, n_samples, stretches)
        shift_states(states, length, shifted)
        agree = True
        for lane in range(1, LANES):
            agree = agree and (stretches.begin[lane] >= n_samples or states_agree(shifted, entered, lane))
        if agree:
            break
        copy_states(shifted, states)
        warm_up = 0


@exact_inner
def find_events(raw, offset, unit, parameters, scratch, start, mean, stdv):
    """Find the events of one read; return their number, or -1 if the arrays are too small.

    Samples, ``(raw + offset) * unit`` pA, are summed over the whole read: so rounding is f5c's. `start` (int32), `mean`
    and `stdv` (float32) are filled; `start` and `stdv` may be empty.
    """
    n_samples, margin, sums = raw.shape[0], parameters.window_long, scratch.sums
    n_blocks = n_samples // (LANES * _LONGEST) + 1  # of the same length
    length = (n_samples // (n_blocks * LANES * CHUNK) + 1) * CHUNK
    stretches = SignalStretches(
        np.empty(LANES, np.int64), np.empty(LANES, np.float32), np.empty(N_STATES * LANES, np.float32),
        np.empty(2 * CHUNK, np.uint16), np.zeros(n_samples // 64 + 1, np.uint64),
    )  # fmt: skip
    entered, shifted = np.empty(N_STATES * LANES, np.float32), np.empty(N_STATES * LANES, np.float32)
    reset_states(shifted)
    boundaries = scratch.boundaries
    boundaries.positions[0] = boundaries.last[0] = 0
    boundaries.sums[0] = boundaries.squares[0] = 0.0
    n_events = 0
    peaks = OpenPeaks(np.full(2, -1, np.int64), np.zeros(4, np.float64))
    for i in range(sums.lead + 1):
        sums.values[i] = sums.squares[i] = 0.0
    n_summed = 0
    for begin in range(0, n_samples, LANES * length):
        if begin > 0:
            for i in range(sums.lead + margin + 1):
                sums.values[i] = sums.values[i + LANES * length]
                sums.squares[i] = sums.squares[i + LANES * length]
        end = min(n_samples, begin + LANES * length)
        to_sum = min(n_samples, end + margin)
        _add_samples(raw, offset, unit, n_summed, to_sum, begin, margin, sums)
        n_summed = to_sum
        _mark_boundaries(begin, length, parameters, n_samples, stretches, entered, shifted, scratch)
        _append_marked(begin, end, stretches.marks, sums, peaks, boundaries)
        if end < n_samples:
            _save_open_peaks(begin, end, shifted, sums, peaks)
        else:
            at = sums.lead + end - begin
            _append_boundary(end, sums.values[at], sums.squares[at], boundaries)
        n_events = _fill_events(boundaries, n_events, start, mean, stdv)
    return n_events


@exact_kernel
def find_all_events(queue, reads, signals, stored, parameters, most, n_used, places, found, n_events):
    """Apply `find_events` to `reads`; packed samples are expanded read by read.

    Parameters
    ----------
    most : int64, shape (n_reads,)
        Upper bounds of the numbers of events.
    n_used : int64, shape (1,)
        Number of events in `found`, a counter shared by the threads.
    places, n_events : int64, shape (n_reads,)
        Filled with the index in `found` of each read's first event, and their number.
    found : tuple of int32, float32, float32, shape (most.sum(),)
        Filled with first samples, and means and standard deviations in pA; all but the means may be empty.
    """
    start, mean, stdv = found
    has_all = start.shape[0] > 0
    size = np.int64(0)
    own_start, own_mean, own_stdv = np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.float32)
    scratch, expanded = scratch_for(parameters), np.empty(0, np.int16)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        n_samples, piece = signals.offsets[read + 1] - signals.offsets[read], stored.pieces[read]
        if stored.is_packed[piece]:
            if n_samples > expanded.shape[0]:
                expanded = np.empty(n_samples, np.int16)
            expand_pieces(stored, read, expanded, 0)
            raw = expanded[:n_samples]
        else:  # always one piece
            raw = stored.values[stored.places[piece] : stored.places[piece] + n_samples]
        if most[read] > size:
            size = most[read]
            own_mean = np.empty(size, np.float32)
            if has_all:
                own_start, own_stdv = np.empty(size, np.int32), np.empty(size, np.float32)
        offset, unit = signals.offset[read], signals.unit[read]
        n = find_events(raw, offset, unit, parameters, scratch, own_start, own_mean, own_stdv)
        place = add_to(n_used, n)
        n_events[read], places[read] = n, place
        for e in range(n):
            mean[place + e] = own_mean[e]
        if has_all:
            for e in range(n):
                start[place + e] = own_start[e]
                stdv[place + e] = own_stdv[e]


@exact_kernel
def copy_all_events(queue, reads, signals, places, found, events):
    """Copy the events of `reads` from the order in which they were found to that of the batch.

    Parameters
    ----------
    events : f5py.core.batch.Events
        Filled, but for the offsets; only the means if `start` is empty.
    """
    start, mean, stdv = found
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        place, first = places[read], events.offsets[read]
        n = events.offsets[read + 1] - first
        for e in range(n):
            events.mean[first + e] = mean[place + e]
        if events.start.shape[0] > 0:
            for e in range(n):
                events.start[first + e] = start[place + e]
                events.stdv[first + e] = stdv[place + e]
            for e in range(n - 1):
                events.length[first + e] = start[place + e + 1] - start[place + e]
            n_samples = signals.offsets[read + 1] - signals.offsets[read]
            events.length[first + n - 1] = n_samples - start[place + n - 1]


@exact_inner
def _reverse(values):
    n = values.shape[0]
    for i in range(n // 2):
        values[i], values[n - 1 - i] = values[n - 1 - i], values[i]


@exact_inner
def reverse_events(events, read):
    """Reverse the order of a read's events; starts, in samples, are not changed."""
    first = events.offsets[read]
    end = events.offsets[read + 1]
    _reverse(events.start[first:end])
    _reverse(events.length[first:end])
    _reverse(events.mean[first:end])
    _reverse(events.stdv[first:end])


class EventOffload(Protocol):
    """Event detection of some reads of a batch on another device."""

    @property
    def reads(self) -> NDArray[np.bool_]:
        """Mask of the offloaded reads."""

    def count(self) -> NDArray[np.int64]:
        """Wait for the device; return the number of events of each read, 0 for reads that are not offloaded.

        Reads that the device returns undone have 0, too, and leave `reads`.
        """


def most_boundaries(n_samples: NDArray[np.int64], parameters: EventParameters) -> NDArray[np.int64]:
    """Upper bound of the boundaries of each read: those of one detector are over half a window apart."""
    return n_samples // (parameters.window_short // 2 + 1) + n_samples // (parameters.window_long // 2 + 1) + 2


def detect_events(
    batch: ReadBatch,
    parameters: EventParameters,
    pool: WorkerPool,
    means_only: bool = False,
    elsewhere: EventOffload | None = None,
    keep_samples: bool = True,
) -> float:
    """Fill ``batch.events`` from the samples of its reads that are OK; return the threads' seconds.

    Parameters
    ----------
    means_only : bool
        Leave starts, lengths and standard deviations empty.
    elsewhere : EventOffload, optional
        Its reads get room in the arrays, which it fills itself.
    keep_samples : bool
        Do not release the samples after detection.
    """
    n_samples = batch.n_samples
    wanted = (batch.status == ReadStatus.OK) & (n_samples > 0)
    here = wanted if elsewhere is None else wanted & ~elsewhere.reads
    most = (most_boundaries(n_samples, parameters) + 1) * wanted
    n_most = most.sum()  # memory of events that are not found is never touched
    n_further = 0 if means_only else n_most
    found = (
        recycled_array(n_further, np.int32),
        recycled_array(n_most, np.float32),
        recycled_array(n_further, np.float32),
    )
    n_used, places, n_found = np.zeros(1, np.int64), np.zeros(len(batch), np.int64), np.zeros(len(batch), np.int64)

    def find(some: NDArray[np.int64]) -> float:
        inputs = batch.signals, batch.stored_samples, parameters
        return pool.run(find_all_events, some, *inputs, most, n_used, places, found, n_found, order=batch.number)

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
        batch.release("samples")  # frees their memory for the events
    offsets = offsets_of(n_found * here + others)
    n_events = offsets[-1]
    n_further = 0 if means_only else n_events
    batch.events = Events(
        offsets, np.empty(n_further, np.int32), np.empty(n_further, np.int32), np.empty(n_events, np.float32),
        np.empty(n_further, np.float32),
    )  # fmt: skip
    n_copied = int(n_found[reads].sum())
    threads = threads_for(pool, n_copied, _FEW_EVENTS) if n_copied else pool
    inputs = batch.signals, places, found
    return seconds + threads.run(copy_all_events, reads, *inputs, batch.events, order=batch.number)
