"""Adaptive banded event alignment (ABEA): events to the k-mers of the read's own bases.

Rows are a read's events, columns the k-mers of its bases as sequenced. Only a band of 100 cells around the likely
path is computed on every anti-diagonal; where the band goes next follows the rule of Suzuki and Kasahara (BMC
Bioinformatics 19:45, 2018): towards the end of the band with the better score. Gamaarachchi et al., BMC
Bioinformatics 21:343, 2020, describe the algorithm as f5c has it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import Cause, ReadBatch, ReadStatus
from f5py.core.offsets import elements_of, offsets_of
from f5py.pore_model.model import PoreModel
from f5py.threads.pool import WorkerPool, longest_first


class AlignmentLimits(NamedTuple):
    """Limits on the alignments that are tried and believed; the defaults are f5c's constants."""

    max_events_per_base: float = 15.0  # a read with this many events per base or more is not aligned at all
    min_mean_emission: float = -5.0  # smallest mean log-likelihood of the aligned events
    max_gap: int = 50  # largest number of k-mers in a row without an event of their own


F5C_LIMITS = AlignmentLimits()


def align(
    batch: ReadBatch,
    model: PoreModel,
    pool: WorkerPool,
    limits: AlignmentLimits = F5C_LIMITS,
    keep_pairs: bool = False,
    here: NDArray[np.bool_] | bool = True,
) -> float:
    """Align the events of every read to its k-mers; return the seconds that all CPU threads together have worked.

    `base_map`, `n_pairs`, `events_per_base` and `verdict` are filled, and with `keep_pairs`
    `aligned_pairs`. A read without an acceptable alignment keeps ``n_pairs == 0``; see `drop_unaligned`.

    Parameters
    ----------
    batch : ReadBatch
        Events, k-mer ranks and scaling are read.
    here : bool, shape (n,), optional
        Only these reads; there is room for the others, which are computed elsewhere.
    """
    from f5py.abea._align_numba import Found, align_all

    lengths = batch.read_length
    n_events = batch.n_events
    # Not filled here but by the aligners, in their threads: for a batch of long reads that takes as long as aligning.
    first_event, last_event = np.empty(len(batch.bases), np.int32), np.empty(len(batch.bases), np.int32)
    batch.base_map = batch.base_map._replace(first_event=first_event, last_event=last_event)
    batch.n_pairs = np.zeros(len(batch), np.int64)
    batch.events_per_base = np.zeros(len(batch), np.float64)
    batch.verdict = np.full(len(batch), Cause.NOT_SPANNING, np.uint8)
    alignable = batch.status == ReadStatus.OK
    if not alignable.all():
        unaligned = elements_of(batch.base_offsets[:-1][~alignable], lengths[~alignable])
        first_event[unaligned] = last_event[unaligned] = -1
    pair_offsets = np.zeros(len(batch) + 1, np.int64)
    if keep_pairs:
        # A path has at most one pair per event and one per k-mer.
        pair_offsets = batch.pair_offsets = offsets_of((lengths + n_events) * alignable)
        batch.aligned_pairs = np.empty((batch.pair_offsets[-1], 2), np.int32)
    return pool.run(
        align_all, longest_first(lengths + n_events, alignable & here), batch.events, batch.base_map, model.levels,
        batch.scaling, Found(batch.aligned_pairs, pair_offsets, batch.n_pairs, batch.events_per_base, batch.verdict),
        limits, order=batch.number,
    )  # fmt: skip


def drop_over_segmented(batch: ReadBatch, limits: AlignmentLimits = F5C_LIMITS) -> None:
    """Drop reads with so many events per base that they are not aligned at all."""
    with np.errstate(divide="ignore", invalid="ignore"):
        events_per_base = batch.n_events.astype(np.float32) / batch.read_length.astype(np.float32)
    too_many = ~(events_per_base < np.float32(limits.max_events_per_base))
    batch.drop(too_many, ReadStatus.NO_ALIGNMENT, Cause.MANY_EVENTS)


def drop_unaligned(batch: ReadBatch) -> None:
    """Drop reads that have no acceptable alignment."""
    batch.drop(batch.n_pairs == 0, ReadStatus.NO_ALIGNMENT, batch.verdict)
