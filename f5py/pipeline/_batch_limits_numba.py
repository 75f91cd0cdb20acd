"""Kernel that divides records into batches; see `f5py.pipeline.loader`."""

from __future__ import annotations

from typing import NamedTuple

from f5py.io.bam._bam_numba import KEPT, ULTRA
from f5py.jit.kernel import exact_kernel


class BatchLimits(NamedTuple):
    """Limits of a batch."""

    batch_size: int  # most reads
    max_bases: int  # bases from which on a batch is closed
    ultra_threshold: int  # of reads longer than that, if it is not negative, the kind becomes `ULTRA`
    counts_left_out: bool  # close a batch also when it has as many records that are left out as reads may be in it


@exact_kernel
def cut(kinds, lengths, first, n, limits, state):
    """Find the end of a batch that continues with record `first`.

    Parameters
    ----------
    kinds : uint8, shape (n,)
        Classification of each record; that of very long reads is changed, see `BatchLimits`.
    lengths : int64, shape (n,)
        Bases of each read.
    state : int64, shape (4,)
        Reads, skipped records and bases of the batch so far, and whether it is closed; updated.
    """
    batch_size, max_bases, ultra_threshold, counts_left_out = limits
    i = first
    while i < n:
        kind = kinds[i]
        if kind == KEPT and 0 <= ultra_threshold < lengths[i]:
            kinds[i] = kind = ULTRA
        i += 1
        if kind == KEPT:
            state[0] += 1
            state[2] += lengths[i - 1]
        elif counts_left_out:
            state[1] += 1
        if max(state[0], state[1]) >= batch_size or state[2] >= max_bases:
            state[3] = 1
            break
    return i
