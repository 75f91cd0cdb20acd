"""Jitted loops of event detection; see `f5py.signal.events` for what they compute."""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from f5py.core._turns_numba import counter, own_turns
from f5py.jit.bits import count_bits, lowest_bit
from f5py.jit.fused_sums import has_fused_sums
from f5py.jit.kernel import exact_kernel
from f5py.jit.simd import LANES
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

#: Most positions of a stretch: the sums along sixteen of them stay in the second-level cache.
_LONGEST = 1024
#: Samples that are summed up at a time: they stay in the first-level cache.
_TOGETHER = 256

_SMALLEST_NORMAL = np.float32(np.finfo(np.float32).tiny)


@intrinsic
def quotient(typingctx, a, width, reciprocal):
    """Divide `a` by `width` to the last bit; `reciprocal` is 1 / width; a third of a division's time.

    The rounded product is off by less than one in its last digit, and the remainder, which is exact, says by how much
    (Markstein, IBM Journal of Research and Development 34:111, 1990). That takes sums of products that are rounded
    once; a processor without them divides.
    """

    def generate(context, builder, signature, arguments):
        dividend, divisor, inverse = arguments
        if not has_fused_sums(context):
            return builder.fdiv(dividend, divisor)
        kind = dividend.type
        name = f"llvm.fma.{'f64' if isinstance(kind, ir.DoubleType) else 'f32'}"
        fused = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
        product = builder.fmul(dividend, inverse)
        remainder = builder.call(fused, [builder.fneg(divisor), product, dividend])
        return builder.call(fused, [remainder, inverse, product])

    return a(a, a, a), generate


@exact_kernel
def _t_statistics(sums, square_sums, centre, count, window, position, n_samples, out):
    """t-statistic of `window` for `count` samples, the first being `position` and `sums[centre]`'s."""
    if n_samples < 2 * window or window < 2:
        for i in range(count):
            out[i] = np.float32(0.0)
        return
    width, double_width = np.float32(window), np.float64(window)
    inverse, double_inverse = np.float32(1.0) / width, 1.0 / double_width
    # Unsigned indices, so that the loop needs no test for negative ones and becomes vector code.
    before, here, after = np.uint64(centre - window), np.uint64(centre), np.uint64(centre + window)
    for j in range(count):
        i = np.uint64(j)
        # The mixture of single and double precision is f5c's: peaks compare these values exactly.
        left = np.float32(quotient(sums[here + i] - sums[before + i], double_width, double_inverse))
        right = quotient(np.float32(sums[after + i] - sums[here + i]), width, inverse)
        left_square = quotient(square_sums[here + i] - square_sums[before + i], double_width, double_inverse)
        right_square = quotient(np.float32(square_sums[after + i] - square_sums[here + i]), width, inverse)
        variance = np.float32(left_square - left * left + right_square - right * right)
        variance = max(variance, _SMALLEST_NORMAL)
        out[i] = abs(right - left) / np.sqrt(np.float64(quotient(variance, width, inverse)))
    first = window - position
    for i in range(min(first, count)):
        out[i] = np.float32(0.0)
    for i in range(max(n_samples - window + 1 - position, 0), count):
        out[i] = np.float32(0.0)


class _Sums(NamedTuple):
    """Sums of the samples before each position, of `lead` positions before the read, and of some behind it."""

    values: NDArray[np.float64]
    squares: NDArray[np.float64]
    lead: int


@exact_kernel
def _sums_for(n_samples, margin):
    """Make room for the sums of a read, and fill those before it."""
    lead = WARM_UP + margin
    n = lead + n_samples + 1 + CHUNK + margin
    sums = _Sums(np.empty(n, np.float64), np.empty(n, np.float64), lead)
    for i in range(lead + 1):
        sums.values[i] = sums.squares[i] = 0.0
    return sums


