"""Inputs of the GPU kernel that scores groups; see ``kernels/hmm.cu``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.core.hmm import LN_INVERSE_SQRT_2PI, P_BAD, P_FROM_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.core.motifs import MotifCodes
from f5py.methylation.hmm import FIRST_BACKGROUND, LOG2_E, MORE_BACKGROUND, NO_BACKGROUND

#: Offsets of bits, complement and masks in a motif's table, after the codes, and its size.
_BITS, _COMPLEMENT, _MASKS, _SIZE = 256, 512, 520, 552
#: Problems per warp.
LANES = 32
#: Maximum length of a motif.
MAX_MOTIF = _SIZE - _MASKS


def motif_table(motifs: tuple[MotifCodes, MotifCodes]) -> NDArray[np.uint8]:
    """Encode a motif of the forward and the reverse strand."""
    table = np.zeros((2, _SIZE), np.uint8)
    for row, motif in zip(table, motifs, strict=True):
        row[:_BITS] = motif.letter_codes
        row[_BITS:_COMPLEMENT] = motif.letter_bits
        row[_COMPLEMENT : _COMPLEMENT + len(motif.complement)] = motif.complement
        row[_MASKS : _MASKS + len(motif.masks)] = motif.masks
    return table.reshape(-1)


def constants() -> NDArray[np.float32]:
    """Return the model's constants in single precision, as in the CPU's lanes."""
    return np.array(
        [
            P_BAD, P_FROM_BAD, P_SKIP, P_SKIP_SELF, P_FROM_SKIP, NO_BACKGROUND, FIRST_BACKGROUND, MORE_BACKGROUND,
            np.sqrt(0.5 * LOG2_E), LN_INVERSE_SQRT_2PI, LOG2_E,
        ],
        np.float32,
    )  # fmt: skip
