"""Pore models, with the expected current level of every k-mer, and the built-in ones.

A built-in model is a file ``data/<name>.npz`` with the float32 arrays ``level_mean`` and ``level_stdv`` in rank order,
and an entry in `BUILTIN_MODELS`. The model of methylated R10.4.1 k-mers is computed from `R10_CPG_SHIFTS`. Origin and
license are in ``data/NOTICE``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.noise import Noise
from f5py.errors import PoreModelError

#: Longest k-mer; 4**9 float32 pairs are 2 MB and 5**9 are 16 MB.
MAX_K = 9

NUCLEOTIDES = "ACGT"
#: M is the motif's methylated base.
NUCLEOTIDES_AND_M = "ACGMT"


class Levels(NamedTuple):
    """Arrays of a pore model for kernels, in rank order."""

    k: int
    level_mean: NDArray[np.float32]  # shape (n_kmers,): in pA
    level_stdv: NDArray[np.float32]
    ln_stdv: NDArray[np.float32]  # natural logarithm of `level_stdv`


class Shifts(NamedTuple):
    """Shifts of a k-mer's level in pA by the position of a methylated base; both of length k."""

    by_place: tuple[float, ...]
    pyrimidine_before: tuple[float, ...]  # added if the preceding base is C or T, subtracted if it is A or G

    @classmethod
    def of_places(cls, by_place: Sequence[float]) -> Shifts:
        """Make shifts that do not depend on the preceding base."""
        return cls(tuple(by_place), (0.0,) * len(by_place))


@dataclass(frozen=True, eq=False)
class PoreModel:
    """Expected current of every k-mer, in rank order.

    A k-mer's rank is its value as a number in base ``len(alphabet)``, first base first; ranks are in lexicographic
    order.
    """

    name: str  # built-in name or path
    k: int
    alphabet: str  # sorted: ``"ACGT"`` or ``"ACGMT"``
    level_mean: NDArray[np.float32]  # shape (len(alphabet) ** k,): in pA
    level_stdv: NDArray[np.float32]
    # optional contents of the model's file
    noise: Noise | None = None
    calibration: float | None = None  # factor of log-likelihood ratios for probabilities
    kind: str | None = None  # of methylation, such as ``"cpg"``
    shifts: Shifts | None = None  # of methylated k-mers against plain ones

    @cached_property
    def levels(self) -> Levels:
        return Levels(self.k, self.level_mean, self.level_stdv, self.ln_stdv)

    @cached_property
    def ln_stdv(self) -> NDArray[np.float32]:
        """Natural logarithm of `level_stdv`, rounded once from double; float32."""
        return np.log(self.level_stdv.astype(np.float64)).astype(np.float32)


def check_same_k(nucleotide: PoreModel, methylation: PoreModel) -> None:
    """Raise `PoreModelError` unless two models have the same k."""
    if nucleotide.k != methylation.k:
        raise PoreModelError(
            f"the pore models {nucleotide.name} (k = {nucleotide.k}) and {methylation.name} "
            f"(k = {methylation.k}) do not fit together; give two models of the same k"
        )


def with_methylation(nucleotide: PoreModel, shifts: Shifts, name: str, canonical: str = "C") -> PoreModel:
    """Make a model over ACGMT: `shifts` are added to levels of k-mers with the canonical base for M."""
    k = nucleotide.k
    plain = np.ix_(*[[NUCLEOTIDES.index(canonical if base == "M" else base) for base in NUCLEOTIDES_AND_M]] * k)
    level = nucleotide.level_mean.astype(np.float64).reshape((4,) * k)[plain]
    methylated = NUCLEOTIDES_AND_M.index("M")
    for place, (shift, with_pyrimidine) in enumerate(zip(*shifts, strict=True)):
        level[(slice(None),) * place + (methylated,)] += shift
        if with_pyrimidine:
            for before, base in enumerate(NUCLEOTIDES_AND_M):
                at = (slice(None),) * (place - 1) + (before, methylated)
                level[at] += -with_pyrimidine if base in "AG" else with_pyrimidine
    stdv = nucleotide.level_stdv.reshape((4,) * k)[plain]
    return PoreModel(
        name, k, NUCLEOTIDES_AND_M, level.astype(np.float32).ravel(), np.ascontiguousarray(stdv).ravel(), shifts=shifts
    )


def nucleotides_of(model: PoreModel) -> PoreModel:
    """Select the k-mers without M."""
    if model.alphabet != NUCLEOTIDES_AND_M:
        return model
    plain = np.ix_(*[[0, 1, 2, 4]] * model.k)
    shape = (5,) * model.k
    mean, stdv = (
        np.ascontiguousarray(values.reshape(shape)[plain]).ravel() for values in (model.level_mean, model.level_stdv)
    )
    return PoreModel(model.name, model.k, NUCLEOTIDES, mean, stdv)


