"""Jitted loops of event detection; see `f5py.signal.events` for what they compute."""

from __future__ import annotations

import numpy as np

from f5py.accelerate import exact_kernel
from f5py.core._turns_numba import next_turn

#: Samples whose t-statistics are computed at a time: everything then stays in the first-level cache.
_BLOCK = 1024

_SMALLEST_NORMAL = np.float32(np.finfo(np.float32).tiny)
_LARGEST = np.float32(np.finfo(np.float32).max)


@exact_kernel
def _t_statistics(sums, square_sums, centre, count, window, position, n_samples, out):
    """t-statistic of `window` for `count` samples, the first being `position` and `sums[centre]`'s."""
    width = np.float32(window)
    if n_samples < 2 * window or window < 2:
        out[:count] = np.float32(0.0)
        return
    # Slices, so that the loop needs no test for negative indices and becomes vector code.
    sum_before = sums[centre - window : centre - window + count]
    sum_here = sums[centre : centre + count]
    sum_after = sums[centre + window : centre + window + count]
    square_before = square_sums[centre - window : centre - window + count]
    square_here = square_sums[centre : centre + count]
    square_after = square_sums[centre + window : centre + window + count]
    for i in range(count):
        # The mixture of single and double precision is the reference's: peaks compare these values exactly.
        left = np.float32((sum_here[i] - sum_before[i]) / width)
        right = np.float32(sum_after[i] - sum_here[i]) / width
        left_square = (square_here[i] - square_before[i]) / width
        right_square = np.float32(square_after[i] - square_here[i]) / width
        variance = np.float32(left_square - left * left + right_square - right * right)
        variance = max(variance, _SMALLEST_NORMAL)
        out[i] = abs(right - left) / np.sqrt(np.float64(variance / width))
    first = window - position
    for i in range(min(first, count)):
        out[i] = np.float32(0.0)
    for i in range(max(n_samples - window + 1 - position, 0), count):
        out[i] = np.float32(0.0)


@exact_kernel
def find_boundaries(raw, offset, unit, parameters, boundaries):
    """Write the event boundaries of one read into `boundaries`; return their number, or -1 if it is too small.

    `raw` int16 (n,), `offset` and `unit` float32 with ``pA = (raw + offset) * unit``, `boundaries` int32.
    """
    window_short, window_long, threshold_short, threshold_long, peak_height = parameters
    n_samples = raw.shape[0]
    margin = window_long
    # sums[j] belongs to position start - margin + j; positions outside of the read repeat the nearest sum,
    # which is never used because the statistic is zero there.
    sums = np.zeros(_BLOCK + 2 * margin, np.float64)
    square_sums = np.zeros(_BLOCK + 2 * margin, np.float64)
    statistic_short = np.empty(_BLOCK, np.float32)
    statistic_long = np.empty(_BLOCK, np.float32)
    total = 0.0
    square_total = 0.0
    summed = 0  # samples in the totals

    found = 0
    capacity = boundaries.shape[0]
    short_masked_to = 0
    short_position = -1
    short_value = _LARGEST
    short_valid = False
    long_masked_to = 0
    long_position = -1
    long_value = _LARGEST
    long_valid = False

    for start in range(0, n_samples, _BLOCK):
        count = min(_BLOCK, n_samples - start)
        if start == 0:
            filled = margin + 1  # position 0 and the margin before it are zero
        else:
            for j in range(2 * margin):
                sums[j] = sums[j + _BLOCK]
                square_sums[j] = square_sums[j + _BLOCK]
            filled = 2 * margin
        for j in range(filled, count + 2 * margin):
            if summed < n_samples:
                x = (np.float32(raw[summed]) + offset) * unit
                total += x
                square_total += x * x
                summed += 1
            sums[j] = total
            square_sums[j] = square_total
        _t_statistics(sums, square_sums, margin, count, window_short, start, n_samples, statistic_short)
        _t_statistics(sums, square_sums, margin, count, window_long, start, n_samples, statistic_long)

        for j in range(count):
            i = start + j
            if short_masked_to < i:
                value = statistic_short[j]
                if short_position < 0:
                    if value < short_value:
                        short_value = value
                    elif value - short_value > peak_height:
                        short_value = value
                        short_position = i
                else:
                    if value > short_value:
                        short_value = value
                        short_position = i
                    if short_value > threshold_short:
                        long_masked_to = short_position + window_short
                        long_position = -1
                        long_value = _LARGEST
                        long_valid = False
                    if short_value - value > peak_height and short_value > threshold_short:
                        short_valid = True
                    if short_valid and i - short_position > window_short // 2:
                        if found == capacity:
                            return -1
                        boundaries[found] = short_position
                        found += 1
                        short_position = -1
                        short_value = value
                        short_valid = False
            if long_masked_to < i:
                value = statistic_long[j]
                if long_position < 0:
                    if value < long_value:
                        long_value = value
                    elif value - long_value > peak_height:
                        long_value = value
                        long_position = i
                else:
                    if value > long_value:
                        long_value = value
                        long_position = i
                    if long_value - value > peak_height and long_value > threshold_long:
                        long_valid = True
                    if long_valid and i - long_position > window_long // 2:
                        if found == capacity:
                            return -1
                        boundaries[found] = long_position
                        found += 1
                        long_position = -1
                        long_value = value
                        long_valid = False
    return found


