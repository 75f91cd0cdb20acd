"""Events that a GPU finds are the CPU's to the last bit, whatever the samples look like."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from f5py.compute.gpu.placement import Reason
from f5py.core.batch import ReadBatch
from f5py.core.offsets import offsets_of
from f5py.signal import events

from ...abea.batch_maker import made_batch
from .test_backend import ALL, _computed, _watched, small_batches_too, stages_of  # noqa: F401 - a fixture

_EVENTS = ("event_offsets", "event_start", "event_length", "event_mean", "event_stdv")
_N = 5000
_OFFSET, _UNIT = 8.0, 0.17
_RNG = np.random.default_rng(11)


def steps(length: int, noise: float, n: int = _N) -> NDArray[np.float64]:
    levels = np.repeat(_RNG.normal(90, 15, -(-n // length)), length)[:n]
    return levels + _RNG.normal(0, noise, n)


def with_samples(signal: NDArray[np.float64], at: int, *values: float) -> NDArray[np.float64]:
    signal = signal.copy()
    signal[at : at + len(values)] = values
    return signal


_POSITIONS = np.arange(_N)
#: In pA. What the detectors remember lasts long where there is no peak: the least statistic since the last one.
SIGNALS = {
    "usual": steps(9, 1.0),
    "noise": _RNG.normal(90, 20, _N),
    "hardly any noise": 90 + _RNG.normal(0, 0.2, _N),
    "constant": np.full(_N, 90.0),
    "slow": 60 + _POSITIONS * 0.01 + _RNG.normal(0, 0.1, _N),
    "waves": 90 + 0.6 * np.sin(_POSITIONS / 40.0) * np.linspace(1.0, 0.2, _N),
    "long steps": steps(700, 0.4),
    "one step": with_samples(np.full(_N, 80.0), 2500, *np.full(_N - 2500, 100.0)),
    "an event every other sample": np.where(_POSITIONS % 4 < 2, 60.0, 120.0) + _RNG.normal(0, 0.3, _N),
    "zero": np.zeros(_N),
    "zero for a while": with_samples(steps(9, 1.0), 1000, *np.zeros(300)),
    "negative": steps(9, 1.0) - 200,
    "a sample near zero": with_samples(steps(9, 1.0), 3000, 1.3, -2.1),
    "near zero at the end": with_samples(steps(9, 1.0), _N - 1, 0.5),
    "squares that add up to more than is exact": steps(9, 1.0) + 5000,
}


def batch_of(signals: list[NDArray[np.float64]]) -> ReadBatch:
    batch = made_batch(np.random.default_rng(3), len(signals), usual=500, long=520)
    batch.offset[:], batch.unit[:] = _OFFSET, _UNIT
    batch.samples = np.round(np.concatenate(signals) / _UNIT - _OFFSET).astype(np.int16)
    batch.sample_offsets = offsets_of(np.array([len(signal) for signal in signals]))
    batch.event_offsets, batch.event_mean = np.zeros(0, np.int64), np.zeros(0, np.float32)
    batch.kmer_rank = np.zeros(0, np.int32)
    return batch


@pytest.fixture
def compare(device, pool):
    """A function that computes signals on the GPU and the CPU, and compares their events."""

    def compare(signals: list[NDArray[np.float64]], rna: bool) -> ReadBatch:
        stages = stages_of(pool, parameters=events.RNA if rna else events.DNA, rna=rna)
        backend, placements = _watched(device, stages, ALL)
        batch = batch_of(signals)
        found, expected = _computed(batch, backend), _computed(batch, stages)
        backend.close()
        for name in _EVENTS:
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
        assert placements[0].count(Reason.GPU) > 0.8 * len(signals)
        return expected

    return compare


@pytest.mark.parametrize("rna", [False, True])
def test_signals(compare, rna: bool):
    found = compare(list(SIGNALS.values()), rna)
    n_events = dict(zip(SIGNALS, np.diff(found.event_offsets).tolist(), strict=True))
    assert n_events["usual"] > (100 if rna else 400)
    assert n_events["constant"] == 1
    assert n_events["one step"] == 2


@pytest.mark.parametrize("rna", [False, True])
def test_lengths(compare, rna: bool):
    """A few samples, and such that the lanes' stretches end in different places."""
    lengths = [*range(1, 70), 95, 96, 97, 127, 128, 129, 1023, 1024, 1025, 4095, 4096, 4097]
    compare([SIGNALS["usual"][:length] for length in lengths], rna)
