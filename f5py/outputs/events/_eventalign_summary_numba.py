"""Jitted loop of `f5py.outputs.events.eventalign_summary`."""

from __future__ import annotations

from f5py.jit.kernel import kernel

#: Columns that the kernel fills.
STEPS, SKIPS, STAYS, SAMPLES = range(4)
N_COUNTS = 4


@kernel
def count_movements(counts, n_rows, event_offsets, row_event, row_position, event_length):
    """Per read: rows one, more and no k-mers after the row before, and the samples of all its events."""
    for read in range(n_rows.shape[0]):
        first = event_offsets[read]
        for row in range(first, first + n_rows[read]):
            counts[read, SAMPLES] += event_length[first + row_event[row]]
            if row == first:
                continue
            kmers = abs(row_position[row] - row_position[row - 1])
            if kmers == 0:
                counts[read, STAYS] += 1
            elif kmers == 1:
                counts[read, STEPS] += 1
            else:
                counts[read, SKIPS] += 1
