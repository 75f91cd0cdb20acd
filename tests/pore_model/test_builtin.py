"""The models that come with the package."""

from __future__ import annotations

import gzip
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from f5py.errors import PoreModelError
from f5py.pore_model import BUILTIN_MODELS, PoreModel, builtin, check_same_k
from f5py.pore_model.model import R10_CPG_SHIFTS, Shifts, with_methylation

DATA = resources.files("f5py.pore_model").joinpath("data")
#: Those with a file; others are made when they are loaded.
STORED = [name for name in BUILTIN_MODELS if DATA.joinpath(f"{name}.npz").is_file()]


@pytest.mark.parametrize("name", BUILTIN_MODELS)
def test_a_builtin_model_is_complete_and_plausible(name: str) -> None:
    model = builtin(name)
    k, alphabet = BUILTIN_MODELS[name]
    assert (model.name, model.k, model.alphabet) == (name, k, alphabet)
    for levels in (model.level_mean, model.level_stdv):
        assert levels.dtype == np.float32
        assert levels.shape == (len(alphabet) ** k,)
        assert np.isfinite(levels).all()
    assert model.level_mean.min() > 40
    assert model.level_mean.max() < 170
    assert model.level_stdv.min() > 0.1
    assert model.level_stdv.max() < 25
    assert model.ln_stdv.dtype == np.float32
    np.testing.assert_allclose(np.exp(model.ln_stdv), model.level_stdv, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "kmer", "mean", "stdv"),
    [
        ("r9.4_450bps.nucleotide.6mer", "AAAAAA", 86.48634, 1.51785),
        ("r9.4_450bps.nucleotide.6mer", "TTTTTT", 90.67901, 1.51391),
        ("r9.4_450bps.cpg.6mer", "AAAAAC", 83.44650, 1.65993),
        ("r9.4_450bps.cpg.6mer", "TTTTTM", 90.99210, 1.33625),
        ("r9.4_450bps.gpc.6mer", "GMAAAA", 95.77760, 5.70668),
        ("r9.4_450bps.dam.6mer", "GMTCAA", 120.21600, 2.08184),
        ("r9.4_450bps.dcm.6mer", "CMAGGT", 78.47890, 1.55033),
        ("r9.4_70bps_rna.nucleotide.5mer", "TTTTT", 80.78433, 1.96960),
        ("r10.4.1_400bps.nucleotide.9mer", "ACGTACGTA", 68.66729, 4.74911),
        ("rna004_130bps.nucleotide.9mer", "AAAAAAAAC", 100.8738, 3.0),
        ("rna004_130bps.nucleotide.5mer", "AAAAT", 100.11003605201408, 3.0),
    ],
)
def test_levels_of_some_kmers(name: str, kmer: str, mean: float, stdv: float) -> None:
    model = builtin(name)
    rank = 0
    for base in kmer:
        rank = rank * len(model.alphabet) + model.alphabet.index(base)
    assert model.level_mean[rank] == np.float32(mean)
    assert model.level_stdv[rank] == np.float32(stdv)


@pytest.mark.shared
@pytest.mark.parametrize("name", STORED)
def test_every_level_is_the_float32_of_the_published_decimal(name: str, shared_data: Path) -> None:
    published = next((shared_data.parent / "models").glob(f"{name}.*.gz"), None)
    if published is None:
        pytest.skip("there is no published text of it beside the data")
    with gzip.open(published, "rt") as lines:
        rows = [line.split("\t") for line in lines if not line.startswith(("#", "kmer"))]
    model = builtin(name)
    np.testing.assert_array_equal(model.level_mean, np.array([row[1] for row in rows]).astype(np.float32))
    stdv = [row[2] if len(row) > 2 else "3.0" for row in rows]
    np.testing.assert_array_equal(model.level_stdv, np.array(stdv).astype(np.float32))


def test_the_notice_names_every_file() -> None:
    notice = DATA.joinpath("NOTICE").read_text().splitlines()
    files = {entry.name for entry in DATA.iterdir() if entry.name.endswith(".npz")}
    assert files == {f"{name}.npz" for name in STORED}
    assert files <= set(notice)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(PoreModelError, match=r"'r9'; choose from .*r9\.4_450bps\.nucleotide\.6mer"):
        builtin("r9")


def test_models_of_different_k_do_not_fit() -> None:
    nucleotide = builtin("r9.4_450bps.nucleotide.6mer")
    methylation = builtin("r9.4_450bps.cpg.6mer")
    check_same_k(nucleotide, methylation)
    levels = np.ones(5, np.float32)
    with pytest.raises(PoreModelError, match=r"k = 6.*mine \(k = 1\).*same k"):
        check_same_k(nucleotide, PoreModel("mine", 1, "ACGMT", levels, levels))


def test_r10_cpg_is_the_nucleotide_model_with_shifts() -> None:
    assert builtin("r10.4.1_400bps.cpg.9mer").shifts == R10_CPG_SHIFTS


@pytest.mark.parametrize("pyrimidine_before", [(0.0,) * 9, (0.0, 0.0, 0.0, 0.0, 0.5, -1.0, 2.0, 4.0, 0.0)])
def test_shifts_of_methylated_kmers(pyrimidine_before: tuple[float, ...]) -> None:
    """Every k-mer, computed plainly."""
    shifts = Shifts(R10_CPG_SHIFTS.by_place, pyrimidine_before)
    nucleotide = builtin("r10.4.1_400bps.nucleotide.9mer")
    cpg = with_methylation(nucleotide, shifts, "mine")
    random = np.random.default_rng(1)
    for _ in range(200):
        kmer = "".join(random.choice(list("ACGMT"), 9))
        rank = sum("ACGMT".index(base) * 5 ** (8 - i) for i, base in enumerate(kmer))
        plain = sum("ACGT".index(base) * 4 ** (8 - i) for i, base in enumerate(kmer.replace("M", "C")))
        places = [i for i in range(9) if kmer[i] == "M"]
        shift = sum(shifts.by_place[i] for i in places)
        shift += sum(pyrimidine_before[i] * (1 if kmer[i - 1] in "CMT" else -1) for i in places if i)
        assert cpg.level_mean[rank] == np.float32(nucleotide.level_mean[plain].astype(np.float64) + shift)
        assert cpg.level_stdv[rank] == nucleotide.level_stdv[plain]
    assert cpg.level_mean.shape == (5**9,)
