"""Inputs of the alignment kernels: definitions for the compiler, the pore model, penalties."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from f5py.abea._align_numba import BANDWIDTH, LN_INVERSE_SQRT_2PI, LP_SKIP, SQRT_HALF
from f5py.abea.align import F5C_LIMITS, AlignmentLimits
from f5py.pore_model.model import PoreModel


def macros(bandwidth: int = BANDWIDTH, limits: AlignmentLimits = F5C_LIMITS) -> tuple[str, ...]:
    """Definitions for the compiler: width of the band, and limits that are not the sources' own."""
    defined = [f"-DW={bandwidth}"]
    if limits.min_mean_emission != F5C_LIMITS.min_mean_emission:
        defined.append(f"-DMIN_MEAN_EMISSION=({limits.min_mean_emission!r})")
    if limits.max_gap != F5C_LIMITS.max_gap:
        defined.append(f"-DMAX_GAP={limits.max_gap}")
    return tuple(defined)


def model_table(model: PoreModel) -> NDArray[np.float32]:
    """Return level, sqrt(1/2) / stdv, ln(1 / (stdv sqrt(2 pi))) and stdv of each rank for the kernels; (n, 4)."""
    table = np.zeros((len(model.level_mean), 4), np.float32)
    table[:, 0] = model.level_mean
    table[:, 1] = SQRT_HALF / model.level_stdv
    table[:, 2] = LN_INVERSE_SQRT_2PI - model.ln_stdv
    table[:, 3] = model.level_stdv
    return table


def transition_penalties(
    n_events: NDArray[np.int64], n_kmers: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Each read's log-probabilities of a step to the next k-mer and of staying: lp_step, lp_stay of the core kernel."""
    lp_stay = np.log(1.0 - 1.0 / (n_events / n_kmers + 1.0))
    lp_step = np.log(1.0 - math.exp(LP_SKIP) - np.exp(lp_stay))
    return lp_step.astype(np.float32), lp_stay.astype(np.float32)
