"""Event detection against a plain implementation and against f5c's own events."""

import gzip

import numpy as np
import pytest

from f5py.core.batch import Events
from f5py.signal.events import DNA, RNA, find_events, reverse_events, scratch_for

from ..compiled import compiled

find_events, scratch_for, reverse_events = map(compiled, (find_events, scratch_for, reverse_events))


def _t_statistic(x, window):
    """Compute the statistic at every position, straight from the formula, in double precision."""
    n = len(x)
    out = np.zeros(n + 1)
    if n < 2 * window:
        return out
    windows = np.lib.stride_tricks.sliding_window_view(x, window)
    mean, variance = windows.mean(axis=1), windows.var(axis=1)
    both = np.maximum(variance[:-window] + variance[window:], np.finfo(np.float32).tiny)
    out[window : n - window + 1] = abs(mean[window:] - mean[:-window]) / np.sqrt(both / window)
    return out


class _Detector:
    def __init__(self, window, threshold):
        self.window, self.threshold = window, threshold
        self.masked_to = 0
        self.forget(np.finfo(np.float32).max)

    def forget(self, value):
        self.position, self.value, self.valid = None, value, False


def plain_boundaries(statistics, p):
    """Detect peaks of the statistics of both windows as described, one object per window."""
    short, long = _Detector(p.window_short, p.threshold_short), _Detector(p.window_long, p.threshold_long)
    found = []
    for i in range(1, len(statistics[0])):
        for d, statistic in zip((short, long), statistics, strict=True):
            if d.masked_to >= i:
                continue
            v = statistic[i]
            if d.position is None:
                if v < d.value:
                    d.value = v
                elif v - d.value > p.peak_height:
                    d.position, d.value = i, v
                continue
            if v > d.value:
                d.position, d.value = i, v
            if d is short and d.value > d.threshold:
                long.masked_to = d.position + d.window
                long.forget(np.finfo(np.float32).max)
            if d.value - v > p.peak_height and d.value > d.threshold:
                d.valid = True
            if d.valid and i - d.position > d.window // 2:
                found.append(d.position)
                d.forget(v)
    return found


def _events(raw, p, capacity=None, means_only=False):
    """Detect events; return their number, starts, means and standard deviations."""
    n = len(raw) + 1 if capacity is None else capacity
    further = 0 if means_only else n
    start, mean, stdv = np.empty(further, np.int32), np.empty(n, np.float32), np.empty(further, np.float32)
    count = find_events(raw, np.float32(10), np.float32(0.17), p, scratch_for(p), start, mean, stdv)
    return count, *(values[: max(count, 0)] for values in (start, mean, stdv))


def _steps(rng, n):
    """Draw a signal of noisy steps, with a drift and a few spikes."""
    levels = np.repeat(rng.normal(500, 80, n), rng.integers(2, 20, n))[:n]
    signal = levels + rng.normal(0, 12, n)
    signal[rng.integers(0, n, max(n // 200, 1))] += 300
    return signal.astype(np.int16)


@pytest.mark.parametrize("parameters", [DNA, RNA], ids=["DNA", "RNA"])
@pytest.mark.parametrize("n", [1, 2, 5, 6, 11, 12, 13, 27, 28, 29, 300, 1023, 1024, 1025, 2048, 3000])
def test_equals_the_plain_detector(parameters, n):
    raw = _steps(np.random.default_rng(n), n)
    x = (raw.astype(np.float32) + np.float32(10)) * np.float32(0.17)
    windows = parameters.window_short, parameters.window_long
    expected = plain_boundaries([_t_statistic(x.astype(np.float64), window)[:n] for window in windows], parameters)
    _, found, _, _ = _events(raw, parameters)
    np.testing.assert_array_equal(found, [0, *expected])
    if n >= 1000:
        assert len(found) > n // 40


def test_too_small_a_buffer_is_reported_not_overrun():
    raw = _steps(np.random.default_rng(3), 3000)
    count, *_ = _events(raw, DNA)
    assert count > 100
    assert _events(raw, DNA, capacity=count)[0] == count
    assert _events(raw, DNA, capacity=count - 1)[0] == -1


def test_summary_of_events():
    raw = _steps(np.random.default_rng(5), 2500)
    x = (raw.astype(np.float64) + 10) * 0.17
    _, start, mean, stdv = _events(raw, DNA)
    pieces = np.split(x, start[1:])
    np.testing.assert_allclose(mean, [piece.mean() for piece in pieces], rtol=1e-6)
    np.testing.assert_allclose(stdv, [piece.std() for piece in pieces], atol=0.02)
    np.testing.assert_array_equal(_events(raw, DNA, means_only=True)[2], mean)


def test_constant_signal_is_one_event():
    assert _events(np.full(5000, 480, np.int16), DNA)[0] == 1


@pytest.mark.shared
def test_events_equal_those_of_f5c(ecoli, call_ecoli):
    """Starts, lengths, means and deviations of 110,210 events, as printed with six decimals."""
    expected = gzip.decompress((ecoli / "expected" / "stages" / "events.txt.gz").read_bytes())
    out = call_ecoli("reads8.bam", "--print-events=yes")
    printed = b"".join(line for line in out.splitlines(keepends=True) if line.startswith((b">", b"{")))
    assert printed.split() == expected.split()


def test_reversed_events_keep_their_places_in_the_signal():
    events = Events(
        np.array([0, 3, 3, 5]),
        np.array([0, 4, 9, 0, 7], np.int32),
        np.array([4, 5, 6, 7, 8], np.int32),
        np.array([1, 2, 3, 4, 5], np.float32),
        np.array([6, 7, 8, 9, 10], np.float32),
    )
    for read in (1, 2, 0):
        reverse_events(events, read)
    assert events.start.tolist() == [9, 4, 0, 7, 0]
    assert events.length.tolist() == [6, 5, 4, 8, 7]
    assert events.mean.tolist() == [3, 2, 1, 5, 4]
    assert events.stdv.tolist() == [8, 7, 6, 10, 9]
