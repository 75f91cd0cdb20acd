"""Scaling: how a read's current levels relate to the pore model's.

Event means are compared with ``scale * level + shift``. Before the alignment both come from moments over all events
and all k-mers of the read; after it from weighted least squares over the aligned events, which also gives `var`, the
factor of the model's standard deviations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import Cause, ReadBatch, ReadStatus
from f5py.core.kmers import base_codes
from f5py.pore_model.model import PoreModel
from f5py.threads.pool import CallingThread, WorkerPool, longest_first, threads_for

#: So many bases are done by the thread that needs them before those of the pool are done with what they are at.
_FEW_BASES = 1 << 17


class QualityLimits(NamedTuple):
    """Limits on the recalibrated reads that are used; the defaults are f5c's constants."""

    min_events: int = 200  # minimum number of events to recalibrate a read with
    max_var: float = 2.5  # reads that are noisier than this after recalibration are dropped
    max_events_per_base: float = 5.0  # reads with more aligned events per base are dropped


def rank_kmers(batch: ReadBatch, model: PoreModel, pool: WorkerPool, here: NDArray[np.bool_] | bool = True) -> float:
    """Fill `kmer_rank` from the bases. U counts as T, letters that are no base count as A.

    Parameters
    ----------
    here : bool, shape (n,), optional
        Only these reads, here as in the other functions: the others are computed elsewhere.

    Returns
    -------
    float
        Seconds that all threads together have worked; so do the other functions here.
    """
    from f5py.signal._scaling_numba import rank_all

    # no memory is given to, nor cleared for, what is computed elsewhere
    batch.base_map = batch.base_map._replace(kmer_rank=np.empty(len(batch.bases), np.int32))
    reads = longest_first(batch.read_length, (batch.status == ReadStatus.OK) & here)
    return _threads(batch, reads, pool).run(
        rank_all,
        reads,
        batch.bases,
        batch.base_offsets,
        model.k,
        base_codes(),
        batch.base_map.kmer_rank,
        order=batch.number,
    )


def _threads(batch: ReadBatch, reads: NDArray[np.int64], pool: WorkerPool) -> WorkerPool | CallingThread:
    n_bases = int(batch.read_length[reads].sum())
    return threads_for(pool, n_bases, _FEW_BASES) if n_bases else pool


def drop_short(batch: ReadBatch, model: PoreModel) -> None:
    """Drop reads that are shorter than a k-mer, or without events: they become `ReadStatus.NO_ALIGNMENT`."""
    is_short = batch.read_length < model.k
    batch.drop(is_short | (batch.n_events < 1), ReadStatus.NO_ALIGNMENT, Cause.TOO_SHORT)


def estimate_scaling(
    batch: ReadBatch, model: PoreModel, pool: WorkerPool, here: NDArray[np.bool_] | bool = True
) -> float:
    """Fill `shift` and `scale` by the method of moments, and `var` with 1; see `drop_short`."""
    from f5py.signal._scaling_numba import estimate_all

    n_kmers = batch.read_length - model.k + 1
    batch.shift = np.zeros(len(batch), np.float32)
    batch.scale = np.zeros(len(batch), np.float32)
    batch.var = np.ones(len(batch), np.float32)
    reads = longest_first(n_kmers, (batch.status == ReadStatus.OK) & here)
    return _threads(batch, reads, pool).run(
        estimate_all, reads, batch.events, batch.base_offsets, n_kmers, batch.base_map.kmer_rank, model.level_mean,
        batch.scaling, order=batch.number,
    )  # fmt: skip


def recalibrate(batch: ReadBatch, model: PoreModel, pool: WorkerPool, here: NDArray[np.bool_] | bool = True) -> float:
    """Replace `shift`, `scale` and `var` of aligned reads by the least squares fit, and fill `n_calibration`."""
    from f5py.signal._scaling_numba import recalibrate_all

    n_kmers = batch.read_length - model.k + 1
    batch.n_calibration = np.zeros(len(batch), np.int64)
    reads = longest_first(n_kmers, (batch.status == ReadStatus.OK) & here)
    return _threads(batch, reads, pool).run(
        recalibrate_all, reads, batch.events, batch.base_map, n_kmers, model.levels, batch.scaling,
         batch.n_calibration, order=batch.number,
    )  # fmt: skip


def drop_unfit(batch: ReadBatch, limits: QualityLimits) -> None:
    """Drop reads that are not recalibrated well enough."""
    batch.drop(batch.n_calibration < limits.min_events, ReadStatus.NOT_CALIBRATED, Cause.FEW_EVENTS)
    batch.drop(~(batch.var <= np.float32(limits.max_var)), ReadStatus.NOT_CALIBRATED, Cause.NOISY)
    too_many = batch.events_per_base > limits.max_events_per_base
    batch.drop(too_many, ReadStatus.QC_FAIL, Cause.MANY_ALIGNED_EVENTS)
