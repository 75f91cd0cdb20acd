"""What the kernel that scores groups on a GPU is given; see ``kernels/hmm.cu``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.core.hmm import (
    LN_INVERSE_SQRT_2PI,
    MIN_STAY,
    P_BAD,
    P_FROM_BAD,
    P_FROM_SKIP,
    P_SKIP,
    P_SKIP_SELF,
)
from f5py.core.motifs import MotifCodes
from f5py.methylation._calls_numba import LOG2_E
from f5py.methylation._hmm_numba import FIRST_BACKGROUND, MORE_BACKGROUND, NO_BACKGROUND
from f5py.pore_model.model import PoreModel

#: Where the parts of a motif's table begin, and its size: codes, bits, complement and masks.
_BITS, _COMPLEMENT, _MASKS, _SIZE = 256, 512, 520, 552
#: Positions that a motif may have.
MAX_MOTIF = _SIZE - _MASKS


def model_table(model: PoreModel) -> NDArray[np.float32]:
    """Level, stdv, ln(stdv) and nothing of each rank; shape (n, 4)."""
    table = np.zeros((len(model.level_mean), 4), np.float32)
    table[:, 0], table[:, 1], table[:, 2] = model.level_mean, model.level_stdv, model.ln_stdv
    return table


def motif_table(motifs: tuple[MotifCodes, MotifCodes]) -> NDArray[np.uint8]:
    """A motif on the forward and on the reverse strand."""
    table = np.zeros((2, _SIZE), np.uint8)
    for row, motif in zip(table, motifs, strict=True):
        row[:_BITS] = motif.letter_codes
        row[_BITS:_COMPLEMENT] = motif.letter_bits
        row[_COMPLEMENT : _COMPLEMENT + len(motif.complement)] = motif.complement
        row[_MASKS : _MASKS + len(motif.masks)] = motif.masks
    return table.reshape(-1)


def constants() -> NDArray[np.float32]:
    """The constants of the model, in single precision as the CPU's lanes have them."""
    return np.array(
        [
            P_BAD, P_FROM_BAD, P_SKIP, P_SKIP_SELF, P_FROM_SKIP, NO_BACKGROUND, FIRST_BACKGROUND, MORE_BACKGROUND,
            np.sqrt(0.5 * LOG2_E), LN_INVERSE_SQRT_2PI, LOG2_E,
        ],
        np.float32,
    )  # fmt: skip


def numbers_of_reads(events_per_base: NDArray[np.float64], ln_var: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities of staying and of a step, and ln(var), of each read; shape (n, 3)."""
    with np.errstate(divide="ignore"):
        stay = np.where(events_per_base > 0.0, np.maximum(1.0 - 1.0 / events_per_base, MIN_STAY), MIN_STAY)
    numbers = np.empty((len(stay), 3), np.float32)
    numbers[:, 0] = stay
    numbers[:, 1] = 1.0 - stay - P_SKIP - P_BAD
    numbers[:, 2] = ln_var
    return numbers
