"""Jitted loops of event detection; see `f5py.signal.events` for what they compute."""

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from f5py.core._turns_numba import counter, own_turns
from f5py.jit.fused_sums import has_fused_sums
from f5py.jit.kernel import exact_kernel

#: Samples whose t-statistics are computed at a time: everything then stays in the first-level cache.
_BLOCK = 1024

_SMALLEST_NORMAL = np.float32(np.finfo(np.float32).tiny)
_LARGEST = np.float32(np.finfo(np.float32).max)


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
        out[:count] = np.float32(0.0)
        return
    width, double_width = np.float32(window), np.float64(window)
    inverse, double_inverse = np.float32(1.0) / width, 1.0 / double_width
    # Slices, so that the loop needs no test for negative indices and becomes vector code.
    sum_before = sums[centre - window : centre - window + count]
    sum_here = sums[centre : centre + count]
    sum_after = sums[centre + window : centre + window + count]
    square_before = square_sums[centre - window : centre - window + count]
    square_here = square_sums[centre : centre + count]
    square_after = square_sums[centre + window : centre + window + count]
    for i in range(count):
        # The mixture of single and double precision is f5c's: peaks compare these values exactly.
        left = np.float32(quotient(sum_here[i] - sum_before[i], double_width, double_inverse))
        right = quotient(np.float32(sum_after[i] - sum_here[i]), width, inverse)
        left_square = quotient(square_here[i] - square_before[i], double_width, double_inverse)
        right_square = quotient(np.float32(square_after[i] - square_here[i]), width, inverse)
        variance = np.float32(left_square - left * left + right_square - right * right)
        variance = max(variance, _SMALLEST_NORMAL)
        out[i] = abs(right - left) / np.sqrt(np.float64(quotient(variance, width, inverse)))
    first = window - position
    for i in range(min(first, count)):
        out[i] = np.float32(0.0)
    for i in range(max(n_samples - window + 1 - position, 0), count):
        out[i] = np.float32(0.0)


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
    window_short, window_long, threshold_short, threshold_long, peak_height = parameters
    n_samples = raw.shape[0]
    margin = window_long
    # sums[j] belongs to position begin - margin + j; positions outside of the read repeat the nearest sum,
    # which is never used because the statistic is zero there.
    sums = np.zeros(_BLOCK + 2 * margin, np.float64)
    square_sums = np.zeros(_BLOCK + 2 * margin, np.float64)
    statistic_short = np.empty(_BLOCK, np.float32)
    statistic_long = np.empty(_BLOCK, np.float32)
    total = 0.0
    square_total = 0.0
    summed = 0  # samples in the totals

    found = 0
    event = 0  # where the event that is open begins, and the sums before it; likewise for the peaks
    event_total = 0.0
    event_square = 0.0
    short = -1
    short_total = 0.0
    short_square = 0.0
    short_value = _LARGEST
    short_valid = False
    long_masked_to = 0
    long = -1
    long_total = 0.0
    long_square = 0.0
    long_value = _LARGEST
    long_valid = False

    for begin in range(0, n_samples, _BLOCK):
        count = min(_BLOCK, n_samples - begin)
        if begin == 0:
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
        _t_statistics(sums, square_sums, margin, count, window_short, begin, n_samples, statistic_short)
        _t_statistics(sums, square_sums, margin, count, window_long, begin, n_samples, statistic_long)

        for j in range(1 if begin == 0 else 0, count):
            i = begin + j
            value = statistic_short[j]
            was_peak = short >= 0
            # Written so that it becomes code with few branches, which noise makes hard to foresee.
            rises = value > short_value if was_peak else value - short_value > peak_height
            short_value = value if rises else short_value if was_peak else min(short_value, value)
            short = i if rises else short
            short_total = sums[margin + j] if rises else short_total
            short_square = square_sums[margin + j] if rises else short_square
            if was_peak and short_value > threshold_short:
                long_masked_to = short + window_short
                long = -1
                long_value = _LARGEST
                long_valid = False
                short_valid = short_valid or short_value - value > peak_height
                if short_valid and i - short > window_short // 2:
                    if found == mean.shape[0]:
                        return -1
                    _close(event, event_total, event_square, short, short_total, short_square, found, start, mean, stdv)
                    found += 1
                    event, event_total, event_square = short, short_total, short_square
                    short = -1
                    short_value = value
                    short_valid = False
            if long_masked_to < i:
                value = statistic_long[j]
                if long < 0:
                    if value < long_value:
                        long_value = value
                    elif value - long_value > peak_height:
                        long_value = value
                        long = i
                        long_total, long_square = sums[margin + j], square_sums[margin + j]
                else:
                    if value > long_value:
                        long_value = value
                        long = i
                        long_total, long_square = sums[margin + j], square_sums[margin + j]
                    if long_value - value > peak_height and long_value > threshold_long:
                        long_valid = True
                    if long_valid and i - long > window_long // 2:
                        if found == mean.shape[0]:
                            return -1
                        _close(
                            event, event_total, event_square, long, long_total, long_square, found, start, mean, stdv
                        )
                        found += 1
                        event, event_total, event_square = long, long_total, long_square
                        long = -1
                        long_value = value
                        long_valid = False
    if found == mean.shape[0]:
        return -1
    _close(event, event_total, event_square, n_samples, total, square_total, found, start, mean, stdv)
    return found + 1


@exact_kernel
def _close(begin, total_before, square_before, end, total, square_total, number, start, mean, stdv):
    """Fill the event between two boundaries, with the sums of samples and of squares before each."""
    width = np.float32(end - begin)
    event_mean = np.float32(total - total_before) / width
    mean[number] = event_mean
    if start.shape[0] > 0:
        start[number] = begin
        variance = np.float32(square_total - square_before) / width - event_mean * event_mean
        stdv[number] = np.sqrt(max(variance, np.float32(0.0)))


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
