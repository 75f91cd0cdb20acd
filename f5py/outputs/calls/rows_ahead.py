"""Rows of the table of calls, made by a process whose batches another one writes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.options.signal_commands import CallOptions
from f5py.outputs.calls.calls_sinks import CallLayout
from f5py.outputs.calls.calls_writer import CallsWriter
from f5py.outputs.formatting import OrderedFormatter


class RowsAhead:
    """Makes the rows of batches before their turn to be written comes.

    Parameters
    ----------
    stopping : threading.Event
        Set when no more rows are wanted.
    """

    def __init__(self, options: CallOptions, layout: CallLayout, stopping: threading.Event) -> None:
        self._pieces = _Pieces()
        self._formatter = OrderedFormatter(options.threads, stopping)
        self._calls = CallsWriter(self._pieces, options.meth_out_version, *layout, formatter=self._formatter)

    def make(self, batch: ReadBatch) -> None:
        """Fill `ReadBatch.row_text` of a computed batch."""
        if len(batch):
            self._calls.write(batch)
            batch.row_text = self._pieces.taken()

    def close(self) -> None:
        """End the threads."""
        self._formatter.close()


class _Pieces:
    """A `TextOutput` that keeps what it gets."""

    def __init__(self) -> None:
        self._kept: list[NDArray[np.uint8]] = []

    def write(self, text: Any, /) -> None:
        self._kept.append(np.frombuffer(text, np.uint8))

    def flush(self) -> None:
        """Nothing waits to be seen."""

    def taken(self) -> list[NDArray[np.uint8]]:
        """Return what has come since the last time."""
        taken, self._kept = self._kept, []
        return taken
