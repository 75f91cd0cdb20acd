"""The pore model: the expected current level of every k-mer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PoreModel:
    """Expected current of every k-mer, in the order of the k-mers' ranks.

    The rank of a k-mer is the number that its bases spell in base ``len(alphabet)``, the first base being the
    most significant digit; ranks are thus in lexicographic order.

    Attributes
    ----------
    name : str
        Name of a built-in model or path of the file.
    k : int
        Bases per k-mer.
    alphabet : str
        The bases in lexicographic order, ``"ACGT"`` or ``"ACGMT"`` (M is the methylated base).
    level_mean, level_stdv : float32, shape (len(alphabet) ** k,)
        Mean and standard deviation of the current, in pA.
    """

    name: str
    k: int
    alphabet: str
    level_mean: NDArray[np.float32]
    level_stdv: NDArray[np.float32]

    @cached_property
    def ln_stdv(self) -> NDArray[np.float32]:
        """Natural logarithm of `level_stdv`, rounded once from double; float32."""
        return np.log(self.level_stdv.astype(np.float64)).astype(np.float32)
