"""The pore model: the expected current level of every k-mer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.noise import Noise
from f5py.errors import PoreModelError

#: Longest k-mer; 4**9 float32 pairs are 2 MB and 5**9 are 16 MB.
MAX_K = 9

NUCLEOTIDES = "ACGT"

#: M is the methylated base of the motif that a model is made for.
NUCLEOTIDES_AND_M = "ACGMT"


class Levels(NamedTuple):
    """The numbers of a pore model; arrays in rank order."""

    k: int
    # level_mean, level_stdv: shape (n_kmers,): in pA
    level_mean: NDArray[np.float32]
    level_stdv: NDArray[np.float32]
    ln_stdv: NDArray[np.float32]  # shape (n_kmers,): natural logarithm of `level_stdv`


class Shifts(NamedTuple):
    """Shifts of a k-mer's level by the place of a methylated base in it, in pA; both of length k."""

    by_place: tuple[float, ...]
    # added where the base before the methylated one, in the k-mer, is C or T, and subtracted where it is A or G
    pyrimidine_before: tuple[float, ...]

    @classmethod
    def of_places(cls, by_place: Sequence[float]) -> Shifts:
        """Shifts that do not depend on the base before."""
        return cls(tuple(by_place), (0.0,) * len(by_place))


@dataclass(frozen=True, eq=False)
class PoreModel:
    """Expected current of every k-mer, in the order of the k-mers' ranks.

    The rank of a k-mer is the number that its bases spell in base ``len(alphabet)``, the first base being the
    most significant digit; ranks are thus in lexicographic order.
    """

    name: str  # name of a built-in model or path of the file
    k: int  # bases per k-mer
    alphabet: str  # the bases in lexicographic order, ``"ACGT"`` or ``"ACGMT"`` (M is the methylated base)
    # level_mean, level_stdv: shape (len(alphabet) ** k,): mean and standard deviation of the current, in pA
    level_mean: NDArray[np.float32]
    level_stdv: NDArray[np.float32]
    noise: Noise | None = None  # of the events around these levels, if the model's file says it
    # factor of log-likelihood ratios where probabilities are made of them, if the model's file says it
    calibration: float | None = None
    kind: str | None = None  # kind of methylation, such as ``"cpg"``, if the model's file says it
    # if levels of methylated k-mers are those of plain ones plus these
    shifts: Shifts | None = None

    @cached_property
    def levels(self) -> Levels:
        """The model as kernels take it."""
        return Levels(self.k, self.level_mean, self.level_stdv, self.ln_stdv)

    @cached_property
    def ln_stdv(self) -> NDArray[np.float32]:
        """Natural logarithm of `level_stdv`, rounded once from double; float32."""
        return np.log(self.level_stdv.astype(np.float64)).astype(np.float32)


def check_same_k(nucleotide: PoreModel, methylation: PoreModel) -> None:
    """Raise unless two models that are to be used together have the same k.

    Raises `PoreModelError` if their k-mers differ in length.
    """
    if nucleotide.k != methylation.k:
        raise PoreModelError(
            f"the pore models {nucleotide.name} (k = {nucleotide.k}) and {methylation.name} "
            f"(k = {methylation.k}) do not fit together; give two models of the same k"
        )


def with_methylation(nucleotide: PoreModel, shifts: Shifts, name: str, canonical: str = "C") -> PoreModel:
    """Make a model of methylated k-mers, over the alphabet ACGMT, from that of plain ones.

    Parameters
    ----------
    nucleotide : PoreModel
        Over the alphabet ACGT.
    shifts : Shifts
        Added to the level of the k-mer with the canonical base in place of M.
    """
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
