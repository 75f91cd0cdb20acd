"""Formats the results of a batch in several threads and writes them in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.io.output import TextOutput
from f5py.pipeline.batch import ReadBatch

#: Elements (rows, samples or k-mers) whose text is made in one piece: some megabytes.
_ELEMENTS_PER_PIECE = 50_000

#: Makes the text of the reads from one number up to another one.
Formatter = Callable[[ReadBatch, int, int], Any]


class OrderedFormatter:
    """Threads that make text, of which a few pieces wait to be written at any time.

    Parameters
    ----------
    n_threads : int
    """

    def __init__(self, n_threads: int) -> None:
        self._n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="f5py-format")

    def write(self, out: TextOutput, batch: ReadBatch, format_reads: Formatter, size: NDArray[np.int64]) -> None:
        """Write the text of all reads of a batch.

        Parameters
        ----------
        out : TextOutput
        batch : ReadBatch
        format_reads : callable
            Given the batch and a range of reads, returns their text; is called in threads.
        size : int64, shape (n,)
            How much there is to write of each read.
        """
        waiting: deque[Future] = deque()
        for first, end in pieces(size):
            if len(waiting) > self._n_threads:
                out.write(waiting.popleft().result())
            waiting.append(self._pool.submit(format_reads, batch, first, end))
        while waiting:
            out.write(waiting.popleft().result())
        out.flush()  # whatever happens later, this is out, and whole

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)


def pieces(size: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Divide reads into ranges of about equal size; a read is never divided."""
    piece = (np.cumsum(size) - size) // _ELEMENTS_PER_PIECE
    starts = np.flatnonzero(np.diff(piece, prepend=-1)).tolist()
    return list(pairwise([*starts, len(size)]))
