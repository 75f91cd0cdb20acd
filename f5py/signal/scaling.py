"""Scaling: how a read's current levels relate to the pore model's.

Event means are compared with ``scale * level + shift``. Before the alignment both come from moments over all events
and all k-mers of the read; after it from weighted least squares over the aligned events, which also gives `var`, the
factor of the model's standard deviations.
"""

from __future__ import annotations

import numpy as np

from f5py.core.batch import ReadBatch, ReadStatus
from f5py.core.kmers import base_codes
from f5py.core.workers import WorkerPool, longest_first
from f5py.pore_model.model import PoreModel

#: Reads noisier than this after recalibration are dropped.
MAX_VAR = 2.5
#: Reads with more events per base than this are dropped.
MAX_EVENTS_PER_BASE = 5.0


def rank_kmers(batch: ReadBatch, model: PoreModel, pool: WorkerPool) -> None:
    """Fill `kmer_rank` from the bases. U counts as T, letters that are no base count as A."""
    from f5py.signal._scaling_numba import fill_ranks

    codes = base_codes()
    batch.kmer_rank = np.zeros(len(batch.bases), np.int32)

    def rank(read: int) -> None:
        first, end = batch.base_offsets[read], batch.base_offsets[read + 1]
        fill_ranks(batch.bases[first:end], model.k, codes, batch.kmer_rank[first:end])

    pool.run(rank, longest_first(batch.read_length, batch.status == ReadStatus.OK))


def estimate_scaling(batch: ReadBatch, model: PoreModel, pool: WorkerPool) -> None:
    """Fill `shift` and `scale` by the method of moments, and `var` with 1.

    Reads shorter than a k-mer or without events become `ReadStatus.NO_ALIGNMENT`.
    """
    from f5py.signal import _scaling_numba

    n_kmers = batch.read_length - model.k + 1
    batch.drop((n_kmers < 1) | (batch.n_events < 1), ReadStatus.NO_ALIGNMENT)
    batch.shift = np.zeros(len(batch), np.float32)
    batch.scale = np.zeros(len(batch), np.float32)
    batch.var = np.ones(len(batch), np.float32)

    def estimate(read: int) -> None:
        batch.shift[read], batch.scale[read] = _scaling_numba.estimate_scaling(
            batch.event_mean[batch.event_offsets[read] : batch.event_offsets[read + 1]],
            batch.kmer_rank[batch.base_offsets[read] : batch.base_offsets[read] + n_kmers[read]],
            model.level_mean,
        )

    pool.run(estimate, longest_first(n_kmers, batch.status == ReadStatus.OK))


def recalibrate(batch: ReadBatch, model: PoreModel, min_events: int, pool: WorkerPool) -> None:
    """Replace `shift`, `scale` and `var` by the least squares fit over the alignment; drop unfit reads.

    Parameters
    ----------
    batch : ReadBatch
        Aligned reads.
    model : PoreModel
    min_events : int
        Reads with fewer usable events are dropped as not calibrated.
    pool : WorkerPool
    """
    from f5py.signal import _scaling_numba

    n_kmers = batch.read_length - model.k + 1
    aligned = batch.status == ReadStatus.OK
    used = np.zeros(len(batch), np.int64)

    def fit(read: int) -> None:
        first = batch.base_offsets[read]
        end = first + n_kmers[read]
        used[read], batch.shift[read], batch.scale[read], batch.var[read] = _scaling_numba.recalibrate(
            batch.event_mean[batch.event_offsets[read] : batch.event_offsets[read + 1]],
            batch.kmer_rank[first:end],
            batch.first_event[first:end],
            model.level_mean,
            model.level_stdv,
        )

    pool.run(fit, longest_first(n_kmers, aligned))
    batch.drop((used < min_events) | ~(batch.var <= MAX_VAR), ReadStatus.NOT_CALIBRATED)
    batch.drop(batch.events_per_base > MAX_EVENTS_PER_BASE, ReadStatus.QC_FAIL)
