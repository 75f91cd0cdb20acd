"""Summary of event alignment: a line per read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from f5py.core.batch import ReadBatch
from f5py.text.encoding import encoded

_HEADER = (
    "read_index\tread_name\tfast5_path\tmodel_name\tstrand\tnum_events\tnum_steps\tnum_skips\tnum_stays\t"
    "total_duration\tshift\tscale\tdrift\tvar\n"
)


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
        from f5py.outputs.events._eventalign_summary_numba import N_COUNTS, count_movements

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
