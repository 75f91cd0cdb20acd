"""Marks of the k-mers that an alignment of events to the reference leaves out."""

from __future__ import annotations

import numpy as np

from f5py.core.batch import ReadBatch, Rows
from f5py.core.offsets import offsets_of
from f5py.threads.pool import WorkerPool


def mark_kmers(batch: ReadBatch, k: int, pool: WorkerPool, trim: int = 0) -> None:
    """Give a batch a row for each k-mer without an event that lies between two rows of one segment.

    Such a row has the state ``DELETED`` if a base of the k-mer is in a deletion of the read's alignment, and else
    ``SKIPPED``. Its event is the one that begins where the signal passes the k-mer.

    Parameters
    ----------
    batch : ReadBatch
        With the rows of an event alignment, which are replaced by as many or more; their offsets are then no longer
        those of the events.
    k : int
        Bases of a k-mer.
    pool : WorkerPool
    trim : int, optional
        How many of them are hidden at each end, where deletions do not count.
    """
    from f5py.event_alignment._marks_numba import count_rows, fill_rows

    reads, n = np.arange(len(batch)), np.empty(len(batch), np.int64)
    pool.run(count_rows, reads, batch.rows, n, order=batch.number)
    offsets = offsets_of(n)
    total = int(offsets[-1])
    marked = Rows(offsets, n, np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total, np.uint8))
    pool.run(fill_rows, reads, batch.rows, batch.events, batch.alignments, k, trim, marked, order=batch.number)
    batch.rows = marked
