"""What all results of a part of a batch on a GPU are made with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.buffers import ArenaPart, Tables
from f5py.threads.pool import CallingThread, WorkerPool


class OfPart:
    """Something that is found for the reads of a part while their events are still there.

    Parameters
    ----------
    part : ArenaPart
        With the events and the fits of `aligned`, and room for what is found.
    tables : Tables
        Device arrays of models and motifs that have been used.
    aligned : int64
        Reads in the order in which the part has them.
    """

    def __init__(
        self, part: ArenaPart, functions: dict[str, Any], tables: Tables, aligned: NDArray[np.int64], pool: WorkerPool
    ) -> None:
        self._part, self._functions, self._tables, self._pool = part, functions, tables, pool
        self._aligned = aligned

    def _run(self, kernel: Any, *arguments: Any) -> None:
        """Run a kernel of one turn here: those of the pool may be busy for longer than it takes."""
        CallingThread().run(kernel, np.zeros(1, np.int64), *arguments)

    def _run_pieces(self, kernel: Any, n: int, of_piece: int, *arguments: Any) -> float:
        """Let the threads of the pool run a kernel that takes n things in pieces of so many; return their seconds."""
        return self._pool.run(kernel, np.arange(-(-n // of_piece)), *arguments)
