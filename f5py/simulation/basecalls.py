"""Simulated basecalls of a molecule, with errors, and their true alignment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MATCH, INSERTION, DELETION = 0, 1, 2  # operation numbers of SAM; a mismatch is a MATCH
_MISMATCH_SHARE, _INSERTION_SHARE = 0.40, 0.25
_WRONG_QUALITY = 6.0
_QUALITY_SD = 3.0


@dataclass(frozen=True)
class Basecall:
    """A basecalled read in the molecule's own direction."""

    codes: NDArray[np.uint8]  # shape (n,): called bases, 0 A, 1 C, 2 G, 3 T
    qualities: NDArray[np.uint8]  # shape (n,): Phred scores
    # operations, lengths: shape (m,): CIGAR along the molecule (to be reversed for the reverse strand)
    operations: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    edit_distance: int  # mismatches plus inserted plus deleted bases


def basecall(molecule: NDArray[np.uint8], error_rate: float, rng: np.random.Generator) -> Basecall:
    """Call the bases of a molecule (codes 0 to 3, at least one) with `error_rate` errors per base.

    The first and the last base are always right, and an insertion never touches a deletion, so that the
    CIGAR starts and ends with M and has no adjacent I and D.
    """
    n = len(molecule)
    draw = rng.random(n)
    draw[0] = draw[-1] = 1.0
    to_mismatch = _MISMATCH_SHARE * error_rate
    to_insertion = to_mismatch + _INSERTION_SHARE * error_rate
    mismatch = draw < to_mismatch
    inserted = (draw >= to_mismatch) & (draw < to_insertion)  # before this base
    deleted = (draw >= to_insertion) & (draw < error_rate)
    inserted[1:] &= ~deleted[:-1]
    run = np.where(inserted, rng.geometric(0.7, size=n), 0)

    called = molecule.copy()
    called[mismatch] = (called[mismatch] + rng.integers(1, 4, size=int(mismatch.sum()))) & 3
    # one cell per CIGAR column: the inserted bases of a molecule's base, then the base itself
    cells = run + 1
    ends = np.cumsum(cells)
    n_cells = int(ends[-1])
    operation = np.full(n_cells, INSERTION, dtype=np.uint8)
    operation[ends - 1] = np.where(deleted, DELETION, MATCH)
    base = rng.integers(0, 4, size=n_cells).astype(np.uint8)
    base[ends - 1] = called
    wrong = operation == INSERTION
    wrong[ends - 1] = mismatch
    present = operation != DELETION

    right_quality = min(-10 * np.log10(max(error_rate, 1e-4)), 40.0)
    quality = np.where(wrong[present], _WRONG_QUALITY, right_quality)
    quality = quality + _QUALITY_SD * rng.standard_normal(len(quality))
    change = np.flatnonzero(np.diff(operation)) + 1
    bounds = np.concatenate(([0], change, [n_cells]))
    return Basecall(
        codes=base[present],
        qualities=np.clip(quality, 1, 50).astype(np.uint8),
        operations=operation[bounds[:-1]],
        lengths=np.diff(bounds),
        edit_distance=int(mismatch.sum() + run.sum() + deleted.sum()),
    )
