"""The sixteen-lane forward algorithm against a plain one in double precision and log space."""

import math

import numpy as np
import pytest

from f5py.methylation.hmm import NEVER, Emissions, ForwardScratch, forward_lanes, noise_terms, work_size

from ..compiled import compiled
from .made_groups import INSERTED, JUMPS, OUTLIERS, STALLS, compare_ratios
from .plain_hmm import plain_forward

forward_lanes, work_size = map(compiled, (forward_lanes, work_size))

LANES = 16


def _lanes(problems):
    """Up to sixteen (events, mean, stdv) problems, as the loops take them."""
    problems = [problems[i % len(problems)] for i in range(LANES)]
    n_events = np.array([len(p[0]) for p in problems], np.int64)
    n_kmers = np.array([len(p[1]) for p in problems], np.int64)
    rows, columns = n_events.max(), n_kmers.max()
    events = np.zeros((rows, LANES), np.float32)
    inverse, offset = np.zeros((2, columns, LANES), np.float32)
    constant = np.full_like(inverse, NEVER)
    for lane, (x, mean, stdv) in enumerate(problems):
        events[: len(x), lane] = x
        events[len(x) :, lane] = x[-1]
        stretch = np.sqrt(0.5 * math.log2(math.e)) / stdv
        inverse[: len(mean), lane] = stretch
        offset[: len(mean), lane] = -mean * stretch
        constant[: len(mean), lane] = (-0.918938 - np.log(stdv)) * math.log2(math.e)
    return events.ravel(), inverse.ravel(), offset.ravel(), constant.ravel(), n_events, n_kmers


def forward(problems, events_per_base, noise=None):
    """Scores of up to sixteen problems."""
    *arrays, n_events, n_kmers = _lanes(problems)
    rows, columns = n_events.max(), n_kmers.max()
    scores = np.empty(LANES, np.float32)
    scratch = ForwardScratch(np.empty(work_size(columns), np.float32), *np.empty((2, rows * LANES), np.float32))
    forward_lanes(
        arrays[0], Emissions(*arrays[1:]), n_events, n_kmers, np.full(LANES, float(events_per_base)),
        noise_terms(noise), scratch, scores,
    )  # fmt: skip
    return scores[: len(problems)]


def made_problem(rng, n_kmers, events_per_kmer=1.8, noise=1.0):
    mean = rng.uniform(60, 120, n_kmers).astype(np.float32)
    stdv = rng.uniform(1.0, 3.0, n_kmers).astype(np.float32)
    repeats = np.maximum(rng.poisson(events_per_kmer, n_kmers), 0)
    repeats[0] = max(repeats[0], 1)
    index = np.repeat(np.arange(n_kmers), repeats)
    events = (mean[index] + noise * stdv[index] * rng.normal(size=len(index))).astype(np.float32)
    return events, mean, stdv


