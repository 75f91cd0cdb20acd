"""Built-in pore models.

A model is a file ``data/<name>.npz`` with the float32 arrays ``level_mean`` and ``level_stdv`` in rank order, and an
entry in `BUILTIN_MODELS`. The model of methylated R10.4.1 k-mers is computed from `R10_CPG_SHIFTS`. Origin and license
are in ``data/NOTICE``.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import numpy as np

from f5py.errors import PoreModelError
from f5py.pore_model.model import NUCLEOTIDES, NUCLEOTIDES_AND_M, PoreModel, Shifts, with_methylation

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
    """Return a built-in model, loaded on first use; its arrays must not be changed.

    Raises `PoreModelError` if there is no such model, or its file is missing or damaged.
    """
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
