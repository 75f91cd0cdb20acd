"""Named tuples of arrays that the kernels of exact matches take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.mapping.mem.fm_index import FmIndex


class MemIndex(NamedTuple):
    """Index that matches are looked for in.

    Attributes
    ----------
    fm_index : FmIndex
    contig_offsets : int64, shape (n_contigs + 1,)
    """

    fm_index: FmIndex
    contig_offsets: NDArray[np.int64]


class ReadMems(NamedTuple):
    """The matches of a read, and their places.

    Attributes
    ----------
    mems : int32, shape (n, N_COLUMNS)
        Those of the forward strand, up to `middle`, and of the reverse one.
    middle, n : int
    located : int32
        Of `locate_mems`, both strands, with `MID_OCC` as the limit.
    """

    mems: NDArray[np.int32]
    middle: int
    n: int
    located: NDArray[np.int32]


class GrowingAnchors(NamedTuple):
    """Anchors and seeds of the reads that a thread has had so far.

    Attributes
    ----------
    x : uint64, shape (>= n_anchors,)
    y : int64, shape (>= n_anchors,)
    n_anchors : int
    used : int64, shape (>= n_used,)
    n_used : int
    """

    x: NDArray[np.uint64]
    y: NDArray[np.int64]
    n_anchors: int
    used: NDArray[np.int64]
    n_used: int


class FoundMems(NamedTuple):
    """The matches of several reads, as a GPU has found them.

    Attributes
    ----------
    found : int32, shape (n, N_COLUMNS)
        Matches, with their last bases in what ``mems_pack`` writes, ascending.
    firsts : int32, shape (n,)
        Where the places of each begin in `located`.
    located : int32
    """

    found: NDArray[np.int32]
    firsts: NDArray[np.int32]
    located: NDArray[np.int32]


class MemPlaces(NamedTuple):
    """Places where the suffixes of an index begin.

    Attributes
    ----------
    contig_offsets : int64, shape (n_contigs + 1,)
    places : int32
        See `FmIndex`.
    """

    contig_offsets: NDArray[np.int64]
    places: NDArray[np.int32]
