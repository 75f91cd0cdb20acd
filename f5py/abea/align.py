"""Adaptive banded event alignment (ABEA): events to the k-mers of the read's own bases.

Rows are a read's events, columns the k-mers of its bases as sequenced. Only a band of 100 cells around the likely
path is computed on every anti-diagonal; where the band goes next follows the rule of Suzuki and Kasahara (BMC
Bioinformatics 19:45, 2018): towards the end of the band with the better score. Gamaarachchi et al., BMC
Bioinformatics 21:343, 2020, describe the algorithm as f5c has it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from f5py.core.batch import Cause, ReadBatch, ReadStatus


class AlignmentLimits(NamedTuple):
    """Limits on the alignments that are tried and believed; the defaults are f5c's constants."""

    max_events_per_base: float = 15.0  # a read with this many events per base or more is not aligned at all
    min_mean_emission: float = -5.0  # smallest mean log-likelihood of the aligned events
    max_gap: int = 50  # largest number of k-mers in a row without an event of their own


F5C_LIMITS = AlignmentLimits()


def drop_over_segmented(batch: ReadBatch, limits: AlignmentLimits = F5C_LIMITS) -> None:
    """Drop reads with so many events per base that they are not aligned at all."""
    with np.errstate(divide="ignore", invalid="ignore"):
        events_per_base = batch.n_events.astype(np.float32) / batch.read_length.astype(np.float32)
    too_many = ~(events_per_base < np.float32(limits.max_events_per_base))
    batch.drop(too_many, ReadStatus.NO_ALIGNMENT, Cause.MANY_EVENTS)


def drop_unaligned(batch: ReadBatch) -> None:
    """Drop reads that have no acceptable alignment."""
    batch.drop(batch.n_pairs == 0, ReadStatus.NO_ALIGNMENT, batch.verdict)
