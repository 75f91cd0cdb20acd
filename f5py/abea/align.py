"""Adaptive banded event alignment (ABEA): events to the k-mers of the read's own bases.

Rows are a read's events, columns the k-mers of its bases as sequenced. Only a band of 100 cells around the likely
path is computed on every anti-diagonal; where the band goes next follows the rule of Suzuki and Kasahara (BMC
Bioinformatics 19:45, 2018): towards the end of the band with the better score. Gamaarachchi et al., BMC
Bioinformatics 21:343, 2020, describe the algorithm as f5c has it.
"""

from __future__ import annotations

import numpy as np

from f5py.core.batch import ReadBatch, ReadStatus, offsets_of
from f5py.core.workers import WorkerPool, longest_first
from f5py.gpu.placement import Aligner
from f5py.pore_model.model import PoreModel

#: A read with this many events per base or more is not aligned at all.
MAX_EVENTS_PER_BASE = 15.0


def start_alignment(batch: ReadBatch, aligner: Aligner, keep_pairs: bool = False) -> None:
    """Begin to align the events of every read to its k-mers.

    Parameters
    ----------
    batch : ReadBatch
        Events, k-mer ranks and scaling are read; the alignment arrays are made, and filled until
        `finish_alignment` returns.
    aligner : Aligner
    keep_pairs : bool
        Fill `aligned_pairs` too.
    """
    lengths = batch.read_length
    n_events = batch.n_events
    with np.errstate(divide="ignore", invalid="ignore"):
        events_per_base = n_events.astype(np.float32) / lengths.astype(np.float32)
    batch.drop(~(events_per_base < MAX_EVENTS_PER_BASE), ReadStatus.NO_ALIGNMENT)
    # Not filled here but by the aligners, in their threads: for a batch of long reads that takes as long as aligning.
    batch.first_event = np.empty(len(batch.bases), np.int32)
    batch.last_event = np.empty(len(batch.bases), np.int32)
    batch.n_pairs = np.zeros(len(batch), np.int64)
    batch.events_per_base = np.zeros(len(batch), np.float64)
    alignable = batch.status == ReadStatus.OK
    for read in np.flatnonzero(~alignable).tolist():
        unaligned = slice(batch.base_offsets[read], batch.base_offsets[read + 1])
        batch.first_event[unaligned] = batch.last_event[unaligned] = -1
    if keep_pairs:
        # A path has at most one pair per event and one per k-mer.
        batch.pair_offsets = offsets_of((lengths + n_events) * alignable)
        batch.aligned_pairs = np.empty((batch.pair_offsets[-1], 2), np.int32)
    aligner.start(batch, longest_first(lengths + n_events, alignable), keep_pairs)


def finish_alignment(batch: ReadBatch, aligner: Aligner) -> None:
    """Wait for the alignment; reads without an acceptable one become `ReadStatus.NO_ALIGNMENT`."""
    aligner.finish(batch)
    batch.drop(batch.n_pairs == 0, ReadStatus.NO_ALIGNMENT)


class CpuAligner:
    """The aligner backend that runs in the worker threads."""

    def __init__(self, model: PoreModel, pool: WorkerPool) -> None:
        self._model = model
        self._pool = pool

    def start(self, batch: ReadBatch, reads: list[int], keep_pairs: bool) -> None:
        """Align `reads`, in this order, and fill their part of the batch's alignment arrays.

        Parameters
        ----------
        batch : ReadBatch
            `first_event`, `last_event`, `n_pairs` and `events_per_base` are filled, and with `keep_pairs`
            `aligned_pairs`. A read without an acceptable alignment keeps ``n_pairs == 0``.
        reads : list of int
        keep_pairs : bool
        """
        from f5py.abea._align_numba import align_read

        model = self._model
        ln_stdv = model.ln_stdv
        no_pairs = np.empty((0, 2), np.int32)

        def align(read: int) -> None:
            first = batch.base_offsets[read]
            end = batch.base_offsets[read + 1] - model.k + 1
            pairs = no_pairs
            if keep_pairs:
                pairs = batch.aligned_pairs[batch.pair_offsets[read] : batch.pair_offsets[read + 1]]
            _, n_pairs, event_span = align_read(
                batch.event_mean[batch.event_offsets[read] : batch.event_offsets[read + 1]],
                batch.kmer_rank[first:end],
                model.level_mean,
                model.level_stdv,
                ln_stdv,
                batch.shift[read],
                batch.scale[read],
                batch.first_event[first:end],
                batch.last_event[first:end],
                pairs,
            )
            beyond = slice(end, batch.base_offsets[read + 1])
            batch.first_event[beyond] = batch.last_event[beyond] = -1
            batch.n_pairs[read] = n_pairs
            batch.events_per_base[read] = event_span / (end - first)

        self._pool.run(align, reads)

    def finish(self, batch: ReadBatch) -> None:
        """Nothing: `start` returns when all is done."""

    def close(self) -> None:
        """Nothing: the pool belongs to the caller."""
