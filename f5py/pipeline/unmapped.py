"""Batches of unmapped reads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch, ReadStatus, empty
from f5py.core.names import Names
from f5py.io.signals import SignalBlock


def unmapped_batch(
    number: int, names: list[str], bases: NDArray[np.uint8], base_offsets: NDArray[np.int64], signals: SignalBlock
) -> ReadBatch:
    """Make a batch of unmapped reads, with empty alignments and `contig` -1.

    Parameters
    ----------
    bases : uint8, offsets `base_offsets`
        Letters of the reads as sequenced.
    base_offsets : int64, shape (n + 1,)
    signals : SignalBlock
        Of the same reads; unreadable ones get the status `ReadStatus.BAD_READ`.
    """
    n = len(names)
    status = np.zeros(n, np.uint8)
    status[list(signals.problems)] = ReadStatus.BAD_READ
    return ReadBatch(
        number=number,
        names=Names.of(names),
        read_index=np.arange(n),
        status=status,
        contig=np.full(n, -1, np.int32),
        reference_start=np.zeros(n, np.int64),
        reference_end=np.zeros(n, np.int64),
        reverse=np.zeros(n, np.bool_),
        cigar=empty(np.uint32),
        cigar_offsets=np.zeros(n + 1, np.int64),
        reference=empty(np.uint8),
        reference_offsets=np.zeros(n + 1, np.int64),
        bases=bases,
        base_offsets=base_offsets,
        samples=signals.samples,
        sample_offsets=signals.offsets,
        offset=signals.offset,
        unit=signals.range / signals.digitisation,
        sampling_rate=signals.sampling_rate,
        problems=signals.problems,
    )
