"""Jitted loops of event detection; see `f5py.signal.events` for what they compute."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._turns_numba import counter, own_turns
from f5py.io.signals._stored_numba import expand_pieces
from f5py.jit.atomics import add_to
from f5py.jit.c_memory import address_of_data
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.simd import LANES
from f5py.signal._boundaries_numba import (
    Boundaries,
    OpenPeaks,
    append_boundary,
    fill_events,
    keep_open_peaks,
    take_boundaries,
)
from f5py.signal._peaks_numba import (
    CHUNK,
    N_STATES,
    WARM_UP,
    Stretches,
    copy_lane,
    copy_states,
    forget,
    go_through,
    is_same,
    shift,
    transpose,
)
from f5py.signal._t_statistics_numba import Sums, t_statistics

#: Most positions of a stretch: the sums along sixteen of them, a block, stay in the second-level cache.
_LONGEST = 1024
#: Samples that are summed up at a time: they stay in the first-level cache.
_TOGETHER = 256


class _Statistics(NamedTuple):
    """Scratch space for the statistics of a chunk of all stretches: lane by lane, and position by position."""

    rows: NDArray[np.float32]  # shape (2 * 16 * CHUNK,)
    columns: NDArray[np.float32]  # shape (2 * 16 * CHUNK,)
    between: NDArray[np.float32]  # shape (16 * 16,): scratch space of `transpose`


class _Scratch(NamedTuple):
    """What a thread finds events with, read after read; it stays in the second-level cache."""

    sums: Sums
    statistics: _Statistics
    boundaries: Boundaries


@exact_inner
def _in_cache_lines(n):
    """Make an array of zeros of which no vector lies in two lines of the cache, if it begins at a multiple of 16."""
    space = np.zeros(n + LANES, np.float32)
    first = -(address_of_data(space) >> 2) & (LANES - 1)
    return space[first : first + n]


@exact_inner
def scratch_for(parameters):
    """Make scratch space for `find_events`."""
    margin = parameters.window_long
    lead = WARM_UP + margin
    n = lead + LANES * _LONGEST + CHUNK + margin + 2
    chunk = 2 * CHUNK * LANES
    statistics = _Statistics(_in_cache_lines(chunk), _in_cache_lines(chunk), _in_cache_lines(LANES * LANES))
    most = LANES * _LONGEST + 4
    boundaries = Boundaries(
        np.zeros(most, np.int64), np.zeros(most, np.float64), np.zeros(most, np.float64), np.zeros(1, np.int64)
    )
    return _Scratch(Sums(np.empty(n, np.float64), np.empty(n, np.float64), lead), statistics, boundaries)


@exact_inner
def _add_samples(raw, offset, unit, first, end, begin, margin, sums):
    """Go on with the sums from sample `first` on, those of the block that begins with sample `begin`."""
    at = sums.lead - begin
    values, squares = sums.values, sums.squares
    total, square_total = values[at + first], squares[at + first]
    for together in range(first, end, _TOGETHER):
        stop = min(together + _TOGETHER, end)
        to = np.uint64(at + together + 1)
        for j in range(stop - together):  # a loop of its own, which becomes vector code
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
        for i in range(at + end + 1, at + end + 1 + CHUNK + margin):  # never used: the statistic is zero there
            values[i], squares[i] = total, square_total


@exact_inner
def _go_through(sums, begin, first, end, parameters, n_samples, stretches, statistics):
    """Go through the positions from `first` up to `end` of all stretches.

    The loops over stretches are in what is called here: each array that is sliced, or taken from a tuple, is counted,
    which takes as long as three positions.
    """
    rows, columns, between = statistics.rows, statistics.columns, statistics.between
    begins, short, long = stretches.begin, parameters.window_short, parameters.window_long
    for position in range(first, end, CHUNK):
        t_statistics(sums, begin, begins, position, short, n_samples, rows, 0)
        t_statistics(sums, begin, begins, position, long, n_samples, rows, LANES * CHUNK)
        transpose(rows, columns, between)
        go_through(columns, position, parameters, stretches)


@exact_inner
def _mark_boundaries(begin, length, parameters, n_samples, stretches, entered, shifted, scratch):
    """Mark the boundaries that show themselves in the block of sixteen stretches that begins with sample `begin`.

    `shifted` has the states in which lane 0 begins, and is filled with those in which it goes on after the block.
    """
    states = stretches.states
    for lane in range(LANES):
        stretches.begin[lane] = begin + lane * length
        stretches.limit[lane] = -np.inf
    forget(states)
    copy_states(shifted, entered)
    warm_up = WARM_UP
    for _ in range(LANES):  # after each round, one lane more is surely right
        _go_through(scratch.sums, begin, -warm_up, 0, parameters, n_samples, stretches, scratch.statistics)
        copy_lane(entered, 0, states)
        copy_states(states, entered)
        for lane in range(LANES):
            stretches.limit[lane] = min(n_samples - stretches.begin[lane], length)
        for word in range(begin >> 6, min((begin + LANES * length) >> 6, stretches.marks.shape[0])):
            stretches.marks[word] = np.uint64(0)
        _go_through(scratch.sums, begin, 0, length, parameters, n_samples, stretches, scratch.statistics)
        shift(states, length, shifted)
        agree = True
        for lane in range(1, LANES):
            agree = agree and (stretches.begin[lane] >= n_samples or is_same(shifted, entered, lane))
        if agree:
            break
        copy_states(shifted, states)
        warm_up = 0


@exact_inner
def find_events(raw, offset, unit, parameters, scratch, start, mean, stdv):
    """Find the events of one read; return their number, or -1 if the arrays are too small.

    Parameters
    ----------
    raw : int16, shape (n,)
    offset, unit : float32
        Samples are ``(raw + offset) * unit`` pA.
    parameters : f5py.signal.events.EventParameters
    scratch : _Scratch
        See `scratch_for`.
    start : int32; mean, stdv : float32
        Filled with the first sample, the mean and the standard deviation of each event. The sums run over the whole
        read, so that their rounding is f5c's. `start` and `stdv` may have no elements.
    """
    n_samples, margin, sums = raw.shape[0], parameters.window_long, scratch.sums
    n_blocks = n_samples // (LANES * _LONGEST) + 1  # of the same length
    length = (n_samples // (n_blocks * LANES * CHUNK) + 1) * CHUNK
    stretches = Stretches(
        np.empty(LANES, np.int64), np.empty(LANES, np.float32), np.empty(N_STATES * LANES, np.float32),
        np.empty(2 * CHUNK, np.uint16), np.zeros(n_samples // 64 + 1, np.uint64),
    )  # fmt: skip
    entered, shifted = np.empty(N_STATES * LANES, np.float32), np.empty(N_STATES * LANES, np.float32)
    forget(shifted)
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
        take_boundaries(begin, end, stretches.marks, sums, peaks, boundaries)
        if end < n_samples:
            keep_open_peaks(begin, end, shifted, sums, peaks)
        else:
            append_boundary(
                end, sums.values[sums.lead + end - begin], sums.squares[sums.lead + end - begin], boundaries
            )
        n_events = fill_events(boundaries, n_events, start, mean, stdv)
    return n_events


class Room(NamedTuple):
    """Places of reads' events among those of the batch's others, in the order in which they are found."""

    most: NDArray[np.int64]  # shape (n_reads,): greatest number of events of each read
    used: NDArray[np.int64]  # shape (1,): number of all that have been found
    places: NDArray[np.int64]  # shape (n_reads,): place of the first event of each read; to be filled


@exact_kernel
def find_all_events(turn, reads, signals, stored, parameters, room, found, n_events):
    """Apply `find_events` to `reads`.

    Parameters
    ----------
    signals : f5py.core.batch.Signals
        But for the samples.
    stored : f5py.core.batch.StoredSamples
        Packed ones are expanded read by read: they stay in the caches, and take no memory of the batch.
    parameters : f5py.signal.events.EventParameters
    room : Room
        Places are filled.
    found : tuple of int32, float32, float32, shape (room.most.sum(),)
        Filled with first samples, and means and standard deviations in pA; only the means must have elements.
    n_events : int64, shape (n_reads,)
        Filled.
    """
    start, mean, stdv = found
    has_all = start.shape[0] > 0
    size = np.int64(0)
    own_start, own_mean, own_stdv = np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.float32)
    scratch, expanded = scratch_for(parameters), np.empty(0, np.int16)
    for i in own_turns(counter(turn), reads.shape[0]):
        read = reads[i]
        n_samples, piece = signals.offsets[read + 1] - signals.offsets[read], stored.pieces[read]
        if stored.is_packed[piece]:
            if n_samples > expanded.shape[0]:
                expanded = np.empty(n_samples, np.int16)
            expand_pieces(stored, read, expanded, 0)
            raw = expanded[:n_samples]
        else:  # one piece: of what is not packed there are no others
            raw = stored.values[stored.places[piece] : stored.places[piece] + n_samples]
        if room.most[read] > size:
            size = room.most[read]
            own_mean = np.empty(size, np.float32)
            if has_all:
                own_start, own_stdv = np.empty(size, np.int32), np.empty(size, np.float32)
        n = find_events(
            raw,
            signals.offset[read],
            signals.unit[read],
            parameters,
            scratch,
            own_start,
            own_mean,
            own_stdv,
        )
        place = add_to(room.used, n)
        n_events[read], room.places[read] = n, place
        for e in range(n):
            mean[place + e] = own_mean[e]
        if has_all:
            for e in range(n):
                start[place + e] = own_start[e]
                stdv[place + e] = own_stdv[e]


@exact_kernel
def take_all_events(turn, reads, signals, places, found, events):
    """Fill the events of `reads` from where they have been found; only means if there is no room for more.

    Parameters
    ----------
    turn, reads, signals, found
        See `find_all_events`.
    places
        See `Room`.
    events : f5py.core.batch.Events
        With offsets; all else is filled.
    """
    start, mean, stdv = found
    for i in own_turns(counter(turn), reads.shape[0]):
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
