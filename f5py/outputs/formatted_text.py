"""Text outputs, formatted by several threads and written in order, with developers' tables."""

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch, ReadStatus
from f5py.io.files.output import TextOutput
from f5py.io.files.table_output import open_table
from f5py.jit.kernel import exact_inner
from f5py.options.shared import AlignmentOptions
from f5py.outputs.sink import FinishedPart, PartFiles, Sink
from f5py.text._format_numba import TAB, append_int
from f5py.text.encoding import PartialTextError, encoded
from f5py.threads.ordered import OrderedWork

#: Lines, or as much of one long line as usual lines have, whose text is made in one piece: two megabytes.
_LINES_PER_PIECE = 20_000

#: Makes the text of the reads from one number up to another one.
Formatter = Callable[[ReadBatch, int, int], Any]

#: Where a piece of text is to be written, the text, and what ended it early.
_Piece: TypeAlias = "tuple[TextOutput, Any, Exception | None]"


@exact_inner
def append_cell(out, at, value):
    """Append a tab and an integer."""
    out[at] = TAB
    return append_int(out, at + 1, value)


class StageTables:
    """Print events, aligned pairs or scaling of each batch before its normal rows."""

    def __init__(self, out: TextOutput, events: bool, pairs: bool, scaling: bool) -> None:
        self._out = out
        self._events = events
        self._pairs = pairs
        self._scaling = scaling
        self._wrote_header = False

    def write(self, batch: ReadBatch) -> None:
        if self._events:
            self._write_events(batch)
        if self._pairs:
            self._write_pairs(batch)
        if self._scaling:
            self._write_scaling(batch)

    def _write_events(self, batch: ReadBatch) -> None:
        for read in np.flatnonzero(batch.n_events).tolist():
            events = slice(batch.events.offsets[read], batch.events.offsets[read + 1])
            count = events.stop - events.start
            self._out.write(encoded(f">{batch.names[read]}\tLN:{count}\tEVENTSTART:0\tEVENTEND:{count}\n"))
            columns = (column[events].tolist() for column in batch.events[1:])
            self._out.write(encoded("".join(map("{%d,%f,%f,%f}\t".__mod__, zip(*columns, strict=True))) + "\n"))

    def _write_pairs(self, batch: ReadBatch) -> None:
        for read in np.flatnonzero(batch.n_pairs).tolist():
            count = batch.n_pairs[read]
            self._out.write(encoded(f">{batch.names[read]}\tN_ALGN_PAIR:{count}\t{{ref_pos,read_pos}}\n"))
            end = batch.pair_offsets[read + 1]
            pairs = map(tuple, batch.aligned_pairs[end - count : end].tolist())
            self._out.write(encoded("".join(map("{%d,%d}\t".__mod__, pairs)) + "\n"))

    def _write_scaling(self, batch: ReadBatch) -> None:
        if not self._wrote_header:
            self._out.write(b"read\tshift\tscale\tvar\n")
            self._wrote_header = True
        usable = (batch.status == ReadStatus.OK) | (batch.status == ReadStatus.QC_FAIL)
        lines = [
            f"{batch.names[read]}\t{batch.shift[read]:.2f}\t{batch.scale[read]:.2f}\t{batch.var[read]:.2f}\n"
            for read in np.flatnonzero(usable).tolist()
        ]
        self._out.write(encoded("".join(lines)))


class WritingStoppedError(Exception):
    """The rest of a batch was cancelled."""


class OrderedFormatter:
    """Threads that format text, with a few pieces queued for writing."""

    def __init__(self, n_threads: int, stopping: threading.Event | None = None) -> None:
        self._stopping = stopping or threading.Event()
        self._pieces = OrderedWork(n_threads, _text, self._write_piece, "f5py-format", n_threads + 1)

    def write(self, out: TextOutput, batch: ReadBatch, format_reads: Formatter, size: NDArray[np.int64]) -> None:
        """Write the text of all reads of a batch; `size` is that of each, in lines of about a hundred bytes.

        Raises `WritingStoppedError`, or the exception of `format_reads` after the pieces before it; the text of a
        `PartialTextError` is written, and its cause raised.
        """
        for first, end in pieces(size):
            self._pieces.add(out, format_reads, batch, first, end)
        self._pieces.finish()
        out.flush()  # whatever happens later, this is out, and whole

    def close(self) -> None:
        self._pieces.close()

    def _write_piece(self, piece: _Piece) -> None:
        if self._stopping.is_set():
            raise WritingStoppedError
        out, text, problem = piece
        out.write(text)
        if problem is not None:
            raise problem


def _text(out: TextOutput, format_reads: Formatter, batch: ReadBatch, first: int, end: int) -> _Piece:
    try:
        return out, format_reads(batch, first, end), None
    except PartialTextError as stop:
        return out, stop.text, stop.problem


def pieces(size: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Divide reads into ranges of about equal size; a read is never divided."""
    piece = (np.cumsum(size) - size) // _LINES_PER_PIECE
    starts = np.flatnonzero(np.diff(piece, prepend=-1)).tolist()
    return list(pairwise([*starts, len(size)]))


class TextFormat(Protocol):
    """Interface of a thread-safe text formatter."""

    def header(self) -> bytes:
        """Return the text before the first read."""
        ...

    def format(self, batch: ReadBatch, first: int, end: int) -> Any:
        """Return the text of the reads from `first` up to `end`."""
        ...


class FormattedText(Sink):
    """Text output of a run. `size` returns the output of each read in lines of usual length."""

    can_be_renamed = True
    #: Whether the output begins with the header of the text; else what opens the output has written its own.
    _has_header = True

    def __init__(
        self, path: str, options: AlignmentOptions, text: TextFormat, size: Callable[[ReadBatch], NDArray[np.int64]],
        stopping: threading.Event, is_csv: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(path)
        self.can_be_renamed = self.can_be_renamed and not is_csv
        self._is_csv = is_csv
        self._options = options
        self._text, self._size, self._stopping = text, size, stopping

    def _open(self, part: PartFiles | None) -> None:
        options = self._options
        self._out = part.text if part is not None else self._open_text()
        formatter = OrderedFormatter(options.threads, self._stopping)
        self.files.callback(formatter.close)
        self._formatter = formatter
        self._tables = StageTables(self._out, options.print_events, options.print_banded_aln, options.print_scaling)
        if part is not None or self._has_header:
            self._out.write(self._text.header())

    def _open_text(self) -> TextOutput:
        return self.files.enter_context(open_table(self.path, self._options.threads, self._is_csv))

    def write(self, batch: ReadBatch) -> None:
        self._tables.write(batch)
        self._formatter.write(self._out, batch, self._text.format, self._size(batch))

    def append(self, part: FinishedPart) -> None:
        part.append_rows(self._out)
