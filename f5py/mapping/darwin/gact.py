r"""GACT: alignments of any length by tiles of a fixed size.

A candidate is extended by tiles of 320 bases of the read and as many of the target: to the left from where the last
tile's path ended, then to the right from the best cell of the first tile. Of a tile's path the last 120 bases are left
to the next tile, so that memory does not grow with the length of the reads. In a tile

.. math::
    M(i, j) &= \max(0, \max(M, I, D)(i-1, j-1) + s(i, j)) \\
    I(i, j) &= \max(M(i-1, j) + open, I(i-1, j) + extend) \\
    D(i, j) &= \max(M(i, j-1) + open, D(i, j-1) + extend)

with i on the target and j on the read. Of equal values M comes before I before D, and opening a gap before going on.
The path of the first tile begins at its best cell, those of the others at their corner; it ends where nothing is above
0. Source: see `dsoft`.

The paper's first tile ends where the seed begins. A candidate is usually the first seed of an overlap, where the tile
has little to align, and falls through. In f5py it ends behind the seed; if it scores too little all the same, one on
the other side of the seed tells where the ordinary procedure is to begin.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.mapping.darwin.extensions import Extensions, Targets
from f5py.threads.pool import WorkerPool, longest_first


def extend_all(
    extensions: Extensions, targets: Targets, integers: NDArray[np.int64], pool: WorkerPool, plain: bool = False,
    only: NDArray[np.int64] | None = None,
) -> float:  # fmt: skip
    """Fill the results; return the seconds that all threads together have worked.

    Parameters
    ----------
    integers : int64
        `f5py.mapping.darwin.darwin_settings.darwin_integers`.
    plain : bool
        Fill tiles cell by cell, not by vectors.
    only : int64, optional
        Rows; the others are left as they are.
    """
    from f5py.mapping.darwin._gact_numba import extend_candidates

    if only is None:
        work = extensions.work(np.diff(targets.offsets))
        only = longest_first(work, np.ones(len(work), np.bool_))
    return pool.run(extend_candidates, only, extensions.arrays, *targets, plain, integers, order=extensions.number)
