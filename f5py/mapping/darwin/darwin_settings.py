"""Settings of D-SOFT and GACT: those of GPU Darwin, and f5py's corrections."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.errors import UsageError

# Places in the array of integers that compiled code gets.
K, N_SEEDS, SEED_BASES, BIN, SPREAD, TILE, OVERLAP, FIRST_SCORE, AFTER_SEED = range(9)
MATCH, MISMATCH, GAP_OPEN, GAP_EXTEND, MIN_COLUMNS, MIN_PERCENT, MOST_PLACES = range(9, 16)

#: Bases of a tile. The kernel is compiled for it.
TILE_BASES = 320
#: Scores of a tile fit into 16 bits.
_MOST_MATCH = 100
#: A k-mer is passed over if it has more than so many times the places that it has on average.
_FREQUENT = 32


class DarwinSettings(NamedTuple):
    """Parameters of D-SOFT and GACT."""

    n_seeds: int = 800  # k-mers of a read that are looked up on each strand
    seed_bases: int = 21  # bases of the read that seeds on neighbouring diagonals must cover: h
    bin_bases: int = 64  # diagonals that are counted together: B
    overlap: int = 120  # bases of a tile whose part of the path is left to the next tile: O
    first_score: int = 35  # smallest score of a first tile
    after_seed: bool = True  # the first tile begins after the seed, and may be looked for on the other side of it
    spread: bool = True  # seeds are spread over the read; else they are its first ones
    # min_columns, min_percent: columns that an alignment has at least, and how many of a hundred are equal
    min_columns: int = 300
    min_percent: int = 70


def darwin_integers(
    settings: DarwinSettings, k: int, scores: tuple[int, int, int, int], n_bases: int
) -> NDArray[np.int64]:
    """Encode the settings for kernels. Raises `UsageError` for scores that are too large.

    Parameters
    ----------
    scores : tuple of int
        Match, mismatch, first base of a gap, every further base.
    n_bases : int
        Bases of all targets.
    """
    s = settings
    if scores[0] > _MOST_MATCH:
        raise UsageError(f"-A {scores[0]}: tiles take at most {_MOST_MATCH}; give less")
    most_places = _FREQUENT * (1 + (n_bases >> 2 * k))
    return np.array(
        [k, s.n_seeds, s.seed_bases, s.bin_bases, s.spread, TILE_BASES, s.overlap, s.first_score, s.after_seed,
         *scores, s.min_columns, s.min_percent, most_places],
        np.int64,
    )  # fmt: skip
