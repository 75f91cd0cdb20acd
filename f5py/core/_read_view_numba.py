"""Kernel's view of a read of a batch."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_inner, inner


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


_LOOK_AROUND = 1000  # k-mers searched for an event


@inner
def closest_event(first_event, kmer):
    """Return the first event of the k-mer, or of the nearest earlier or else later one; or -1.

    The far end of each search is excluded, as in f5c.
    """
    n_kmers = first_event.shape[0]
    if kmer < 0 or kmer >= n_kmers:
        return -1
    for j in range(kmer, max(0, kmer - _LOOK_AROUND), -1):
        if first_event[j] >= 0:
            return first_event[j]
    for j in range(kmer, min(kmer + _LOOK_AROUND, n_kmers - 1)):
        if first_event[j] >= 0:
            return first_event[j]
    return -1