@exact_kernel
def summarise_events(raw, offset, unit, boundaries, start, length, mean, stdv):
    """Fill the event arrays of one read, each of shape (len(boundaries) + 1,), from its boundaries.

    `start` and `length` int32 in samples, `mean` and `stdv` float32 in pA. The sums run over the whole read, as
    in detection, so that their rounding is the reference's.
    """
    n_events = boundaries.shape[0] + 1
    n_samples = raw.shape[0]
    total = 0.0
    square_total = 0.0
    begin = 0
    for e in range(n_events):
        end = boundaries[e] if e < n_events - 1 else n_samples
        total_before = total
        square_before = square_total
        for i in range(begin, end):
            x = (np.float32(raw[i]) + offset) * unit
            total += x
            square_total += x * x
        width = np.float32(end - begin)
        event_mean = np.float32(total - total_before) / width
        variance = np.float32(square_total - square_before) / width - event_mean * event_mean
        start[e] = begin
        length[e] = end - begin
        mean[e] = event_mean
        stdv[e] = np.sqrt(max(variance, np.float32(0.0)))
        begin = end


@exact_kernel
def mean_of_events(raw, offset, unit, boundaries, mean):
    """Fill the means of one read's events as `summarise_events` does."""
    n_events = boundaries.shape[0] + 1
    total = 0.0
    begin = 0
    for e in range(n_events):
        end = boundaries[e] if e < n_events - 1 else raw.shape[0]
        total_before = total
        for i in range(begin, end):
            total += (np.float32(raw[i]) + offset) * unit
        mean[e] = np.float32(total - total_before) / np.float32(end - begin)
        begin = end


@exact_kernel
def mean_of_all_events(turn, reads, signals, slots, boundaries, n_boundaries, events):
    """Fill the means of the events of `reads` from their boundaries."""
    while True:
        i = next_turn(turn)
        if i >= reads.shape[0]:
            break
        read = reads[i]
        mean_of_events(
            signals.samples[signals.offsets[read] : signals.offsets[read + 1]],
            signals.offset[read],
            signals.unit[read],
            boundaries[slots[read] : slots[read] + n_boundaries[read]],
            events.mean[events.offsets[read] : events.offsets[read + 1]],
        )


@exact_kernel
def find_all_boundaries(turn, reads, signals, parameters, slots, boundaries, n_boundaries):
    """Write the event boundaries of `reads` into ``boundaries[slots[read]:slots[read + 1]]``, and their numbers."""
    while True:
        i = next_turn(turn)
        if i >= reads.shape[0]:
            break
        read = reads[i]
        n_boundaries[read] = find_boundaries(
            signals.samples[signals.offsets[read] : signals.offsets[read + 1]],
            signals.offset[read],
            signals.unit[read],
            parameters,
            boundaries[slots[read] : slots[read + 1]],
        )


@exact_kernel
def summarise_all_events(turn, reads, signals, slots, boundaries, n_boundaries, events):
    """Fill the events of `reads` from their boundaries."""
    while True:
        i = next_turn(turn)
        if i >= reads.shape[0]:
            break
        read = reads[i]
        first = events.offsets[read]
        end = events.offsets[read + 1]
        summarise_events(
            signals.samples[signals.offsets[read] : signals.offsets[read + 1]],
            signals.offset[read],
            signals.unit[read],
            boundaries[slots[read] : slots[read] + n_boundaries[read]],
            events.start[first:end],
            events.length[first:end],
            events.mean[first:end],
            events.stdv[first:end],
        )


@exact_kernel
def _reverse(values):
    n = values.shape[0]
    for i in range(n // 2):
        values[i], values[n - 1 - i] = values[n - 1 - i], values[i]


@exact_kernel
def reverse_all_events(turn, reads, events):
    """Put the events of `reads` into the opposite order."""
    while True:
        i = next_turn(turn)
        if i >= reads.shape[0]:
            break
        first = events.offsets[reads[i]]
        end = events.offsets[reads[i] + 1]
        _reverse(events.start[first:end])
        _reverse(events.length[first:end])
        _reverse(events.mean[first:end])
        _reverse(events.stdv[first:end])
