"""Judgement of which of two models is better."""

from __future__ import annotations

import numpy as np
import pytest

from f5py.pore_model import PoreModel
from f5py.training.judgement import ModelQuality, compared, quality_of, too_many_wrong, words_of

START = ModelQuality(1000, 0.919, 0.05, 0.8, 2.0)


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({"auc": 0.908}, "worse"),
        ({"auc": 0.93, "error_rate": 0.2}, "better"),
        ({"auc": 0.9195, "error_rate": 0.06}, "worse"),  # the area is the same
        ({"auc": None, "error_rate": 0.04}, "better"),
        ({"auc": None, "error_rate": None, "kmer_deviation": 2.1}, "worse"),
        ({"auc": None, "error_rate": None, "kmer_deviation": 2.01}, "as good"),
        ({"auc": None, "error_rate": None, "kmer_deviation": None}, "not compared"),
    ],
)
def test_the_first_measure_that_differs_decides(changed: dict, verdict: str):
    trained = START._replace(**changed)
    assert compared(START, trained) == verdict
    assert ("0.9190 with the start model" in words_of(START, trained)) == (trained.auc is not None)


@pytest.mark.parametrize(
    ("start", "trained", "known_auc", "says"),
    [
        ({}, {"error_rate": 0.2}, 0.9, None),
        ({}, {"error_rate": 0.21}, 0.9, "21.0 % of the calls beyond 2.5 that were held out are wrong; give more reads"),
        ({}, {"error_rate": 0.21, "calls": 20}, None, None),  # too few to tell
        ({"error_rate": 0.99}, {"error_rate": 0.3}, None, "labels look exchanged"),
        ({"error_rate": None}, {"error_rate": 0.6}, None, "labels look exchanged"),
        ({"error_rate": 0.9}, {"error_rate": 0.1}, None, None),
        ({}, {"error_rate": 0.01}, 0.1, "area under the ROC curve of 0.1000"),
        ({}, {"error_rate": None}, None, None),
    ],
)
def test_models_that_call_much_wrong(start: dict, trained: dict, known_auc: float | None, says: str | None):
    found = too_many_wrong(START._replace(**start), START._replace(**trained), known_auc)
    assert found is None if says is None else says in (found or "")


def test_measures():
    random = np.random.default_rng(1)
    labels = random.random(2000) < 0.4
    ratios = random.normal(np.where(labels, 3.0, -3.0), 3.0)
    held = np.zeros((4, 2))
    held[1], held[2] = (4, 4 * 91.0), (12, 12 * 99.0)
    model = PoreModel("m", 1, "ACGT", np.array([80, 90, 100, 110], np.float32), np.ones(4, np.float32))
    found = quality_of(model, labels, ratios, held)
    beyond = np.abs(ratios) >= 2.5
    assert found.calls == 2000
    assert found.error_rate == pytest.approx(np.mean((ratios > 0)[beyond] != labels[beyond]))
    assert found.share_of_calls == pytest.approx(beyond.mean())
    assert found.kmer_deviation == pytest.approx(1.0)
    assert 0.9 < (found.auc or 0) < 0.95
    nothing = quality_of(model, labels[:0], ratios[:0], np.zeros((4, 2)))
    assert nothing == ModelQuality(0, None, None, None, None)
