"""Raw signals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from f5py.pore_model import builtin
from f5py.simulation.current import DELETION, INSERTION, MATCH, basecall, dwell_times, kmer_ranks, simulate_signal
from f5py.simulation.settings import SimulationSettings

from ..compiled import compiled

QUIET = SimulationSettings(level_noise=0.0, sample_noise=0.0, shift_sd=0.0, scale_sd=0.0)


@pytest.fixture(scope="module")
def model():
    return builtin("r9.4_450bps.cpg.6mer")


@pytest.fixture(scope="module")
def codes() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 5, 20_005).astype(np.uint8)


def in_pa(samples, offset, settings):
    return (samples.astype(float) + offset) * settings.signal_range / settings.digitisation


def test_ranks_are_numbers_in_base_n():
    codes = np.array([0, 1, 4, 2, 3], dtype=np.uint8)
    assert kmer_ranks(codes, 3, 5).tolist() == [int("014", 5), int("142", 5), int("423", 5)]


@pytest.mark.parametrize("mean", [1.0, 4000 / 450, 50.0])
def test_dwell_times_have_the_mean_and_are_at_least_one(mean):
    times = dwell_times(200_000, mean, 1.6, np.random.default_rng(1))
    assert times.min() >= 1
    assert times.mean() == pytest.approx(mean, rel=0.01)


def test_a_signal_without_noise_steps_through_the_model(model, codes):
    samples = simulate_signal(codes, model, QUIET, 11.0, False, np.random.default_rng(1))
    levels = model.level_mean[kmer_ranks(codes, 6, 5)]
    raw = np.rint(levels * (QUIET.digitisation / QUIET.signal_range) - 11.0).astype(np.int16)
    expected = raw[np.concatenate(([True], np.diff(raw) != 0))]
    found = samples[np.concatenate(([True], np.diff(samples) != 0))]
    # rounding in single precision may move a level by one unit where it lies half-way
    assert len(found) == pytest.approx(len(expected), abs=5)
    if len(found) == len(expected):
        assert np.abs(found.astype(int) - expected).max() <= 1
    np.testing.assert_allclose(in_pa(samples, 11.0, QUIET).mean(), levels.mean(), rtol=0.01)


def test_sample_noise_and_level_noise(model):
    same = np.zeros(30_005, dtype=np.uint8)
    of_samples = simulate_signal(same, model, replace(QUIET, sample_noise=2.0), 0.0, False, np.random.default_rng(1))
    assert in_pa(of_samples, 0, QUIET).std() == pytest.approx(2.0, rel=0.02)
    of_levels = simulate_signal(same, model, replace(QUIET, level_noise=3.0), 0.0, False, np.random.default_rng(1))
    pa = in_pa(of_levels, 0, QUIET)
    steps = pa[np.concatenate(([True], np.diff(pa) != 0))]
    assert steps.std() == pytest.approx(3.0 * model.level_stdv[0], rel=0.04)


@pytest.mark.parametrize(("slow", "least", "most"), [(False, 1.5, 2.1), (True, 5.5, 12.0)])
def test_events_per_base_are_those_of_real_reads(model, codes, slow, least, most):
    from f5py.signal.events import DNA, find_events, scratch_for

    find_events = compiled(find_events)
    scratch_for = compiled(scratch_for)

    settings = SimulationSettings()
    samples = simulate_signal(codes, model, settings, 10.0, slow, np.random.default_rng(1))
    start, mean, stdv = np.empty(0, np.int32), np.empty(len(samples), np.float32), np.empty(0, np.float32)
    unit = np.float32(settings.signal_range / settings.digitisation)
    n_events = find_events(samples, np.float32(10), unit, DNA, scratch_for(DNA), start, mean, stdv)
    assert least < n_events / len(codes) < most


def unpack(call):
    return np.repeat(call.operations, call.lengths)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=300), st.floats(0, 0.9), st.integers(0, 999))
def test_the_cigar_turns_the_molecule_into_the_read(molecule, error_rate, seed):
    molecule = np.array(molecule, dtype=np.uint8)
    call = basecall(molecule, error_rate, np.random.default_rng(seed))
    operations = unpack(call)
    assert (operations != INSERTION).sum() == len(molecule)
    assert (operations != DELETION).sum() == len(call.codes) == len(call.qualities)
    assert (np.diff(call.operations.astype(int)) != 0).all(), "runs are joined"
    assert operations[0] == operations[-1] == MATCH
    touching = {*zip(call.operations[:-1], call.operations[1:], strict=True)}
    assert not touching & {(INSERTION, DELETION), (DELETION, INSERTION)}
    from_molecule = molecule[operations[operations != INSERTION] == MATCH]
    from_read = call.codes[operations[operations != DELETION] == MATCH]
    mismatches = (from_molecule != from_read).sum()
    assert call.edit_distance == mismatches + (operations != MATCH).sum()
    assert call.codes.max() < 4


def test_error_rate_and_kinds():
    molecule = np.random.default_rng(1).integers(0, 4, 200_000).astype(np.uint8)
    call = basecall(molecule, 0.1, np.random.default_rng(2))
    n_insertions = (call.operations == INSERTION).sum()
    n_deleted = call.lengths[call.operations == DELETION].sum()
    n_mismatches = call.edit_distance - call.lengths[call.operations != MATCH].sum()
    assert n_mismatches == pytest.approx(8000, rel=0.05)
    assert n_insertions == pytest.approx(5000, rel=0.06)
    assert n_deleted == pytest.approx(7000, rel=0.05)
