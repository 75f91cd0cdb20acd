"""The second fit of reads, to levels that are methylated as the calls say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from f5py.core.batch import Calls
from f5py.core.motifs import reverse_complement
from f5py.methylation.rescale import MOST_EVENTS, _reference_of, fit_read, fit_robust, site_probabilities
from f5py.pore_model import builtin

from ..compiled import compiled

_reference_of = compiled(_reference_of)
fit_read = compiled(fit_read)
fit_robust = compiled(fit_robust)
site_probabilities = compiled(site_probabilities)

MODEL = builtin("r9.4_450bps.cpg.6mer")
LEVELS = MODEL.levels


@given(st.floats(-20, 20), st.floats(0.8, 1.2), st.floats(0.5, 2.0), st.integers(0, 2**32))
def test_outliers_do_not_move_the_fit(shift: float, scale: float, var: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    level, spread = rng.uniform(60, 120, 2000), rng.uniform(1, 3, 2000)
    x = shift + scale * level + var * spread * rng.normal(size=2000)
    clean = fit_robust(x, level, spread)
    assert clean[0] == pytest.approx(shift, abs=1.5)
    assert clean[1] == pytest.approx(scale, abs=0.015)
    assert clean[2] == pytest.approx(var, rel=0.1)
    x[::20] += 40 * var
    wild = fit_robust(x, level, spread)
    assert wild[0] + 90 * wild[1] == pytest.approx(clean[0] + 90 * clean[1], abs=0.3 * var + 0.05)
    weights = 1 / spread**2
    of_squares = np.polyfit(level, x, 1, w=np.sqrt(weights))
    assert abs(np.polyval(of_squares, 90) - (shift + 90 * scale)) > abs(wild[0] + 90 * wild[1] - shift - 90 * scale)


def test_no_fit_of_one_level() -> None:
    one = np.full(300, 90.0)
    assert fit_robust(one, one, np.ones(300)) == (0, 0, 0)


def _read(rng: np.random.Generator, n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    plain = rng.choice(np.array([0, 1, 2, 4], np.uint8), n)
    changed = plain.copy()
    changed[:-1][(plain[:-1] == 1) & (plain[1:] == 2)] = 3
    return plain, changed


def _means(codes: np.ndarray) -> np.ndarray:
    n = len(codes) - MODEL.k + 1
    ranks = np.zeros(n, np.int64)
    for i in range(MODEL.k):
        ranks = ranks * 5 + codes[i : i + n]
    return MODEL.level_mean[ranks].astype(np.float64)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_levels_are_methylated_as_the_calls_say(p: float) -> None:
    """Without noise the fit is exact, and the levels of the other state are not."""
    rng = np.random.default_rng(3)
    plain, changed = _read(rng)
    events = (7 + 1.1 * _means(changed if p else plain)).astype(np.float32)
    first = np.arange(len(events), dtype=np.int32)
    for given_p in (0.0, 1.0):
        probability = np.where(changed == 3, given_p, -1.0)
        shift, scale, var = fit_read(events, first, first, plain, changed, probability, LEVELS, 200)
        if given_p == p:
            assert (shift, scale) == (pytest.approx(7, abs=1e-3), pytest.approx(1.1, abs=1e-5))
            assert var < 1e-4
        else:
            assert var > 0.1
    assert fit_read(events, first, first, plain, changed, probability, LEVELS, 2000) == (0, 0, 0)


def test_kmers_of_many_events_are_not_used() -> None:
    rng = np.random.default_rng(4)
    plain, changed = _read(rng)
    events = _means(plain).astype(np.float32)
    first = np.arange(len(events), dtype=np.int32)
    last = first.copy()
    events[::3] += 30
    last[::3] += MOST_EVENTS - 1
    shift, scale, _ = fit_read(events, first, last, plain, changed, np.full(len(plain), -1.0), LEVELS, 200)
    assert (shift, scale) == (pytest.approx(0, abs=1e-3), pytest.approx(1, abs=1e-5))


@pytest.mark.parametrize("reverse", [False, True])
def test_sites_have_the_probabilities_of_their_groups(reverse: bool) -> None:
    """A read of 5 clipped bases, 10 aligned, 2 inserted, 10 aligned over 3 deleted; clipped sites have the mean."""
    reference = "AACGTTACGATTTCCGAAAAAAAAA"
    aligned = "CGTTT" + reference[:10] + "TT" + reference[13:23]
    cigar = np.array([5 << 4 | 4, 10 << 4, 2 << 4 | 1, 3 << 4 | 2, 10 << 4], np.uint32)
    read = reverse_complement(aligned) if reverse else aligned
    places = np.empty(len(read), np.int64)
    _reference_of(cigar, 100, reverse, places)
    forward = places[::-1] if reverse else places
    assert forward.tolist() == [-1] * 5 + list(range(100, 110)) + [-1] * 2 + list(range(113, 123))
    plain = np.array(["ACGMT".index(one) for one in read], np.uint8)
    changed = plain.copy()
    changed[:-1][(plain[:-1] == 1) & (plain[1:] == 2)] = 3
    first, last = np.array([102, 114]), np.array([107, 114])  # the C of a CG on the forward strand
    methylated, unmethylated = np.array([-10.0, -20.0], np.float32), np.array([-12.0, -17.0], np.float32)
    probability = np.empty(len(read))
    calls = Calls(np.array([0, 2]), np.array([2]), first, last, np.ones(2, np.int32), methylated, unmethylated)
    site_probabilities(places, plain, changed, 1 if reverse else 0, calls, 0, 2, probability)
    a, b = 1 / (1 + np.exp(-2)), 1 / (1 + np.exp(3))
    expected = [b, a, a, (a + b) / 2] if reverse else [(a + b) / 2, a, a, b]
    assert probability[changed == 3] == pytest.approx(expected)
    assert (probability[changed != 3] == -1).all()
