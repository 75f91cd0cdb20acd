"""Counts of ratios, what they say by a threshold, and two components that fit them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from f5py.evaluation.mixture import error_by_ratios, fit_mixture, share_by_ratios
from f5py.evaluation.ratios import MOST, RatioCounts, area_under_curve, probability, roc_points


def counted(ratios: np.ndarray) -> RatioCounts:
    counts = RatioCounts()
    for part in np.array_split(ratios, 3):
        counts.add(part)
    return counts


def test_thresholds_count_as_meth_freq_does():
    ratios = np.round(np.random.default_rng(1).normal(0, 5, 5000), 2)
    ratios[:8] = 2.5, -2.5, 2.49, -2.49, 0, 300, -300, np.nan
    counts = counted(ratios)
    assert (counts.n, counts.n_undefined) == (4999, 1)
    for threshold in (0, 0.01, 2, 2.5, 2.501, 7, 99):
        kept = ratios[np.abs(ratios) >= threshold]
        assert counts.methylated(threshold) == (kept > 0).sum()
        assert counts.unmethylated(threshold) == (kept <= 0).sum()
        assert counts.passing(threshold) == len(kept)
    edges = np.arange(-20, 21.0)
    expected = np.histogram(np.clip(ratios[~np.isnan(ratios)], -20, 19.99), edges)[0]
    assert counts.histogram(edges).tolist() == expected.tolist()
    assert counted(np.array([1e9, -np.inf])).passing(MOST) == 2


def test_area_is_that_of_the_rank_sum():
    rng = np.random.default_rng(3)
    states = rng.random(900) < 0.3
    scores = np.round(rng.normal(states * 1.0, 1), 1)  # with ties
    statistic = scipy.stats.mannwhitneyu(scores[states], scores[~states]).statistic
    assert area_under_curve(states, scores) == pytest.approx(statistic / states.sum() / (~states).sum())
    assert area_under_curve(states[:0], scores[:0]) is None
    points = roc_points(states, scores)
    area = np.trapezoid(points["true_positive_rate"], points["false_positive_rate"])
    assert area == pytest.approx(area_under_curve(states, scores), abs=1e-4)
    assert (points["true_positive_rate"][0], points["true_positive_rate"][-1]) == (0, 1)


def test_probability_has_the_prior_where_nothing_is_known():
    assert probability(np.zeros(1), 0.2)[0] == pytest.approx(0.2)
    assert probability(np.array([-1e5, 1e5]), 0.2).tolist() == pytest.approx([0, 1])


def test_a_calibration_is_a_factor_of_the_ratio_and_not_of_the_prior():
    ratios = np.array([-3.0, 0.0, 2.0])
    assert probability(1.5 * ratios, 0.2).tolist() == probability(ratios, 0.2, 1.5).tolist()


@pytest.mark.parametrize("share", [0.05, 0.4])
def test_ratios_that_are_right_tell_share_and_errors(share: float):
    """Of normal densities one standard deviation d apart, ratios are normal with mean and half their variance d²/2."""
    rng = np.random.default_rng(5)
    state = rng.random(200_000) < share
    distance = 3.0
    ratios = rng.normal(np.where(state, 1, -1) * distance**2 / 2, distance)
    counts = counted(ratios)
    assert share_by_ratios(counts) == pytest.approx(share, abs=0.005)
    for threshold in (0, 1, 2.5):
        kept = np.abs(ratios) >= threshold
        wrong = ((ratios > 0) != state)[kept].mean()
        assert error_by_ratios(counts, share_by_ratios(counts), threshold) == pytest.approx(wrong, abs=0.003)


def test_two_components_are_found_and_tell_errors():
    rng = np.random.default_rng(6)
    state = rng.random(50_000) < 0.3
    ratios = 4 * np.sinh(rng.normal(np.where(state, 0.9, -0.8), np.where(state, 0.5, 0.4)))
    found = fit_mixture(counted(ratios))
    assert found is not None
    assert found.problem is None
    np.testing.assert_allclose(found.weight, (0.7, 0.3), atol=0.02)
    np.testing.assert_allclose(found.centres, 4 * np.sinh([-0.8, 0.9]), rtol=0.05)
    for threshold in (0, 1, 2.5):
        kept = np.abs(ratios) >= threshold
        assert found.error_rate(threshold) == pytest.approx(((ratios > 0) != state)[kept].mean(), abs=0.005)


def test_one_state_is_told():
    rng = np.random.default_rng(7)
    for ratios in (4 * np.sinh(rng.normal(-1.2, 0.6, 30_000)), rng.normal(-5, 4, 30_000)):
        found = fit_mixture(counted(ratios))
        assert found is not None
        assert found.problem is not None
    assert fit_mixture(counted(rng.normal(0, 5, 100))) is None