@exact_kernel
def _add_samples(raw, offset, unit, first, end, sums):
    """Go on with the sums from sample `first` on."""
    values, squares = sums.values[sums.lead + 1 :], sums.squares[sums.lead + 1 :]
    total, square_total = sums.values[sums.lead + first], sums.squares[sums.lead + first]
    for begin in range(first, end, _TOGETHER):
        stop = min(begin + _TOGETHER, end)
        for j in range(begin, stop):  # a loop of its own, which becomes vector code
            i = np.uint64(j)
            x = (np.float32(raw[i]) + offset) * unit
            values[i] = x
            squares[i] = x * x
        for j in range(begin, stop):
            i = np.uint64(j)
            total += values[i]
            square_total += squares[i]
            values[i] = total
            squares[i] = square_total
    if end == raw.shape[0]:
        for i in range(end, values.shape[0]):  # never used, because the statistic is zero there
            values[i], squares[i] = total, square_total


@exact_kernel
def _go_through(sums, first, parameters, n_samples, stretches, statistics, rows):
    """Go through `CHUNK` positions of all stretches; the last two arrays are scratch space."""
    for detector in range(2):
        window = parameters.window_short if detector == 0 else parameters.window_long
        for lane in range(LANES):
            position = stretches.begin[lane] + first
            if position < n_samples:
                row = rows[lane * CHUNK : (lane + 1) * CHUNK]
                _t_statistics(sums.values, sums.squares, sums.lead + position, CHUNK, window, position, n_samples, row)
        transpose(rows, statistics, detector * CHUNK * LANES)
    go_through(statistics, first, parameters, stretches)


