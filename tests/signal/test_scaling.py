"""Scaling against NumPy."""

import numpy as np
import pytest

from f5py.core.kmers import base_codes
from f5py.pore_model import builtin
from f5py.signal import scaling

from ..compiled import compiled

MODEL = builtin("r9.4_450bps.nucleotide.6mer")


def test_ranks_spell_the_kmers():
    bases = np.frombuffer(b"ACGTTGCANacguRA", np.uint8)
    ranks = np.full(len(bases), -1, np.int32)
    compiled(scaling.fill_ranks)(bases, 6, base_codes(), ranks)
    digits = [0, 1, 2, 3, 3, 2, 1, 0, 0, 0, 1, 2, 3, 0, 0]  # N and R count as A, U as T
    expected = [int("".join(map(str, digits[i : i + 6])), 4) for i in range(len(digits) - 5)]
    np.testing.assert_array_equal(ranks[: len(expected)], expected)
    assert (ranks[len(expected) :] == -1).all()


def test_ranks_of_a_read_shorter_than_k():
    ranks = np.full(3, -1, np.int32)
    compiled(scaling.fill_ranks)(np.frombuffer(b"ACG", np.uint8), 6, base_codes(), ranks)
    assert (ranks == -1).all()


def test_moments():
    rng = np.random.default_rng(1)
    ranks = rng.integers(0, 4096, 500).astype(np.int32)
    events = rng.normal(95, 14, 900).astype(np.float32)
    shift, scale = compiled(scaling.estimate_scaling)(events, ranks, MODEL.level_mean)
    levels = MODEL.level_mean[ranks].astype(np.float64)
    x = events.astype(np.float64)
    expected = x.mean() - levels.mean()
    assert shift == pytest.approx(expected, rel=1e-6)
    assert scale == pytest.approx(((x - expected) ** 2).mean() / (levels**2).mean(), rel=1e-6)


def test_recalibration_is_weighted_least_squares_over_first_events():
    rng = np.random.default_rng(2)
    n = 400
    ranks = rng.integers(0, 4096, n).astype(np.int32)
    ranks[10:13] = ranks[10]  # a run of one k-mer counts once
    first = 2 * np.arange(n, dtype=np.int32)
    first[rng.integers(14, n, 30)] = -1  # skipped k-mers
    events = np.zeros(2 * n, np.float32)
    events[::2] = 1.08 * MODEL.level_mean[ranks] - 7 + rng.normal(0, 1.4, n) * MODEL.level_stdv[ranks]
    used, shift, scale, var = compiled(scaling.recalibrate)(events, ranks, first, MODEL.level_mean, MODEL.level_stdv)

    visited = np.flatnonzero(first >= 0)
    changed = np.concatenate([[True], ranks[visited][1:] != ranks[visited][:-1]])
    chosen = visited[changed]
    level, stdv = MODEL.level_mean[ranks[chosen]], MODEL.level_stdv[ranks[chosen]]
    x = events[first[chosen]].astype(np.float64)
    slope, intercept = np.polyfit(level, x, 1, w=1 / stdv)
    assert used == len(chosen)
    assert shift == pytest.approx(intercept, abs=1e-4)
    assert scale == pytest.approx(slope, rel=1e-5)
    assert var == pytest.approx(np.sqrt((((x - intercept - slope * level) / stdv) ** 2).mean()), rel=1e-5)


def test_recalibration_without_spread_gives_up():
    ranks = np.full(300, 17, np.int32)
    events = np.full(300, 90, np.float32)
    used, *_ = compiled(scaling.recalibrate)(
        events, ranks, np.arange(300, dtype=np.int32), MODEL.level_mean, MODEL.level_stdv
    )
    assert used == 0
