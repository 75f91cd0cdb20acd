"""Made-up reads by which a GPU shows that it finds the anchors that the CPU threads find."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.mapping.batch import Anchors, MappingBatch


def batch_of(pieces: Sequence[NDArray[np.uint8]]) -> MappingBatch:
    """Make a batch of reads with these codes of bases and nothing else."""
    offsets = offsets_of([len(piece) for piece in pieces])
    nothing, none = np.empty(0, np.uint8), np.zeros(len(pieces) + 1, np.int64)
    batch = MappingBatch(Names.of([""] * len(pieces)), nothing, offsets, nothing, nothing, none, number=-1)
    batch.codes = np.concatenate(pieces).astype(np.uint8)
    return batch


def have_same_anchors(one: MappingBatch, other: MappingBatch) -> bool:
    """Return whether two batches that have anchors have the same."""
    assert one.anchors is not None
    assert other.anchors is not None
    return all(np.array_equal(getattr(one.anchors, name), getattr(other.anchors, name)) for name in Anchors._fields)
