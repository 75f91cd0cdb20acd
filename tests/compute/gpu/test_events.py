"""Events that a GPU finds are the CPU's to the last bit, whatever the samples look like."""

from __future__ import annotations

from operator import attrgetter

import numpy as np
import pytest
from numpy.typing import NDArray

from f5py.compute.gpu.placement import PlacementReason
from f5py.core.batch import Events, ReadBatch
from f5py.core.offsets import offsets_of
from f5py.signal import events

from ...abea.batch_maker import made_batch
from .test_backend import ALL, _computed, _watched, small_batches_too, stages_of  # noqa: F401 - a fixture

_EVENTS = ("events.offsets", "events.start", "events.length", "events.mean", "events.stdv")
_N = 2500
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
    "one step": with_samples(np.full(_N, 80.0), _N // 2, *np.full(_N - _N // 2, 100.0)),
    "an event every other sample": np.where(_POSITIONS % 4 < 2, 60.0, 120.0) + _RNG.normal(0, 0.3, _N),
    "zero": np.zeros(_N),
    "zero for a while": with_samples(steps(9, 1.0), 1000, *np.zeros(300)),
    "negative": steps(9, 1.0) - 200,
    "a sample near zero": with_samples(steps(9, 1.0), 1500, 1.3, -2.1),
    "near zero at the end": with_samples(steps(9, 1.0), _N - 1, 0.5),
    "squares that add up to more than is exact": steps(9, 1.0) + 5000,
}


def random_signal(rng: np.random.Generator) -> tuple[NDArray[np.int16], float, float]:
    """Raw samples, offset and unit: stretches of every kind one after the other, also such as no pore has."""
    unit = float(rng.choice([0.17, 0.1755, 0.25, 1.0, 0.013, rng.uniform(0.02, 2.0)]))
    offset = float(rng.choice([0.0, 8.0, -243.0, rng.integers(-300, 300)]))
    parts = []
    for _ in range(rng.integers(1, 12)):
        n = int(rng.integers(1, 900))
        level = rng.choice([0.0, rng.uniform(-20, 20), rng.uniform(40, 160), rng.uniform(40, 160), 3000.0])
        length = int(rng.choice([1, 2, 3, 7, 9, 40, n]))
        noise = float(rng.choice([0.0, 0.0, 0.05, 0.4, 2.0, 30.0]))
        spread = float(rng.choice([0.0, 0.3, 15.0, 15.0]))
        levels = np.repeat(level + rng.normal(0, spread, -(-n // length)), length)[:n]
        parts.append((levels + rng.normal(0, noise, n)) / unit - offset)
    raw = np.clip(np.round(np.concatenate(parts)), -32768, 32767).astype(np.int16)
    if rng.random() < 0.1:
        raw[rng.integers(0, len(raw), 3)] = rng.choice([-32768, 32767, 0], 3)
    return raw, offset, unit


def batch_of(signals: list[NDArray[np.float64]]) -> ReadBatch:
    raw = [np.round(signal / _UNIT - _OFFSET).astype(np.int16) for signal in signals]
    return batch_of_raw([(samples, _OFFSET, _UNIT) for samples in raw])


def batch_of_raw(signals: list[tuple[NDArray[np.int16], float, float]]) -> ReadBatch:
    batch = made_batch(np.random.default_rng(3), len(signals), usual=500, long=520)
    raw, batch.offset[:], batch.unit[:] = zip(*signals, strict=True)
    batch.samples = np.concatenate(raw)
    batch.sample_offsets = offsets_of(np.array([len(samples) for samples in raw]))
    batch.events = Events.none()
    return batch


@pytest.fixture
def compare(device, pool):
    """Return a function that computes signals on the GPU and the CPU, and compares their events."""

    def compare(batch: ReadBatch, rna: bool, share: float = 0.8) -> ReadBatch:
        stages = stages_of(pool, parameters=events.RNA if rna else events.DNA, rna=rna)
        backend, placements = _watched(device, stages, ALL)
        found, expected = _computed(batch, backend), _computed(batch, stages)
        backend.close()
        for name in _EVENTS:
            np.testing.assert_array_equal(attrgetter(name)(found), attrgetter(name)(expected), err_msg=name)
        assert placements[0].count(PlacementReason.GPU) > share * len(batch)
        return expected

    return compare


@pytest.mark.parametrize("rna", [False, True])
def test_signals(compare, rna: bool):
    found = compare(batch_of(list(SIGNALS.values())), rna)
    n_events = dict(zip(SIGNALS, np.diff(found.events.offsets).tolist(), strict=True))
    assert n_events["usual"] > (50 if rna else 200)
    assert n_events["constant"] == 1
    assert n_events["one step"] == 2


@pytest.mark.parametrize("rna", [False, True])
def test_lengths(compare, rna: bool):
    """A few samples, and such that the lanes' stretches end in different places."""
    lengths = [*range(1, 70), 95, 96, 97, 127, 128, 129, 1023, 1024, 1025, 4096, 4097]
    signal = steps(9, 1.0, 5000)
    compare(batch_of([signal[:length] for length in lengths]), rna)


@pytest.mark.parametrize("rna", [False, True])
def test_any_signal(compare, request: pytest.FixtureRequest, rna: bool):
    """As many as the device can be given in some seconds."""
    n_batches, n_signals = (8, 500) if request.node.get_closest_marker("gpu") else (1, 12)
    for seed in range(n_batches):
        rng = np.random.default_rng(100 + seed)
        compare(batch_of_raw([random_signal(rng) for _ in range(n_signals)]), rna, 0.5)
