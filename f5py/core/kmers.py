"""K-mers as numbers: the codes of letters, whose digits make a rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def base_codes() -> NDArray[np.uint8]:
    """Codes 0 to 3 of the letters ACGT in either case; uint8, shape (256,)."""
    codes = np.zeros(256, np.uint8)
    for code, letters in enumerate(("Aa", "Cc", "Gg", "TtUu")):
        for letter in letters:
            codes[ord(letter)] = code
    return codes
