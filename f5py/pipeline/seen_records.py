"""The set of alignments that were seen, by which doubled ones are found."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FIRST_SLOTS = 1 << 12


class SeenRecords:
    """Finds records that are marked as duplicates, and those that repeat an earlier one.

    A record repeats another if read name, contig, position, strand and CIGAR are the same, as after merging a file with
    itself. A hash of 128 bits is kept of every record, in some 40 bytes.
    """

    def __init__(self) -> None:
        self._table = np.zeros((_FIRST_SLOTS, 2), np.uint64)
        self._n = 0

    def mark(self, data: NDArray[np.uint8], starts: NDArray[np.int64], n: int, kinds: NDArray[np.uint8]) -> None:
        """Let the kept ones of `n` records that are duplicates be of this kind.

        Parameters
        ----------
        starts : int64
            Where they begin, and where the last one ends.
        kinds : uint8, shape (n,)
            What becomes of them; changed.
        """
        from f5py.pipeline._seen_records_numba import mark_duplicates, move_all

        n_slots = len(self._table)
        while n_slots < 2 * (self._n + n):
            n_slots *= 2
        if n_slots > len(self._table):
            larger = np.zeros((n_slots, 2), np.uint64)
            move_all(self._table, larger)
            self._table = larger
        self._n += mark_duplicates(data, starts, n, kinds, self._table)
