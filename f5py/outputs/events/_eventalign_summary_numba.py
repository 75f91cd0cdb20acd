"""Kernel of `f5py.outputs.events.eventalign_summary`."""

import numpy as np

from f5py.core.batch import RowState
from f5py.jit.kernel import kernel

#: Columns that the kernel fills.
STEPS, SKIPS, STAYS, SAMPLES, EVENTS = range(5)
N_COUNTS = 5
_WITHOUT_EVENT = np.uint8(RowState.SKIPPED | RowState.DELETED)


@kernel
def count_movements(counts, first_read, rows, event_offsets, event_length):
    """Count each read's steps, skips and stays, and the samples and number of its events.

    Parameters
    ----------
    counts : int64, shape (n, N_COUNTS)
        Zero; filled.
    first_read : int
        Index in the batch of the first of the n reads.
    rows : f5py.core.batch.Rows
    event_offsets, event_length
        Of all reads; see `f5py.core.batch.Events`.
    """
    offsets, n_rows, row_event, row_position, row_state = rows
    for read in range(counts.shape[0]):
        first = offsets[first_read + read]
        last = row_position[first] if n_rows[first_read + read] else 0
        for row in range(first, first + n_rows[first_read + read]):
            if row_state[row] & _WITHOUT_EVENT:
                continue
            counts[read, SAMPLES] += event_length[event_offsets[first_read + read] + row_event[row]]
            counts[read, EVENTS] += 1
            if row == first:
                continue
            kmers = abs(row_position[row] - last)
            last = row_position[row]
            if kmers == 0:
                counts[read, STAYS] += 1
            elif kmers == 1:
                counts[read, STEPS] += 1
            else:
                counts[read, SKIPS] += 1
