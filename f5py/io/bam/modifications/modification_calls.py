"""Calls of modified bases in the MM and ML tags of alignments."""

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
    """Return the read's name, which need not be UTF-8 in a damaged file."""
    return undecoded(lambda: record.query_name or "").decode("utf-8", "replace")


def has_modifications(record: pysam.AlignedSegment) -> bool:
    """Return whether the record has the tag, even if that lists none."""
    return record.has_tag("MM") or record.has_tag("Mm")


def modifications_of(record: pysam.AlignedSegment) -> dict[Modification, list[tuple[int, int]]]:
    """Place in the record's bases and quality of every call, by modification."""
    return record.modified_bases or {}


def aligned_calls(
    record: pysam.AlignedSegment, calls: list[tuple[int, int]]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Select the calls that are aligned to a base of the reference.

    Parameters
    ----------
    calls : list of (int, int)
        As `modifications_of` has them.

    Returns
    -------
    place, position : int64, shape (n,)
        In the record's bases, ascending, and on the reference.
    ratio : float64, shape (n,)
        Natural log-odds of modified against unmodified.
    """
    if not calls:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    place, quality = np.array(sorted(calls), np.int64).T
    pairs = np.array(record.get_aligned_pairs(matches_only=True), np.int64).reshape(-1, 2)
    at = np.minimum(np.searchsorted(pairs[:, 0], place), max(len(pairs) - 1, 0))
    aligned = (pairs[at, 0] == place) & (quality >= 0) if len(pairs) else np.zeros(len(place), np.bool_)
    probability = (quality[aligned] + 0.5) / 256  # the middle of the interval that an ML value stands for
    return place[aligned], pairs[at[aligned], 1], np.log(probability / (1 - probability))