def _check(problems, events_per_base, tolerance=2e-3):
    scores = forward(problems, events_per_base)
    expected = [plain_forward(*(np.asarray(part, np.float64) for part in p), events_per_base) for p in problems]
    np.testing.assert_allclose(scores, expected, atol=tolerance, rtol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_good_events(seed):
    rng = np.random.default_rng(seed)
    _check([made_problem(rng, 16) for _ in range(LANES)], 1.8)


def test_lanes_of_different_sizes_do_not_disturb_each_other():
    rng = np.random.default_rng(10)
    _check([made_problem(rng, n) for n in (1, 2, 3, 16, 17, 21, 40, 90, 5, 16, 33, 8, 16, 16, 64, 7)], 2.2)


def test_noisy_events_and_outliers():
    """Events far from every level, in which single precision would underflow, at the start, middle and end."""
    rng = np.random.default_rng(11)
    problems = []
    for place in (slice(0, 1), slice(0, 5), slice(10, 13), slice(-1, None), slice(-6, None), slice(None)):
        events, mean, stdv = made_problem(rng, 16, noise=2.0)
        events[place] += 150
        problems.append((events, mean, stdv))
    _check(problems, 1.9)


def test_events_that_match_nothing():
    """Random events: paths that stay in the background, in bad events or skip most k-mers."""
    rng = np.random.default_rng(12)
    problems = []
    for n_events, n_kmers in ((11, 16), (60, 16), (16, 40), (200, 30), (12, 100)):
        events = rng.uniform(40, 140, n_events).astype(np.float32)
        problems.append((events, *made_problem(rng, n_kmers)[1:]))
    _check(problems, 1.5, tolerance=5e-3)


@pytest.mark.parametrize("events_per_base", [0.5, 1.0, 1.01, 4.9])
def test_extreme_events_per_base(events_per_base):
    rng = np.random.default_rng(13)
    _check([made_problem(rng, 16) for _ in range(3)], events_per_base)


@pytest.mark.parametrize(("n_events", "n_kmers"), [(1, 216), (5, 216), (40, 216), (700, 216), (300, 3), (60, 20)])
@pytest.mark.parametrize("kind", ["good", "random", "stalled", "far off"])
def test_single_precision_loses_nothing(n_events, n_kmers, kind):
    """As many k-mers as the longest window has, reached by skips alone, and events that no k-mer explains."""
    rng = np.random.default_rng(n_events + n_kmers)
    _, mean, stdv = made_problem(rng, n_kmers)
    place = {
        "good": np.arange(n_events) * n_kmers // n_events,
        "random": rng.integers(0, n_kmers, n_events),
        "stalled": np.zeros(n_events, int),
        "far off": np.arange(n_events) * n_kmers // n_events,
    }[kind]
    events = (mean[place] + rng.normal(size=n_events)).astype(np.float32)
    if kind == "far off":
        events[rng.random(n_events) < 0.5] += 150
    expected = plain_forward(*(np.asarray(part, np.float64) for part in (events, mean, stdv)), 1.8)
    np.testing.assert_allclose(forward([(events, mean, stdv)], 1.8)[0], expected, rtol=3e-6)


@pytest.mark.parametrize("kind", [0, STALLS, JUMPS, INSERTED, OUTLIERS, STALLS | JUMPS | INSERTED | OUTLIERS])
def test_long_groups_of_all_kinds(kind):
    ratios, in_doubles = compare_ratios(1_000_000 * kind, 12, kind)
    assert np.ptp(in_doubles) > 50
    np.testing.assert_allclose(ratios, in_doubles, atol=0.005, rtol=0)


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        (0, 2136), (0, 2192), (STALLS, 10_000_944), (JUMPS, 20_001_952), (JUMPS, 20_002_024),
        (STALLS | JUMPS, 30_000_296), (STALLS | JUMPS, 30_000_512), (INSERTED, 40_000_832),
        (STALLS | INSERTED, 50_000_072), (STALLS | INSERTED, 50_000_168),
        # these also with a scale for every 16 k-mers
        (STALLS | JUMPS, 403_040), (STALLS | JUMPS | INSERTED, 823_008),
    ],
)  # fmt: skip
def test_paths_far_behind_are_not_lost(kind, seed):
    """The best path of a row may lead nowhere, and one with 2 ** -126 of its probability or less be that of the read.

    With one scale for all k-mers of a row, single precision loses such paths in the middle of these groups, while
    their ends look as they should.
    """
    ratios, in_doubles = compare_ratios(seed, 1, kind)
    np.testing.assert_allclose(ratios, in_doubles, atol=0.005, rtol=0)


def test_a_step_back_after_a_stall():
    """Events of two k-mers in turn, the wrong way round, each for as long as the other one's path falls behind."""
    rng = np.random.default_rng(14)
    events, mean, stdv = made_problem(rng, 90)
    problems = []
    for first, second, n in ((40, 20, 12), (40, 20, 40), (60, 5, 60), (33, 31, 10), (70, 20, 200)):
        stalled = np.repeat(mean[[first, second, first]], n) + rng.normal(size=3 * n)
        middle = len(events) // 3
        problems.append((np.concatenate([events[:middle], stalled, events[middle:]]).astype(np.float32), mean, stdv))
    _check(problems, 1.8)
