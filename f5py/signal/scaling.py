"""Scaling: how a read's current levels relate to the pore model's.

Event means are compared with ``scale * level + shift``. Before the alignment both come from moments over all events
and all k-mers of the read; after it from weighted least squares over the aligned events, which also gives `var`, the
factor of the model's standard deviations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from f5py.core.batch import Cause, ReadBatch, ReadStatus
from f5py.pore_model.model import PoreModel


class QualityLimits(NamedTuple):
    """Limits on the recalibrated reads that are used; the defaults are f5c's constants."""

    min_events: int = 200  # minimum number of events to recalibrate a read with
    max_var: float = 2.5  # reads that are noisier than this after recalibration are dropped
    max_events_per_base: float = 5.0  # reads with more aligned events per base are dropped


def drop_short(batch: ReadBatch, model: PoreModel) -> None:
    """Drop reads that are shorter than a k-mer, or without events: they become `ReadStatus.NO_ALIGNMENT`."""
    is_short = batch.read_length < model.k
    batch.drop(is_short | (batch.n_events < 1), ReadStatus.NO_ALIGNMENT, Cause.TOO_SHORT)


def drop_unfit(batch: ReadBatch, limits: QualityLimits) -> None:
    """Drop reads that are not recalibrated well enough."""
    batch.drop(batch.n_calibration < limits.min_events, ReadStatus.NOT_CALIBRATED, Cause.FEW_EVENTS)
    batch.drop(~(batch.var <= np.float32(limits.max_var)), ReadStatus.NOT_CALIBRATED, Cause.NOISY)
    too_many = batch.events_per_base > limits.max_events_per_base
    batch.drop(too_many, ReadStatus.QC_FAIL, Cause.MANY_ALIGNED_EVENTS)