@exact_kernel
def _find_boundaries(raw, offset, unit, parameters, sums):
    """Fill the sums, and find the boundaries between events; return the marks of these, see `Stretches`."""
    n_samples = raw.shape[0]
    length = min(_LONGEST, (n_samples // (LANES * CHUNK) + 1) * CHUNK)
    stretches = Stretches(
        np.empty(LANES, np.int64), np.empty(LANES, np.float32), np.empty(N_STATES * LANES, np.float32),
        np.empty(LANES, np.float32), np.zeros(n_samples // 64 + 1, np.uint64),
    )  # fmt: skip
    states = stretches.states
    entered, shifted = np.empty(states.shape[0], np.float32), np.empty(states.shape[0], np.float32)
    statistics, rows = np.empty(2 * CHUNK * LANES, np.float32), np.zeros(CHUNK * LANES, np.float32)
    forget(shifted)
    n_summed = 0
    for begin in range(0, n_samples, LANES * length):
        end = min(n_samples, begin + LANES * length + parameters.window_long)
        _add_samples(raw, offset, unit, n_summed, end, sums)
        n_summed = end
        for lane in range(LANES):
            stretches.begin[lane] = begin + lane * length
            stretches.limit[lane] = -np.inf
        forget(states)
        copy_states(shifted, entered)
        warm_up = WARM_UP
        for _ in range(LANES):  # after each round, one lane more is surely right
            for first in range(-warm_up, length, CHUNK):
                if first == 0:
                    copy_lane(entered, 0, states)
                    copy_states(states, entered)
                    for lane in range(LANES):
                        stretches.limit[lane] = min(n_samples - stretches.begin[lane], length)
                    for word in range(begin >> 6, min((begin + LANES * length) >> 6, stretches.marks.shape[0])):
                        stretches.marks[word] = np.uint64(0)
                _go_through(sums, first, parameters, n_samples, stretches, statistics, rows)
            shift(states, length, shifted)
            agree = True
            for lane in range(1, LANES):
                agree = agree and (stretches.begin[lane] >= n_samples or is_same(shifted, entered, lane))
            if agree:
                break
            copy_states(shifted, states)
            warm_up = 0
    return stretches.marks


@exact_kernel
def _positions(marks, n_samples):
    """Fill an array with the positions of marks, between those of the read's begin and end."""
    n = 0
    for word in marks:
        n += count_bits(word)
    positions = np.empty(n + 2, np.int64)
    positions[0] = 0
    positions[n + 1] = n_samples
    n = 1
    for i in range(marks.shape[0]):
        left = marks[i]
        while left:
            positions[n] = 64 * i + lowest_bit(left)
            left &= left - np.uint64(1)
            n += 1
    return positions


@exact_kernel
def find_events(raw, offset, unit, parameters, start, mean, stdv):
    """Find the events of one read; return their number, or -1 if the arrays are too small.

    Parameters
    ----------
    raw : int16, shape (n,)
    offset, unit : float32
        Samples are ``(raw + offset) * unit`` pA.
    parameters : f5py.signal.events.EventParameters
    start : int32; mean, stdv : float32
        Filled with the first sample, the mean and the standard deviation of each event. The sums run over the whole
        read, so that their rounding is f5c's. `start` and `stdv` may have no elements.
    """
    sums = _sums_for(raw.shape[0], parameters.window_long)
    marks = _find_boundaries(raw, offset, unit, parameters, sums)
    position = _positions(marks, raw.shape[0])
    n_events = position.shape[0] - 1
    if n_events > mean.shape[0]:
        return -1
    values, squares = sums.values[sums.lead :], sums.squares[sums.lead :]
    for e in range(n_events):
        begin, end = position[e], position[e + 1]
        mean[e] = np.float32(values[end] - values[begin]) / np.float32(end - begin)
    if start.shape[0] > 0:
        for e in range(n_events):
            begin, end = position[e], position[e + 1]
            start[e] = begin
            variance = np.float32(squares[end] - squares[begin]) / np.float32(end - begin) - mean[e] * mean[e]
            stdv[e] = np.sqrt(max(variance, np.float32(0.0)))
    return n_events


@exact_kernel
def find_all_events(turn, reads, signals, parameters, slots, found, n_events):
    """Apply `find_events` to `reads`, in the places of `found` from ``slots[read]`` to ``slots[read + 1]``.

    Parameters
    ----------
    signals : f5py.core.batch.Signals
    parameters : f5py.signal.events.EventParameters
    slots : int64, shape (n_reads + 1,)
    found : tuple of int32, float32, float32, shape (slots[-1],)
        Filled with first samples, and means and standard deviations in pA; only the means must have elements.
    n_events : int64, shape (n_reads,)
        Filled.
    """
    start, mean, stdv = found
    for i in own_turns(counter(turn), reads.shape[0]):
        read = reads[i]
        first, end = slots[read], slots[read + 1]
        n_events[read] = find_events(
            signals.samples[signals.offsets[read] : signals.offsets[read + 1]],
            signals.offset[read],
            signals.unit[read],
            parameters,
            start[first:end],
            mean[first:end],
            stdv[first:end],
        )


@exact_kernel
def take_all_events(turn, reads, signals, slots, found, events):
    """Fill the events of `reads` from where they have been found; only means if there is no room for more.

    Parameters
    ----------
    turn, reads, signals, slots, found
        See `find_all_events`.
    events : f5py.core.batch.Events
        With offsets; all else is filled.
    """
    start, mean, stdv = found
    for i in own_turns(counter(turn), reads.shape[0]):
        read = reads[i]
        slot, first = slots[read], events.offsets[read]
        n = events.offsets[read + 1] - first
        for e in range(n):
            events.mean[first + e] = mean[slot + e]
        if events.start.shape[0] > 0:
            for e in range(n):
                events.start[first + e] = start[slot + e]
                events.stdv[first + e] = stdv[slot + e]
            for e in range(n - 1):
                events.length[first + e] = start[slot + e + 1] - start[slot + e]
            n_samples = signals.offsets[read + 1] - signals.offsets[read]
            events.length[first + n - 1] = n_samples - start[slot + n - 1]


@exact_kernel
def _reverse(values):
    n = values.shape[0]
    for i in range(n // 2):
        values[i], values[n - 1 - i] = values[n - 1 - i], values[i]


@exact_kernel
def reverse_all_events(turn, reads, events):
    """Put the events of `reads` into the opposite order.

    Parameters
    ----------
    events : f5py.core.batch.Events
        Changed.
    """
    for i in own_turns(counter(turn), reads.shape[0]):
        first = events.offsets[reads[i]]
        end = events.offsets[reads[i] + 1]
        _reverse(events.start[first:end])
        _reverse(events.length[first:end])
        _reverse(events.mean[first:end])
        _reverse(events.stdv[first:end])
