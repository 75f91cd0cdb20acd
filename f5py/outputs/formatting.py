"""Parallel formatting of a batch's results, written in order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.io.files.output import TextOutput
from f5py.text.encoding import PartialTextError
from f5py.threads.ordered import OrderedWork

#: Lines, or as much of one long line as usual lines have, whose text is made in one piece: two megabytes.
_LINES_PER_PIECE = 20_000

#: Makes the text of the reads from one number up to another one.
Formatter = Callable[[ReadBatch, int, int], Any]

#: Where a piece of text is to be written, the text, and what ended it early.
_Piece: TypeAlias = "tuple[TextOutput, Any, Exception | None]"


class WritingStopped(Exception):
    """The rest of a batch was cancelled."""


class OrderedFormatter:
    """Threads that format text, with a few pieces queued for writing.

    Parameters
    ----------
    stopping : threading.Event, optional
        Stops writing after a piece.
    """

    def __init__(self, n_threads: int, stopping: threading.Event | None = None) -> None:
        self._stopping = stopping or threading.Event()
        self._pieces = OrderedWork(n_threads, _text, self._write_piece, "f5py-format", n_threads + 1)

    def write(self, out: TextOutput, batch: ReadBatch, format_reads: Formatter, size: NDArray[np.int64]) -> None:
        """Write the text of all reads of a batch.

        Raises `WritingStopped`, or the exception of `format_reads` after the pieces before it; the text of a
        `PartialTextError` is written, and its cause raised.

        Parameters
        ----------
        format_reads : callable
            Formats a range of reads of the batch; called in threads.
        size : int64, shape (n,)
            Output of each read, in lines of about a hundred bytes.
        """
        for first, end in pieces(size):
            self._pieces.add(out, format_reads, batch, first, end)
        self._pieces.finish()
        out.flush()  # whatever happens later, this is out, and whole

    def close(self) -> None:
        self._pieces.close()

    def _write_piece(self, piece: _Piece) -> None:
        if self._stopping.is_set():
            raise WritingStopped
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
