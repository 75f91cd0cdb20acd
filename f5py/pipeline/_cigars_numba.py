"""Jitted loops over the CIGARs of a batch."""

import numpy as np

from f5py.core.cigar import HARD_CLIP, OF_READ, REFERENCE_SKIP
from f5py.jit.kernel import exact_kernel


@exact_kernel
def prepare(cigar, offsets, hard_clips, read_bases):
    """Add up the bases of each whole read; return the first read with a skip of the reference, or -1.

    Parameters
    ----------
    cigar : uint32, shape (offsets[n],)
        Length times 16 plus operation; hard clips become empty unless they are to count.
    offsets : int64, shape (n + 1,)
    hard_clips : bool
        Whether they count.
    read_bases : int64, shape (n,)
        Filled; hard clips count here in any case.
    """
    spliced = -1
    for read in range(offsets.shape[0] - 1):
        n_bases = np.int64(0)
        for i in range(offsets[read], offsets[read + 1]):
            operation = cigar[i] & 15
            if OF_READ >> operation & 1:
                n_bases += np.int64(cigar[i] >> 4)
            if operation == HARD_CLIP:
                if not hard_clips:
                    cigar[i] = HARD_CLIP
            elif operation == REFERENCE_SKIP and spliced < 0:
                spliced = read
        read_bases[read] = n_bases
    return spliced
