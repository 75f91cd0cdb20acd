"""Scaling of the pore model to each read.

Event means are compared with ``scale * level + shift``. Before the alignment both come from moments over all events and
k-mers of the read. After it they come from weighted least squares over the aligned events, with `var`, the factor of
the model's standard deviations.
"""

import math
from typing import NamedTuple

import numpy as np

from f5py.core.batch import Cause, ReadBatch, ReadStatus
from f5py.jit.kernel import exact_inner
from f5py.pore_model.model import PoreModel


class QualityLimits(NamedTuple):
    """Limits on the recalibrated reads that are used; the defaults are f5c's constants."""

    min_events: int = 200  # fewest events to recalibrate a read with
    max_var: float = 2.5  # of a read after recalibration
    max_events_per_base: float = 5.0  # aligned events


def drop_short(batch: ReadBatch, model: PoreModel) -> None:
    """Drop reads shorter than a k-mer or without events as `ReadStatus.NO_ALIGNMENT`."""
    is_short = batch.read_length < model.k
    batch.drop(is_short | (batch.n_events < 1), ReadStatus.NO_ALIGNMENT, Cause.TOO_SHORT)


def drop_unfit(batch: ReadBatch, limits: QualityLimits) -> None:
    """Drop reads beyond the limits after recalibration."""
    batch.drop(batch.n_calibration < limits.min_events, ReadStatus.NOT_CALIBRATED, Cause.FEW_EVENTS)
    batch.drop(~(batch.var <= np.float32(limits.max_var)), ReadStatus.NOT_CALIBRATED, Cause.NOISY)
    too_many = batch.events_per_base > limits.max_events_per_base
    batch.drop(too_many, ReadStatus.QC_FAIL, Cause.MANY_ALIGNED_EVENTS)


@exact_inner
def estimate_scaling(event_mean, kmer_rank, level_mean):
    """Estimate shift and scale (float32) of one read by the method of moments."""
    n_events = event_mean.shape[0]
    n_kmers = kmer_rank.shape[0]
    level_sum = 0.0
    level_square_sum = 0.0
    for j in range(n_kmers):
        level = np.float64(level_mean[kmer_rank[j]])
        level_sum += level
        level_square_sum += level * level
    event_sum = 0.0
    for e in range(n_events):
        event_sum += np.float64(event_mean[e])
    shift = event_sum / n_events - level_sum / n_kmers
    centred_square_sum = 0.0
    for e in range(n_events):
        centred = np.float64(event_mean[e]) - shift
        centred_square_sum += centred * centred
    scale = (centred_square_sum / n_events) / (level_square_sum / n_kmers)
    return np.float32(shift), np.float32(scale)


@exact_inner
def recalibrate(event_mean, kmer_rank, first_event, level_mean, level_stdv):
    """Fit one read's event means to the levels of their k-mers by weighted least squares.

    Returns the number of events used, and shift, scale and var as float32. An event is used if its k-mer differs from
    that of the previous event.
    """
    chosen = np.empty(kmer_rank.shape[0], np.int64)
    used = 0
    previous_rank = -1
    for j in range(kmer_rank.shape[0]):
        # A k-mer's later events follow one of the same k-mer.
        if first_event[j] >= 0:
            if kmer_rank[j] != previous_rank:
                chosen[used] = j
                used += 1
            previous_rank = kmer_rank[j]

    weight_sum = 0.0
    level_sum = 0.0
    level_square_sum = 0.0
    event_sum = 0.0
    product_sum = 0.0
    for i in range(used):
        rank = kmer_rank[chosen[i]]
        level = np.float64(level_mean[rank])
        stdv = np.float64(level_stdv[rank])
        weight = 1.0 / (stdv * stdv)
        x = np.float64(event_mean[first_event[chosen[i]]])
        weight_sum += weight
        level_sum += weight * level
        level_square_sum += weight * level * level
        event_sum += weight * x
        product_sum += weight * level * x
    determinant = weight_sum * level_square_sum - level_sum * level_sum
    if used == 0 or determinant == 0.0:
        return 0, np.float32(0.0), np.float32(0.0), np.float32(0.0)
    shift = (level_square_sum * event_sum - level_sum * product_sum) / determinant
    scale = (weight_sum * product_sum - level_sum * event_sum) / determinant

    residual_sum = 0.0
    for i in range(used):
        rank = kmer_rank[chosen[i]]
        residual = np.float64(event_mean[first_event[chosen[i]]]) - shift - scale * np.float64(level_mean[rank])
        residual /= np.float64(level_stdv[rank])
        residual_sum += residual * residual
    return used, np.float32(shift), np.float32(scale), np.float32(math.sqrt(residual_sum / used))


@exact_inner
def fill_ranks(bases, k, codes, ranks):
    """Fill `ranks` (int32) with a read's k-mers over the alphabet ACGT, by the `codes` of letters."""
    n_bases = bases.shape[0]
    kept = (1 << (2 * k)) - 1
    rank = 0
    for i in range(n_bases):
        rank = ((rank << 2) | codes[bases[i]]) & kept
        if i >= k - 1:
            ranks[i - k + 1] = rank
