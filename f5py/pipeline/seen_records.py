"""Hash set of alignments for detecting duplicates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FIRST_SLOTS = 1 << 12


class SeenRecords:
    """Find records flagged as duplicates, and repeated ones.

    Repeated records share read name, contig, position, strand and CIGAR, as after merging a file with itself. The set
    has a 128-bit hash of every record, in some 40 bytes.
    """

    def __init__(self) -> None:
        self._table = np.zeros((_FIRST_SLOTS, 2), np.uint64)
        self._n = 0

    def mark(self, data: NDArray[np.uint8], starts: NDArray[np.int64], n: int, kinds: NDArray[np.uint8]) -> None:
        """Mark duplicates among the kept ones of `n` records.

        Parameters
        ----------
        starts : int64
            Offsets of the records, and the end of the last one.
        kinds : uint8, shape (n,)
            Classification of the records; changed.
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
