"""Named tuples of arrays that the kernels of exact matches take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.mapping.mem.fm_index import FmIndex


class MemIndex(NamedTuple):
    """Index that matches are looked for in."""

    fm_index: FmIndex
    contig_offsets: NDArray[np.int64]  # shape (n_contigs + 1,)


class ReadMems(NamedTuple):
    """The matches of a read, and their places."""

    mems: NDArray[np.int32]  # shape (n, N_COLUMNS): those of the forward strand, up to `middle`, and of the reverse one
    middle: int
    n: int
    located: NDArray[np.int32]  # of `locate_mems`, both strands, with `MID_OCC` as the limit


class GrowingAnchors(NamedTuple):
    """Anchors and seeds of the reads that a thread has had so far."""

    x: NDArray[np.uint64]  # shape (>= n_anchors,)
    y: NDArray[np.int64]  # shape (>= n_anchors,)
    n_anchors: int
    used: NDArray[np.int64]  # shape (>= n_used,)
    n_used: int


class FoundMems(NamedTuple):
    """The matches of several reads, as a GPU has found them."""

    # shape (n, N_COLUMNS): matches, with their last bases in what ``mems_pack`` writes, ascending
    found: NDArray[np.int32]
    firsts: NDArray[np.int32]  # shape (n,): where the places of each begin in `located`
    located: NDArray[np.int32]


class MemPlaces(NamedTuple):
    """Places where the suffixes of an index begin."""

    contig_offsets: NDArray[np.int64]  # shape (n_contigs + 1,)
    places: NDArray[np.int32]  # see `FmIndex`
