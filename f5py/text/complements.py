"""The table of complementary letters."""

import numpy as np

#: The complement of every upper-case letter that is a base, by its code; all others stay. uint8, shape (256,).
COMPLEMENTS = np.arange(256, dtype=np.uint8)
COMPLEMENTS[list(b"ACGTU")] = list(b"TGCAA")
