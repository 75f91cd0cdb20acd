"""Kernel's view of a read of a batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_inner


class ReadView(NamedTuple):
    """A read's alignment and event map."""

    segment: NDArray[np.uint8]  # upper-case reference bases to one past the alignment's end, perhaps marked
    start: int  # 0-based reference position of the segment
    cigar: NDArray[np.uint32]  # length << 4 | operation
    reverse: bool  # strand of the read
    first_event: NDArray[np.int32]  # shape (n_kmers,): of each k-mer of the read as sequenced, or -1
    length: int  # bases of the read


@exact_inner
def segment_of(alignments, read):
    """Return the reference segment of a read."""
    return alignments.reference[alignments.reference_offsets[read] : alignments.reference_offsets[read + 1]]


@exact_inner
def read_view(batch, read, k):
    """Return the `ReadView` of a read of a `f5py.core.batch.BatchView`, for k-mers of length k."""
    alignments, base_map = batch.alignments, batch.base_map
    first_base = base_map.offsets[read]
    length = base_map.offsets[read + 1] - first_base
    return ReadView(
        segment_of(alignments, read),
        alignments.start[read],
        alignments.cigar[alignments.cigar_offsets[read] : alignments.cigar_offsets[read + 1]],
        alignments.reverse[read],
        base_map.first_event[first_base : first_base + length - k + 1],
        length,
    )
