"""Models that simulated signals follow: shifts of the user's own, and deviations from what a caller assumes."""

from __future__ import annotations

import numpy as np
import pytest

from f5py.core.kmers import kmer_digits
from f5py.core.motifs import motif_named
from f5py.errors import PoreModelError
from f5py.pore_model import PoreModel, builtin
from f5py.pore_model.model import Shifts, nucleotides_of, with_methylation
from f5py.pore_model.shift_file import shift_text
from f5py.simulation.levels import simulated_model
from f5py.simulation.settings import REALISTIC, SimulationSettings

NUCLEOTIDE, CPG = "r10.4.1_400bps.nucleotide.9mer", "r10.4.1_400bps.cpg.9mer"


def made(seed: int = 1, **settings) -> PoreModel:
    streams = (np.random.default_rng([seed, stream]) for stream in (1, 2))
    chosen = SimulationSettings(**{"pore": "r10"} | settings)
    return simulated_model(chosen, motif_named("cpg"), *streams)


def methylated_places() -> np.ndarray:
    return kmer_digits(np.arange(5**9), 9, 5) == 3


def test_without_settings_it_is_the_built_in_model():
    assert made() is builtin(CPG)
    assert made(pore="r9") is builtin("r9.4_450bps.cpg.6mer")
    assert made(pore="rna004") is builtin("rna004_130bps.nucleotide.9mer")


def test_shifts_of_a_list_and_of_a_file(tmp_path):
    shifts = Shifts((0.5, 0, 0, 0, -2, -11.25, -13, -3, 1), (0.0, 0, 0, 0, 0.5, -1, 2, 4, 0))
    path = tmp_path / "short.model"
    path.write_text(shift_text(NUCLEOTIDE, shifts, ([0.0] * 9, [0.0] * 9), None, "made"))
    for settings, expected in [
        ({"shifts": str(path)}, shifts),
        ({"meth_model": str(path)}, shifts),
        ({"shifts": ",".join(map(str, shifts.by_place))}, Shifts.of_places(shifts.by_place)),
    ]:
        model = made(**settings)
        np.testing.assert_array_equal(model.level_mean, with_methylation(builtin(NUCLEOTIDE), expected, "").level_mean)


def test_spread_is_of_methylated_kmers_by_their_places():
    spread = np.array([1, 1, 1, 1.5, 2, 5, 3.5, 3, 1.5])
    places = methylated_places()
    away = made(shift_spread=",".join(map(str, spread))).level_mean - builtin(CPG).level_mean
    assert not away[~places.any(axis=1)].any()
    for chosen in ([5], [0], [5, 7]):
        only = places[:, chosen].all(axis=1) & (places.sum(axis=1) == len(chosen))
        assert away[only].std() == pytest.approx(np.sqrt((spread[chosen] ** 2).sum()), rel=0.02)
        assert abs(away[only].mean()) < 0.1
    one = made(shift_spread="2").level_mean - builtin(CPG).level_mean
    assert one[places.sum(axis=1) == 1].std() == pytest.approx(2, rel=0.02)


def test_bias_is_of_plain_kmers_with_or_without_methylation():
    model, expected = made(level_bias=2.1), builtin(CPG)
    away = model.level_mean - expected.level_mean
    digits = kmer_digits(np.arange(5**9), 9, 5)
    plain = np.where(digits == 3, 1, digits) @ 5 ** np.arange(8, -1, -1)
    np.testing.assert_allclose(away, away[plain], atol=1e-4)
    assert (nucleotides_of(model).level_mean - builtin(NUCLEOTIDE).level_mean).std() == pytest.approx(2.1, rel=0.02)
    np.testing.assert_array_equal(model.level_stdv, expected.level_stdv)
    assert (
        made(pore="rna004", level_bias=1.0).level_mean.std() > builtin("rna004_130bps.nucleotide.9mer").level_mean.std()
    )


def test_both_have_streams_of_their_own():
    spread, bias, both = made(shift_spread="2"), made(level_bias=1.5), made(shift_spread="2", level_bias=1.5)
    expected = spread.level_mean + bias.level_mean - builtin(CPG).level_mean
    np.testing.assert_allclose(both.level_mean, expected, atol=1e-4)
    np.testing.assert_array_equal(made(**REALISTIC).level_mean, made(**REALISTIC).level_mean)
    assert (made(seed=2, **REALISTIC).level_mean != made(**REALISTIC).level_mean).any()


def test_files_without_shifts(tmp_path):
    with pytest.raises(PoreModelError, match="absent"):
        made(shifts=str(tmp_path / "absent"))
    path = tmp_path / "short.model"
    path.write_text(shift_text(NUCLEOTIDE, Shifts.of_places([0.0] * 9), ([0.0] * 9, [0.0] * 9), None, "made"))
    with pytest.raises(PoreModelError, match="is no file of shifts of 6-mers"):
        made(shifts=str(path), pore="r9")