#: name -> (k, alphabet)
BUILTIN_MODELS: dict[str, tuple[int, str]] = {
    "r9.4_450bps.nucleotide.6mer": (6, NUCLEOTIDES),
    "r9.4_450bps.cpg.6mer": (6, NUCLEOTIDES_AND_M),
    "r9.4_450bps.gpc.6mer": (6, NUCLEOTIDES_AND_M),
    "r9.4_450bps.dam.6mer": (6, NUCLEOTIDES_AND_M),
    "r9.4_450bps.dcm.6mer": (6, NUCLEOTIDES_AND_M),
    "r9.4_70bps_rna.nucleotide.5mer": (5, NUCLEOTIDES),
    "r10.4.1_400bps.nucleotide.9mer": (9, NUCLEOTIDES),
    "r10.4.1_400bps.cpg.9mer": (9, NUCLEOTIDES_AND_M),
    "rna004_130bps.nucleotide.9mer": (9, NUCLEOTIDES),
    "rna004_130bps.nucleotide.5mer": (5, NUCLEOTIDES),
}
#: Shifts of R10.4.1 levels by the position of a methylated C; see NOTICE.
R10_CPG_SHIFTS = Shifts.of_places((1.0, 0.0, 0.0, 0.0, -1.5, -10.5, -12.5, -2.5, 1.0))
#: Models made from another one by shifts.
_SHIFTED = {"r10.4.1_400bps.cpg.9mer": ("r10.4.1_400bps.nucleotide.9mer", R10_CPG_SHIFTS)}
#: Short names.
_SHORT_NAMES = {"rna004": "rna004_130bps.nucleotide.9mer", "rna004-5mer": "rna004_130bps.nucleotide.5mer"}


def named_model(name: str, alphabet: str) -> PoreModel | None:
    """Return the built-in model of a name or short name and an alphabet, or None."""
    name = _SHORT_NAMES.get(name, name)
    return builtin(name) if BUILTIN_MODELS.get(name, (0, ""))[1] == alphabet else None


@cache
def builtin(name: str) -> PoreModel:
    """Return a built-in model, which must not be changed; raise `PoreModelError` if that fails."""
    if name not in BUILTIN_MODELS:
        known = ", ".join(BUILTIN_MODELS)
        raise PoreModelError(f"there is no built-in pore model {name!r}; choose from {known}")
    k, alphabet = BUILTIN_MODELS[name]
    if name in _SHIFTED:
        base, shifts = _SHIFTED[name]
        return with_methylation(builtin(base), shifts, name)
    source = resources.files("f5py.pore_model").joinpath(f"data/{name}.npz")
    try:
        with source.open("rb") as handle, np.load(handle, allow_pickle=False) as arrays:
            level_mean, level_stdv = arrays["level_mean"], arrays["level_stdv"]
    except Exception as problem:  # of zipfile, zlib or numpy
        raise PoreModelError(f"{source}: cannot be read ({problem}); reinstall f5py") from problem
    if not level_mean.shape == level_stdv.shape == (len(alphabet) ** k,):
        raise PoreModelError(f"{source}: has the wrong number of k-mers; reinstall f5py")
    return PoreModel(name, k, alphabet, level_mean, level_stdv)


#: Limit between normalized levels and picoampere.
_LARGEST_UNIT = 10.0


def are_units_of_spread(levels: NDArray[np.floating]) -> bool:
    """Return whether levels are normalized, not in picoampere."""
    return float(np.median(np.abs(levels))) < _LARGEST_UNIT


def like_builtin(
    file: str, k: int, levels: NDArray[np.float64], like: PoreModel | None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Rescale normalized levels to a built-in model's mean and spread, and return its standard deviations.

    K-mers of direct RNA may be spelled in either direction; the one that fits better is used. Raises `PoreModelError`
    if there is no model of the same k.
    """
    if like is None or like.k != k:
        known = "there is no built-in model of this chemistry" if like is None else f"the built-in one has k = {like.k}"
        raise PoreModelError(
            f"{file}: has no standard deviations of its {k}-mers, and {known} to take them from; give a file with the "
            "columns kmer, level_mean and level_stdv, in picoampere"
        )
    expected = like.level_mean.astype(np.float64)
    if not are_units_of_spread(levels):
        return levels.astype(np.float32), like.level_stdv
    reverse = reverse_kmers(levels, k)
    if _correlation(reverse, expected) > _correlation(levels, expected):
        levels = reverse
    scaled = (levels - levels.mean()) / levels.std() * expected.std() + expected.mean()
    return scaled.astype(np.float32), like.level_stdv


def reverse_kmers(levels: NDArray, k: int) -> NDArray:
    """Reorder levels for k-mers spelled in the other direction."""
    return np.ascontiguousarray(levels.reshape((4,) * k).transpose(range(k)[::-1])).ravel()


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def rank_levels(levels: NDArray[np.floating], like: PoreModel) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return normally distributed levels in the order of `levels`, with mean and spread of a model."""
    from statistics import NormalDist

    n = len(levels)
    _, place, count = np.unique(levels, return_inverse=True, return_counts=True)
    share = (np.cumsum(count) - count / 2)[place] / n
    distribution = NormalDist(float(like.level_mean.mean()), float(like.level_mean.std()))
    mean = np.array(list(map(distribution.inv_cdf, share.tolist())))
    return mean.astype(np.float32), np.full(n, np.median(like.level_stdv), np.float32)
