"""Detectors that go through sixteen stretches side by side, against the same ones position by position."""

import numpy as np
import pytest

from f5py.signal.events import DNA, RNA, find_events, scratch_for
from f5py.signal.peaks import CHUNK
from f5py.signal.t_statistics import CumulativeSums, t_statistics
from tests.signal.test_events import plain_boundaries

from ..compiled import compiled

find_events, scratch_for, t_statistics = map(compiled, (find_events, scratch_for, t_statistics))

OFFSET, UNIT = np.float32(10), np.float32(0.17)


def _statistics(raw, window):
    """Compute the t-statistics of a whole read by the function that computes them for stretches."""
    x = (raw.astype(np.float32) + OFFSET) * UNIT
    count = -(-len(raw) // CHUNK) * CHUNK
    before, behind = np.zeros(window + 1), np.zeros(window + count - len(raw))
    sums = [np.cumsum(np.concatenate([before, values, behind])) for values in (x, x * x)]
    out = np.empty(count, np.float32)
    t_statistics(CumulativeSums(*sums, window), 0, np.arange(0, count, CHUNK), 0, window, len(raw), out, 0)
    return out[: len(raw)]


def _events(raw, parameters):
    """Detect events; return their starts, means and standard deviations."""
    start, mean, stdv = np.empty(len(raw), np.int32), np.empty(len(raw), np.float32), np.empty(len(raw), np.float32)
    n = find_events(raw, OFFSET, UNIT, parameters, scratch_for(parameters), start, mean, stdv)
    return start[:n], mean[:n], stdv[:n]


def _noise(rng, n):
    return rng.normal(500, 12, n)


def _steps(rng, n):
    return np.repeat(rng.normal(500, 80, n), rng.integers(2, 20, n))[:n] + rng.normal(0, 12, n)


def _ramps(rng, n):
    """Draw ramps, along which a peak has no end, between stretches of steps."""
    ramps = 3.0 * (np.arange(n) % 1500)
    return np.where(np.arange(n) % 3000 < 1600, 400 + ramps, _steps(rng, n))


def _silence(rng, n):
    """Draw stretches without noise, some longer than the stretches of lanes, between steps."""
    return np.where(np.arange(n) % 4700 < 2300, 700, _steps(rng, n))


def _rise(rng, n):
    """Draw a ramp that is longer than sixteen stretches, between steps: its peak is open for all of it."""
    ramp = np.arange(n) - 32_000
    return np.where((np.arange(n) > 1000) & (ramp < 20_000), ramp, _steps(rng, n))


@pytest.mark.parametrize("parameters", [DNA, RNA], ids=["DNA", "RNA"])
@pytest.mark.parametrize("draw", [_noise, _steps, _ramps, _silence, _rise])
@pytest.mark.parametrize("n", [1023, 1024, 1025, 5000, 16 * 1024, 16 * 1024 + 1, 70_000])
def test_boundaries_are_those_of_detectors_that_go_position_by_position(draw, n, parameters):
    raw = draw(np.random.default_rng(n), n).astype(np.int16)
    statistics = [_statistics(raw, window) for window in (parameters.window_short, parameters.window_long)]
    start, mean, stdv = _events(raw, parameters)
    np.testing.assert_array_equal(start, [0, *plain_boundaries(statistics, parameters)])
    x = (raw.astype(np.float32) + OFFSET) * UNIT
    width = np.diff([*start, n]).astype(np.float32)
    sums, squares = (
        np.diff(np.append(0.0, np.cumsum(v, dtype=np.float64))[[*start, n]]).astype(np.float32) for v in (x, x * x)
    )
    np.testing.assert_array_equal(mean, sums / width)
    np.testing.assert_array_equal(stdv, np.sqrt(np.maximum(squares / width - mean * mean, np.float32(0))))


def test_too_little_room_for_the_events_of_a_long_read():
    """Whichever block they are too many in; the scratch space serves the next read as before."""
    raw = _steps(np.random.default_rng(1), 70_000).astype(np.int16)
    expected = _events(raw, DNA)
    scratch = scratch_for(DNA)
    for room in (10, len(expected[0]) // 2, len(expected[0]) - 1, len(expected[0])):
        start, mean, stdv = np.empty(room, np.int32), np.empty(room, np.float32), np.empty(room, np.float32)
        n = find_events(raw, OFFSET, UNIT, DNA, scratch, start, mean, stdv)
        assert n == (room if room == len(expected[0]) else -1)
    for found, wanted in zip((start, mean, stdv), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
