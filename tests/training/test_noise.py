"""The constants of the noise are found in events of known noise, and with them calls mean what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from f5py.core.noise import GAUSSIAN, INDEPENDENT, OF_PORES, STUDENT, Noise
from f5py.errors import PoreModelError
from f5py.evaluation.agreement import LabelledRatios
from f5py.pore_model import builtin, read_model
from f5py.pore_model.model import PoreModel
from f5py.pore_model.text_file import model_text
from f5py.training.noise import CANDIDATES, ENOUGH_WINDOWS, estimate

from ..methylation.made_events import likelihoods, made_events, packed

N_KMERS = 16


def _levels(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.uniform(60, 120, N_KMERS), rng.uniform(1, 3, N_KMERS)


@pytest.mark.parametrize(
    "noise", [INDEPENDENT, *OF_PORES.values(), Noise(0.15, 0.3, STUDENT), Noise(0.63, 0.12, GAUSSIAN)]
)
def test_known_constants_are_found(noise: Noise) -> None:
    rng = np.random.default_rng(5)
    levels = [_levels(rng) for _ in range(1600)]
    packs = packed([(made_events(rng, *of_window, noise), *of_window) for of_window in levels])
    found = estimate(np.array([likelihoods(packs, one).sum() for one in CANDIDATES]), len(levels))
    assert found is not None
    assert found.noise.tails == noise.tails
    assert found.noise.stay == pytest.approx(noise.stay, abs=0.05)
    assert found.noise.step == pytest.approx(noise.step, abs=0.05)
    assert found.gain >= -1e-3 if noise.is_independent else found.gain > 0.1


def test_few_windows_say_nothing() -> None:
    assert estimate(np.zeros(len(CANDIDATES)), ENOUGH_WINDOWS - 1) is None


@pytest.mark.parametrize("noise", OF_PORES.values(), ids=OF_PORES)
def test_ratios_are_calibrated(noise: Noise) -> None:
    """A tenth of the probabilities is as often right as it says; independent noise counts evidence twice."""
    rng = np.random.default_rng(6)
    states = rng.integers(0, 2, 20_000)
    pairs = []
    for state in states:
        mean, stdv = _levels(rng)
        changed = mean.copy()
        changed[5:11] += rng.normal(0, 2.0, 6)
        events = made_events(rng, changed if state else mean, stdv, noise)
        pairs += [(events, changed, stdv), (events, mean, stdv)]
    packs = packed(pairs)

    def measured(one: Noise) -> tuple[float, float]:
        found = likelihoods(packs, one)
        ratios = LabelledRatios()
        ratios.add(found[::2] - found[1::2], states)
        area = ratios.area()
        assert area is not None
        return float(ratios.reliability(0.5)["expected_calibration_error"]), area

    error, area = measured(noise)
    error_of_f5c, area_of_f5c = measured(INDEPENDENT)
    assert error < 0.01
    assert error_of_f5c > 2 * error
    assert area > area_of_f5c


def test_a_model_says_its_noise(tmp_path: Path) -> None:
    plain = builtin("r9.4_450bps.nucleotide.6mer")
    for noise in (None, Noise(0.38, 0.41, STUDENT)):
        model = PoreModel(plain.name, plain.k, plain.alphabet, plain.level_mean, plain.level_stdv, noise)
        path = tmp_path / "model"
        path.write_bytes(b"".join(model_text(model, np.zeros(len(plain.level_mean)), "cpg", "made")))
        assert read_model(path, "ACGT").noise == noise
    text = path.read_text()
    for wrong in ("0.38", "0.38\t1.5\tt7", "0.38\t0.4\tt8", "0.38\tnan\tt7", "a\tb\tt7"):
        path.write_text(text.replace("0.38\t0.41\tt7", wrong))
        with pytest.raises(PoreModelError, match="'#noise' is followed by"):
            read_model(path, "ACGT")
