"""Text outputs formatted by several threads: those of ``eventalign`` and ``resquiggle``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.io.files.output import TextOutput
from f5py.io.files.table_output import open_table
from f5py.options.shared import AlignmentOptions
from f5py.outputs.formatting import OrderedFormatter
from f5py.outputs.sink import FinishedPart, PartFiles, Sink
from f5py.outputs.stage_tables import StageTables


class TextFormat(Protocol):
    """Interface of a thread-safe text formatter."""

    def header(self) -> bytes:
        """Return the text before the first read."""
        ...

    def format(self, batch: ReadBatch, first: int, end: int) -> Any:
        """Return the text of the reads from `first` up to `end`."""
        ...


class Formatting(NamedTuple):
    """Text format of a run."""

    text: TextFormat
    # returns how many lines of a usual length each read takes up, int64, shape (n,)
    size: Callable[[ReadBatch], NDArray[np.int64]]
    stopping: threading.Event  # set when the writer is to stop before its next piece


class FormattedText(Sink):
    """Text output of a run.

    Parameters
    ----------
    options : AlignmentOptions
        Threads, and which stage tables to mix in.
    is_csv : bool
        Write CSV; the rows of parts have tabs.
    """

    may_be_named = True
    #: Whether the output begins with the header of the text; else what opens the output has written its own.
    _has_header = True

    def __init__(self, path: str, options: AlignmentOptions, formatting: Formatting, is_csv: bool = False) -> None:
        super().__init__(path)
        self.may_be_named = self.may_be_named and not is_csv
        self._is_csv = is_csv
        self._options = options
        self._formatting = formatting

    def _open(self, part: PartFiles | None) -> None:
        options, formatting = self._options, self._formatting
        self._out = part.text if part is not None else self._open_text()
        formatter = OrderedFormatter(options.threads, formatting.stopping)
        self.files.callback(formatter.close)
        self._formatter = formatter
        self._tables = StageTables(self._out, options.print_events, options.print_banded_aln, options.print_scaling)
        if part is not None or self._has_header:
            self._out.write(formatting.text.header())

    def _open_text(self) -> TextOutput:
        return self.files.enter_context(open_table(self.path, self._options.threads, self._is_csv))

    def write(self, batch: ReadBatch) -> None:
        self._tables.write(batch)
        formatting = self._formatting
        self._formatter.write(self._out, batch, formatting.text.format, formatting.size(batch))

    def append(self, part: FinishedPart) -> None:
        part.append_rows(self._out)
