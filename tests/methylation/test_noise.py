"""The forward algorithm with correlated noise against a plain recursion and against all paths, in doubles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from f5py.core.noise import GAUSSIAN, INDEPENDENT, OF_PORES, STUDENT, Noise
from f5py.methylation.hmm import noise_terms

from ..examples import examples
from .plain_hmm import all_paths, ln_density, plain_forward
from .test_hmm import LANES, forward, made_problem

NOISES = [*OF_PORES.values(), Noise(0.5, 0.4, GAUSSIAN), Noise(0.0, 0.0, STUDENT), Noise(-0.3, 0.8, STUDENT)]


def _expected(problem, events_per_base, noise):
    return plain_forward(*(np.asarray(part, np.float64) for part in problem), events_per_base, noise)


@pytest.mark.parametrize("noise", [INDEPENDENT, *NOISES])
@pytest.mark.parametrize(("n_events", "n_kmers"), [(1, 1), (1, 3), (3, 1), (2, 2), (3, 3), (4, 3), (5, 2), (3, 4)])
def test_all_paths_of_tiny_windows(noise: Noise, n_events: int, n_kmers: int) -> None:
    rng = np.random.default_rng(n_events + 10 * n_kmers)
    mean, stdv = rng.uniform(80, 90, n_kmers), rng.uniform(1, 3, n_kmers)
    events = rng.uniform(78, 92, n_events)
    expected = math.log(sum(all_paths(events, mean, stdv, 1.9, noise)))
    assert plain_forward(events, mean, stdv, 1.9, noise) == pytest.approx(expected, rel=1e-12)
    problem = tuple(part.astype(np.float32) for part in (events, mean, stdv))
    expected = math.log(sum(all_paths(*(part.astype(np.float64) for part in problem), 1.9, noise)))
    assert forward([problem], 1.9, noise)[0] == pytest.approx(expected, rel=1e-5, abs=1e-4)


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    noise=st.one_of(
        st.sampled_from(NOISES),
        st.builds(Noise, st.floats(-0.9, 0.9), st.floats(-0.9, 0.9), st.sampled_from([GAUSSIAN, STUDENT])),
    ),
    events_per_base=st.floats(1.02, 6.0),
    spread=st.floats(0.3, 3.0),
)
@example(seed=1, noise=OF_PORES["r9"], events_per_base=1.9, spread=1.0)
def test_equals_the_plain_recursion(seed: int, noise: Noise, events_per_base: float, spread: float) -> None:
    rng = np.random.default_rng(seed)
    problems = [made_problem(rng, int(n), noise=spread) for n in rng.integers(2, 30, 4)]
    expected = [_expected(problem, events_per_base, noise) for problem in problems]
    np.testing.assert_allclose(forward(problems, events_per_base, noise), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("noise", NOISES)
def test_outliers_and_events_that_match_nothing(noise: Noise) -> None:
    rng = np.random.default_rng(11)
    problems = []
    for place in (slice(0, 1), slice(0, 5), slice(10, 13), slice(-1, None), slice(-6, None), slice(None)):
        events, mean, stdv = made_problem(rng, 16, noise=2.0)
        events[place] += 150
        problems.append((events, mean, stdv))
    for n_events, n_kmers in ((11, 16), (60, 16), (16, 40), (200, 30), (12, 100)):
        problems.append((rng.uniform(40, 140, n_events).astype(np.float32), *made_problem(rng, n_kmers)[1:]))
    expected = [_expected(problem, 1.9, noise) for problem in problems]
    np.testing.assert_allclose(forward(problems, 1.9, noise), expected, rtol=1e-5, atol=5e-3)


@pytest.mark.parametrize("kind", ["good", "random", "stalled", "far off"])
@pytest.mark.parametrize(("n_events", "n_kmers"), [(1, 216), (40, 216), (300, 3), (60, 20)])
def test_single_precision_loses_nothing(n_events: int, n_kmers: int, kind: str) -> None:
    rng = np.random.default_rng(n_events + n_kmers)
    _, mean, stdv = made_problem(rng, n_kmers)
    along = np.arange(n_events) * n_kmers // n_events
    place = {"random": rng.integers(0, n_kmers, n_events), "stalled": np.zeros(n_events, int)}.get(kind, along)
    events = (mean[place] + rng.normal(size=n_events)).astype(np.float32)
    if kind == "far off":
        events[rng.random(n_events) < 0.5] += 150
    for noise in OF_PORES.values():
        problem = events, mean, stdv
        np.testing.assert_allclose(forward([problem], 1.8, noise), _expected(problem, 1.8, noise), rtol=1e-5)


def test_no_correlation_and_gaussian_noise_are_the_independent_noise() -> None:
    """The same bytes, as the same loops are used; and the loops of correlated noise come to the same likelihoods."""
    assert noise_terms(Noise(0.0, 0.0, GAUSSIAN)) is None
    assert noise_terms(None) is None
    rng = np.random.default_rng(3)
    problems = [made_problem(rng, 16) for _ in range(LANES)]
    nearly = Noise(1e-12, 0.0, GAUSSIAN)
    np.testing.assert_allclose(forward(problems, 1.8, nearly), forward(problems, 1.8), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("noise", [INDEPENDENT, *NOISES])
def test_swapping_the_levels_negates_the_ratio(noise: Noise) -> None:
    rng = np.random.default_rng(8)
    events, mean, stdv = made_problem(rng, 20)
    other = mean + np.where(np.abs(np.arange(20) - 10) < 3, 4.0, 0.0).astype(np.float32)

    def ratio(first, second):
        problems = [(events, first, stdv), (events, second, stdv)]
        found = forward(problems, 1.9, noise)
        return found[0] - found[1]

    assert ratio(mean, other) == -ratio(other, mean)
    assert abs(ratio(mean, other)) > 0.1


def test_a_likelihood_adds_up_to_one_over_the_next_event() -> None:
    """The conditional densities are densities: integrated over an event they give 1 whatever was before it."""
    z = np.linspace(-400, 400, 800_001)
    for noise in NOISES:
        for before, rho in ((None, 0.0), (1.7, noise.stay), (-2.5, noise.step)):
            density = np.exp(ln_density(noise, z[::40], before, rho))
            assert density.sum() * (z[40] - z[0]) == pytest.approx(1.0, abs=2e-4)
