"""New levels: moments, shrinkage, what similar k-mers say, and measures of ranking."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from f5py.pore_model.model import PoreModel, Shifts, with_methylation
from f5py.training.sums import plain_ranks
from f5py.training.update import MIN_STDV, updated

PLAIN = ("C", 20.0, True, False)
K = 5


def sums_of(level: np.ndarray, stdv: np.ndarray, n: np.ndarray, v: float = 1.0) -> np.ndarray:
    w = n / v**2
    return np.stack([n, n * level, w, w * level, w * (level**2 + (stdv * v) ** 2), np.zeros(len(n))], axis=1)


@pytest.fixture
def start() -> PoreModel:
    random = np.random.default_rng(5)
    level = random.normal(90, 12, 4**K).astype(np.float32)
    return PoreModel("start", K, "ACGT", level, random.uniform(1.5, 3, 4**K).astype(np.float32))


def test_many_events_give_their_moments(start: PoreModel):
    random = np.random.default_rng(6)
    noise = random.normal(0, 2, 4**K)
    noise -= np.polyval(np.polyfit(start.level_mean, noise, 1), start.level_mean)  # what no scaling takes up
    level, stdv = start.level_mean + noise, start.level_stdv * random.uniform(0.8, 1.2, 4**K)
    made, _, change = updated(start, start, sums_of(level, stdv, np.full(4**K, 1e7), 1.3), np.zeros(4**K), *PLAIN)
    np.testing.assert_allclose(made.level_mean, level, atol=0.01)
    ratio = made.level_stdv / stdv
    assert ratio.std() < 1e-4  # up to a common factor, which reads' var takes up
    assert np.exp(np.log(made.level_stdv / start.level_stdv).mean()) == pytest.approx(1, abs=0.01)
    assert change == pytest.approx(np.abs(noise).mean(), abs=0.01)


def test_drift_of_all_levels_is_taken_back(start: PoreModel):
    sums = sums_of(start.level_mean * 1.1 + 4.0, start.level_stdv * 1.1, np.full(4**K, 1e6))
    made, _, _ = updated(start, start, sums, np.zeros(4**K), *PLAIN)
    np.testing.assert_allclose(made.level_mean, start.level_mean, atol=0.01)
    np.testing.assert_allclose(made.level_stdv, start.level_stdv, rtol=0.01)


def test_unseen_kmers_follow_similar_ones(start: PoreModel):
    """An A in the middle lowers the level by 6 pA; two thirds of the k-mers were never seen."""
    middle_is_a = np.arange(4**K) // 4 ** (K // 2) % 4 == 0
    level = start.level_mean - 6.0 * middle_is_a
    n = np.where(np.random.default_rng(7).random(4**K) < 1 / 3, 1000.0, 0.0)
    made, _, _ = updated(start, start, sums_of(level, start.level_stdv, n), np.zeros(4**K), *PLAIN)
    unseen = n == 0
    gained = (made.level_mean - start.level_mean)[unseen]
    # up to the gauge: offset and gain against the start
    assert np.median(gained[~middle_is_a[unseen]]) - np.median(gained[middle_is_a[unseen]]) == pytest.approx(6, abs=0.8)
    assert (made.level_stdv[unseen] == start.level_stdv[unseen]).all()


def test_few_events_count_little(start: PoreModel):
    n = np.full(4**K, 1000.0)
    n[17] = 5
    level = start.level_mean.astype(float)
    level[17] += 10
    made, _, _ = updated(start, start, sums_of(level, start.level_stdv, n), np.zeros(4**K), *PLAIN)
    assert made.level_mean[17] - start.level_mean[17] == pytest.approx(10 * 5 / 25, abs=0.2)
    assert made.level_stdv.min() >= MIN_STDV


def test_methylated_kmers_learn_by_place(start: PoreModel):
    """Well-seen ones teach those that were never seen; controls that are not complete are told."""
    first = with_methylation(start, Shifts.of_places([0.0] * K), "first")
    truth = with_methylation(start, Shifts.of_places([0.0, 1.0, -4.0, 2.0, 0.0]), "truth")
    plain = plain_ranks(K, "ACGMT", "C")
    is_m = plain >= 0
    n = np.where(is_m, np.where(np.random.default_rng(8).random(5**K) < 0.5, 2000.0, 0.0), 0.0)
    sums = sums_of(truth.level_mean.astype(float), truth.level_stdv.astype(float), n)
    sums[:, 5] = n * 0.05
    made, share, _ = updated(first, first, sums, np.where(is_m, 0.05, 0.0), "C", 20.0, False, True)
    names = ["".join(kmer) for kmer in itertools.product("ACGMT", repeat=K)]
    unseen = is_m & (n == 0)
    error = made.level_mean - truth.level_mean
    assert np.sqrt((error[is_m & (n > 0)] ** 2).mean()) < 0.1
    assert np.sqrt((error[unseen] ** 2).mean()) < 0.3
    assert (made.level_mean[~is_m] == first.level_mean[~is_m]).all()
    assert names[int(np.flatnonzero(is_m)[0])].count("M") > 0
    np.testing.assert_allclose(share[is_m & (n > 0)], 0.05 / 1.05, rtol=0.01)
    assert (share[~is_m] == 0).all()
