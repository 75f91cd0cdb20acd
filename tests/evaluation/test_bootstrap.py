"""Intervals by bootstrap over reads."""

from __future__ import annotations

import numpy as np
import pytest

from f5py.evaluation.bootstrap import SAMPLES, ReadBootstrap, read_weights

pyarrow = pytest.importorskip("pyarrow")


def _names(n: int) -> np.ndarray:
    return np.array([f"read-{i:06d}" for i in range(n)], object)


def test_weights_are_poisson_variates_of_mean_one() -> None:
    weights = read_weights(_names(4000))
    assert weights.shape == (4000, SAMPLES)
    assert weights.mean() == pytest.approx(1.0, abs=0.01)
    assert weights.var() == pytest.approx(1.0, abs=0.02)
    assert (weights == 0).mean() == pytest.approx(np.exp(-1), abs=0.005)
    correlations = np.corrcoef(weights[:, :20].T) - np.eye(20)
    assert np.abs(correlations).max() < 0.08
    np.testing.assert_array_equal(read_weights(_names(4000)[::-1])[::-1], weights)


def _calls(rng: np.random.Generator, n_reads: int, per_read: int):
    """Make calls of reads that are right or wrong as a whole by turns."""
    read = np.repeat(np.arange(n_reads), per_read)
    states = np.repeat(rng.integers(0, 2, n_reads), per_read)
    of_read = np.repeat(rng.normal(0, 2, n_reads), per_read)
    ratios = np.where(states == 1, 3, -3) + of_read + rng.normal(0, 0.5, len(read))
    return read, ratios, states


def test_intervals_hold_what_would_be_found_in_other_reads() -> None:
    """Of many data sets, about 95 % of the intervals have the true share of wrong calls in them."""
    rng = np.random.default_rng(4)
    truth = 0.0
    for _ in range(20):
        _, ratios, states = _calls(rng, 5000, 2)
        truth += float(((ratios > 0) != (states == 1)).mean()) / 20
    inside = 0
    widths = []
    for _ in range(40):
        samples = ReadBootstrap()
        read, ratios, states = _calls(rng, 150, 20)
        names = pyarrow.array(_names(10_000)[rng.choice(10_000, 150, replace=False)][read])
        for part in np.array_split(np.arange(len(read)), 3):
            samples.add(names.take(pyarrow.array(part)), ratios[part], states[part])
        low, high = samples.intervals(0.5, 0.0)["wrong"]
        inside += low <= truth <= high
        widths.append(high - low)
    assert 33 <= inside <= 40
    # of 150 reads, not of 3000 calls, whose interval would be a fourth as wide
    by_reads = 2 * 1.96 * np.sqrt(truth * (1 - truth) / 150)
    assert np.mean(widths) == pytest.approx(by_reads, rel=0.3)


def test_bounds_enclose_the_measures_and_pieces_do_not_matter() -> None:
    rng = np.random.default_rng(5)
    read, ratios, states = _calls(rng, 300, 10)
    ratios[7] = np.nan
    states[9] = 2
    names = pyarrow.array(_names(300)[read])
    whole, pieces = ReadBootstrap(), ReadBootstrap()
    whole.add(names, ratios, states)
    for part in np.array_split(np.arange(len(read)), 7):
        pieces.add(names.take(pyarrow.array(part)), ratios[part], states[part])
    found = whole.intervals(0.5, 2.0)
    assert found == pieces.intervals(0.5, 2.0)
    for name in ("auc", "expected_calibration_error", "kept", "wrong"):
        low, high = found[name]
        assert 0 <= low < high <= 1


def test_without_calls_there_are_no_bounds() -> None:
    samples = ReadBootstrap()
    samples.add(pyarrow.array(["a"]), np.array([1.0]), np.array([1]))
    found = samples.intervals(0.5, 2.0)
    assert found["auc"] is None


def test_names_that_are_not_ascii_and_no_names() -> None:
    """Tables and tags may have any text, and a batch no calls."""
    names = np.array(["a", "é" * 300, "\U0001f600", ""], object)
    assert read_weights(names).shape == (4, SAMPLES)
    assert (read_weights(names[:1]) == read_weights(names)[:1]).all()
    assert read_weights(names[:0]).shape == (0, SAMPLES)
