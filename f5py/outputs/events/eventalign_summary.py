"""Summary of event alignment: a line per read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from f5py.core.batch import ReadBatch, RowState
from f5py.jit.kernel import kernel
from f5py.text.encoding import encoded

_HEADER = (
    "read_index\tread_name\tfast5_path\tmodel_name\tstrand\tnum_events\tnum_steps\tnum_skips\tnum_stays\t"
    "total_duration\tshift\tscale\tdrift\tvar\n"
)


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


class EventalignSummary:
    """Format a line per read with rows; thread-safe.

    Parameters
    ----------
    rna : bool
        Direct RNA; the model's name is then ``rna`` and not ``dna``.
    signal_path : function of str, or str
        Signal file by read name, or a constant.
    """

    def __init__(self, rna: bool, signal_path: Callable[[str], str] | str) -> None:
        self._model = "rna" if rna else "dna"
        self._signal_path = signal_path

    def header(self) -> bytes:
        return _HEADER.encode()

    def format(self, batch: ReadBatch, first: int, end: int) -> bytes:
        """Format the lines of the reads from `first` up to `end`."""
        counts = np.zeros((end - first, N_COUNTS), np.int64)
        count_movements(counts, first, batch.rows, batch.events.offsets, batch.events.length)
        lines = []
        for i in np.flatnonzero(batch.rows.n[first:end]).tolist():
            read = first + i
            name = batch.names[read]
            path = self._signal_path if isinstance(self._signal_path, str) else self._signal_path(name)
            steps, skips, stays, samples, events = counts[i].tolist()
            lines.append(
                f"{batch.read_index[read]}\t{name}\t{path}\t{self._model}\ttemplate\t"
                f"{events}\t{steps}\t{skips}\t{stays}\t{samples / float(batch.sampling_rate[read]):.2f}\t"
                f"{float(batch.shift[read]):.3f}\t{float(batch.scale[read]):.3f}\t0.000\t{float(batch.var[read]):.3f}\n"
            )
        return encoded("".join(lines))
