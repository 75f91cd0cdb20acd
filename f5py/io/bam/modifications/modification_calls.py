"""Base modification calls of pysam records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from f5py.text.encoding import undecoded

if TYPE_CHECKING:
    import pysam

#: Canonical base, strand and code of a modification.
Modification = tuple[str, int, "str | int"]


def read_name(record: pysam.AlignedSegment) -> str:
    """Return the read's name, which need not be UTF-8."""
    return undecoded(lambda: record.query_name or "").decode("utf-8", "replace")


def aligned_calls(
    record: pysam.AlignedSegment, calls: list[tuple[int, int]]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Select the calls, of `pysam.AlignedSegment.modified_bases`, on aligned bases.

    Returns base index in the record, ascending, reference position, and natural log-odds of modified against
    unmodified.
    """
    if not calls:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    place, quality = np.array(sorted(calls), np.int64).T
    pairs = np.array(record.get_aligned_pairs(matches_only=True), np.int64).reshape(-1, 2)
    at = np.minimum(np.searchsorted(pairs[:, 0], place), max(len(pairs) - 1, 0))
    aligned = (pairs[at, 0] == place) & (quality >= 0) if len(pairs) else np.zeros(len(place), np.bool_)
    probability = (quality[aligned] + 0.5) / 256  # midpoint of the ML value's interval
    return place[aligned], pairs[at[aligned], 1], np.log(probability / (1 - probability))
