"""Pore models in the npz files of Uncalled4.

They have ``current.mean`` and ``current.stdv`` (perhaps empty) by k-mer, normalized to mean 0 and spread 1, and
``_pa_mean`` and ``_pa_stdv`` to undo that. With ``_reverse`` k-mers are spelled from 3' to 5'. Source: Uncalled4 4.1.0,
src/uncalled4/pore_model.py.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.stored_arrays import read_arrays
from f5py.errors import DamagedValueError, PoreModelError
from f5py.pore_model.model import MAX_K, NUCLEOTIDES, PoreModel, are_units_of_spread, like_builtin, reverse_kmers

MAGIC = b"PK"
_MEAN, _STDV = "current.mean", "current.stdv"
_PA_MEAN, _PA_STDV, _REVERSE = "_pa_mean", "_pa_stdv", "_reverse"
_NAMES = frozenset((_MEAN, _STDV, _PA_MEAN, _PA_STDV, _REVERSE))
#: Limit of all arrays; those of 9-mers have 4 MB.
_MOST_BYTES = 1 << 26


def _number(arrays: dict[str, NDArray[Any]], name: str) -> float:
    """Return a scalar, 0 if it is missing."""
    array = arrays.get(name, np.zeros(()))
    if array.size != 1 or array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise DamagedValueError(f"{name} is not a number")
    return float(array.reshape(())[()])


def read_npz(file: str, alphabet: str, like: PoreModel | None) -> PoreModel:
    """Read a model of Uncalled4; see `f5py.pore_model.read_model`."""
    try:
        with open(file, "rb") as opened:
            found = read_arrays(opened, _MOST_BYTES, _NAMES.__contains__)
        pa_mean, pa_stdv, is_reverse = (_number(found, name) for name in (_PA_MEAN, _PA_STDV, _REVERSE))
    except (OSError, DamagedValueError) as problem:
        raise PoreModelError(f"{file}: cannot be read as a model in npz format ({problem})") from None
    if _MEAN not in found:
        raise PoreModelError(f"{file}: no {_MEAN} in it; give a model of Uncalled4 or a text file")
    if alphabet != NUCLEOTIDES:
        raise PoreModelError(f"{file}: a methylation model is a text file with k-mers over {alphabet}")
    if any(found[name].dtype.kind not in "iuf" for name in (_MEAN, _STDV) if name in found):
        raise PoreModelError(f"{file}: {_MEAN} or {_STDV} has something else than numbers; make the file again")
    mean = np.asarray(found[_MEAN], np.float64).ravel()
    stdv = np.asarray(found.get(_STDV, ()), np.float64).ravel()
    k = int(np.round(np.log2(max(len(mean), 1)) / 2))
    if len(mean) != 4**k or not 1 <= k <= MAX_K or (len(stdv) and len(stdv) != len(mean)):
        raise PoreModelError(f"{file}: {len(mean)} means and {len(stdv)} deviations are not those of all k-mers")
    if not (np.isfinite(mean).all() and np.isfinite(stdv).all() and (stdv > 0).all()):
        raise PoreModelError(f"{file}: a level is not finite, or a deviation not above zero; make the file again")
    if is_reverse:
        mean = reverse_kmers(mean, k)
        stdv = reverse_kmers(stdv, k) if len(stdv) else stdv
    if are_units_of_spread(mean) and not are_units_of_spread(np.array([pa_mean])):
        mean, stdv = mean * pa_stdv + pa_mean, stdv * pa_stdv
    if len(stdv) and not are_units_of_spread(mean):
        return PoreModel(file, k, alphabet, mean.astype(np.float32), stdv.astype(np.float32))
    return PoreModel(file, k, alphabet, *like_builtin(file, k, mean, like))
