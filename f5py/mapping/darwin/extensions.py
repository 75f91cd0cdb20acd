"""Candidates of a batch of reads, and their alignments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of

# Columns of candidates: the read and its strand, the target, and where the seed begins on both, on the strand.
READ, REVERSE, TARGET, PLACE, OFFSET = range(5)
N_CANDIDATE = 5
# Columns of alignments: score, equal columns, columns, those before the best cell of the first tile; the stretches of
# target and strand.
SCORE, EQUAL, COLUMNS, LEFT, TS, TE, QS, QE = range(8)
N_RESULT = 8


class Targets(NamedTuple):
    """Sequences that reads are aligned to."""

    bases: NDArray[np.uint8]  # shape (offsets[-1],): 0 to 3, 4 for unknown bases
    offsets: NDArray[np.int64]  # shape (n_targets + 1,)


@dataclass
class Extensions:
    """Candidates to extend, and their alignments."""

    # shape (2, offsets[-1]): codes of the reads, and of their reverse complements at the same places
    strands: NDArray[np.uint8]
    offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    table: NDArray[np.int64]  # shape (n, N_CANDIDATE)
    # shape (n, N_RESULT): filled. To have paths written, it must have the numbers of columns already.
    results: NDArray[np.int64]
    # shape (op_offsets[-1],): filled with columns of paths: 0 for both, 1 for a base of the read, 2 for one of the
    # target
    ops: NDArray[np.uint8]
    op_offsets: NDArray[np.int64]  # shape (n + 1,): all 0 if paths are not wanted
    number: int = 0  # of the batch
    share_of_input: float | None = None

    @property
    def arrays(self) -> tuple[NDArray, ...]:
        """Arrays for kernels: table, strands, offsets, results, ops, op_offsets."""
        return self.table, self.strands, self.offsets, self.results, self.ops, self.op_offsets

    @classmethod
    def of(
        cls, strands: NDArray[np.uint8], offsets: NDArray[np.int64], table: NDArray[np.int64], number: int = 0,
        share_of_input: float | None = None,
    ) -> Extensions:  # fmt: skip
        """Make extensions of candidates, without paths."""
        n = len(table)
        results, no_ops = np.zeros((n, N_RESULT), np.int64), np.empty(0, np.uint8)
        return cls(strands, offsets, table, results, no_ops, np.zeros(n + 1, np.int64), number, share_of_input)

    def with_paths(self, chosen: NDArray[np.int64]) -> Extensions:
        """Select extended candidates, to be extended again for their paths."""
        results = self.results[chosen].copy()
        op_offsets = offsets_of(results[:, COLUMNS])
        return Extensions(
            self.strands, self.offsets, self.table[chosen].copy(), results, np.empty(op_offsets[-1], np.uint8),
            op_offsets, self.number, self.share_of_input,
        )  # fmt: skip

    def work(self, target_lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the most bases of each alignment."""
        table = self.table
        lengths = np.diff(self.offsets)[table[:, READ]]
        before = np.minimum(table[:, OFFSET], table[:, PLACE])
        behind = np.minimum(lengths - table[:, OFFSET], target_lengths[table[:, TARGET]] - table[:, PLACE])
        return before + behind
