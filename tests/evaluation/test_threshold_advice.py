"""Advice on thresholds: what it claims is never less than what is true, and says what it rests on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.evaluation.ratios import RatioCounts
from f5py.evaluation.threshold_advice import ErrorEstimates, advise

from ..examples import examples


def drawn(share: float, distance: float = 3.0, stretch: float = 1.0, n: int = 40_000, seed: int = 1):
    """Ratios of normal densities `distance` standard deviations apart, made greater than they are by `stretch`.

    Returns
    -------
    ratios : float64, shape (n,)
    states : bool, shape (n,)
    """
    rng = np.random.default_rng(seed)
    states = rng.random(n) < share
    ratios = rng.normal(np.where(states, 1, -1) * distance**2 / 2, distance)
    return np.round(stretch * ratios, 2), states


def counted(ratios: np.ndarray) -> RatioCounts:
    counts = RatioCounts()
    counts.add(ratios)
    return counts


def advice_of(ratios: np.ndarray, goal: float = 0.02, **controls: np.ndarray):
    given_controls = {state: counted(one) for state, one in controls.items()}
    return advise(ErrorEstimates(counted(ratios), given_controls), goal)


def truly_wrong(ratios: np.ndarray, states: np.ndarray, threshold: float) -> float:
    return float(((ratios > 0) != states)[np.abs(ratios) >= threshold - 1e-9].mean())


@pytest.mark.parametrize("share", [0.0, 1.0])
@pytest.mark.parametrize("stretch", [0.8, 1.0, 1.3])
def test_of_one_state_the_calls_of_the_other_are_what_is_wrong(share: float, stretch: float):
    """The ratios of the stretched set alone claim fewer wrong calls than there are."""
    ratios, states = drawn(share, distance=2.5, stretch=stretch)
    advice = advice_of(ratios)
    assert advice["basis"] == "one_state"
    true = truly_wrong(ratios, states, advice["threshold"])
    assert true <= advice["error_rate"] <= 0.02
    assert f"nearly all seem to be {'' if share else 'un'}methylated" in advice["reasons"][0]
    if stretch == 1.3:
        estimates = ErrorEstimates(counted(ratios), {})
        assert estimates.at(advice["threshold"])["by_ratios"] < 0.8 * true


@settings(max_examples=examples(25))
@given(
    distance=st.floats(1, 5), stretch=st.floats(0.5, 3), shift=st.floats(-2, 2), share=st.sampled_from([0.0, 1.0]),
    n=st.integers(50, 3000), seed=st.integers(0, 1000),
)  # fmt: skip
def test_no_set_of_one_state_has_more_wrong_calls_than_its_bound(distance, stretch, shift, share, n, seed):
    """However wrong the model: either there is no advice, or the bound holds and rests on enough calls."""
    ratios, states = drawn(share, distance, stretch, n, seed)
    ratios = np.round(ratios + shift, 2)
    advice = advice_of(ratios)
    if advice["basis"] == "one_state" and advice["threshold"] is not None:
        dominant = "unmethylated" if "seem to be unmethylated" in advice["reasons"][0] else "methylated"
        kept = np.abs(ratios) >= advice["threshold"] - 1e-9
        assert kept.sum() >= 150
        other = (ratios > 0)[kept].mean() if dominant == "unmethylated" else (ratios <= 0)[kept].mean()
        assert other <= advice["error_rate"] <= 0.02
        if (dominant == "methylated") == bool(share):
            assert truly_wrong(ratios, states, advice["threshold"]) <= advice["error_rate"]


@pytest.mark.parametrize(("share", "distance"), [(0.1, 3), (0.1, 5), (0.3, 3), (0.5, 4), (0.69, 5), (0.9, 3.5)])
def test_two_states_that_are_told_apart(share: float, distance: float):
    ratios, states = drawn(share, distance)
    advice = advice_of(ratios)
    assert advice["basis"] == "components"
    assert truly_wrong(ratios, states, advice["threshold"]) <= advice["error_rate"] + 0.002
    assert "fit the ratios" in advice["reasons"][0]
    assert "nearly all" not in " ".join(advice["reasons"])


@pytest.mark.parametrize("share", [0.2, 0.5, 0.69])
def test_two_states_that_nothing_tells_apart_get_no_advice(share: float):
    """And no word of one state beside a share of methylated calls that says otherwise."""
    ratios, _ = drawn(share, distance=1.2)
    advice = advice_of(ratios)
    assert (advice["basis"], advice["threshold"], advice["error_rate"]) == (None, None, None)
    assert "methylated sites, so that it is not one state either" in advice["reasons"][0]
    assert "nearly all" not in " ".join(advice["reasons"])


def test_calls_of_the_wrong_model_get_no_advice():
    """Of unmethylated sites, 19 % of the calls beyond 2.5 say methylated: no figure that ratios give is true."""
    ratios = np.round(np.random.default_rng(2).normal(-2.2, 5, 30_000), 2)
    kept = np.abs(ratios) >= 2.5
    assert (ratios > 0)[kept].mean() > 0.19
    assert advice_of(ratios)["threshold"] is None


def test_misfit_comes_first():
    """Where the components do not fit, nothing else of them is told."""
    rng = np.random.default_rng(3)
    ratios = np.concatenate(
        [rng.uniform(-30, -29, 10_000), rng.uniform(-0.5, 0.5, 10_000), rng.uniform(9, 9.2, 10_000)]
    )
    found = ErrorEstimates(counted(np.round(ratios, 2)), {})
    assert found.mixture is not None
    assert found.mixture.misfit > 0.05
    assert found.problem is not None
    assert found.problem.startswith("two components do not fit the ratios")
    one_sided = counted(np.round(np.concatenate([rng.uniform(-30, -29, 10_000), rng.uniform(-2, -1, 10_000)]), 2))
    found = ErrorEstimates(one_sided, {})
    assert found.mixture is not None
    if found.mixture.misfit > 0.05:
        assert "do not fit" in str(found.problem)


def test_components_and_ratios_that_disagree_are_no_advice():
    """Two clear components, but far nearer to 0 than such ratios could be: methylated sites of ratios around 0.6."""
    rng = np.random.default_rng(4)
    states = rng.random(40_000) < 0.5
    ratios = np.round(np.where(states, rng.normal(0.6, 0.2, 40_000), rng.normal(-8, 1.0, 40_000)), 2)
    found = ErrorEstimates(counted(ratios), {})
    assert found.mixture is not None
    assert found.mixture.problem is None
    assert abs(found.mixture.weight[1] - found.share) > 0.1
    assert "levels of the reads may differ from those of the pore model" in str(found.problem)
    assert found.at(2.0)["by_components"] is None
    assert advice_of(ratios)["threshold"] is None


def test_few_calls_show_no_small_share():
    """400 calls can show that less than 2 % are wrong, or less than 1, but not less than a half."""
    ratios, _ = drawn(0.0, distance=5, n=400)
    for goal in (0.02, 0.01):
        advice = advice_of(ratios, goal)
        assert (advice["basis"], advice["threshold"] is None) == ("one_state", False)
        assert (np.abs(ratios) >= advice["threshold"]).sum() >= 3 / goal
    advice = advice_of(ratios, 0.005)
    assert advice["threshold"] is None
    assert "keeps 600 calls or more" in advice["reasons"][-1]
    assert "too few calls" in advice_of(ratios[:150])["reasons"][0]
    control = np.linspace(-8, -5, 100).round(2)
    sample, _ = drawn(0.5)
    assert advice_of(sample, methylated=-control, unmethylated=control)["threshold"] is None


def test_what_controls_show_is_known_and_what_one_shows_is_not():
    ratios, states = drawn(0.4)
    parts = {"methylated": ratios[states], "unmethylated": ratios[~states]}
    assert advice_of(ratios, **parts)["basis"] == "controls"
    for state, part in parts.items():
        one = advice_of(ratios, **{state: part})
        assert one["basis"] == "one_control"
        assert "estimated" in one["reasons"][1]
