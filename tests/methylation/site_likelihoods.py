"""Likelihoods of the sites of one window, by the kernel that scores those of reads."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from f5py.core.motifs import Motif
from f5py.core.noise import Noise
from f5py.methylation._calls_numba import Fit, ReadEvents, Scores, fill_plain
from f5py.methylation._groups_numba import is_site
from f5py.methylation._site_windows_numba import SiteWindows, score_windows
from f5py.methylation.correlated import terms_of
from f5py.pore_model.model import PoreModel


def site_likelihoods(
    window: bytes,
    events: ArrayLike,
    motif: Motif,
    model: PoreModel,
    reverse: bool = False,
    scaling: tuple[float, float, float] = (0.0, 1.0, 1.0),
    events_per_base: float = 2.0,
    noise: Noise | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Score every site in a window, all states of the other sites being equally probable.

    `window` has upper-case bases of the reference's forward strand; `scaling` is shift, scale and var. Returns
    ``ln P(events | s_i = 1)`` and ``ln P(events | s_i = 0)``, sites in ascending order.
    """

    segment = np.frombuffer(window, np.uint8)
    codes = motif.codes(reverse)
    modified = np.array(
        [position + codes.offset for position in range(len(segment)) if is_site(segment, position, codes)], np.int64
    )
    x = np.ascontiguousarray(events, np.float32)
    assert len(modified)
    assert modified[0] >= model.k
    plain = np.empty(len(segment), np.uint8)
    fill_plain(segment, 0, len(segment), codes, reverse, plain)
    methylated = np.empty(len(modified), np.float32)
    unmethylated = np.empty_like(methylated)
    shift, scale, var = map(np.float32, scaling)
    fit = Fit(shift, scale, var, float(events_per_base))
    numbers = np.array([[0], [len(segment)], [0], [len(modified)], [0], [len(x) - 1]], np.int64)
    windows = SiteWindows(plain, modified, *numbers)
    score_windows(
        windows, 1, ReadEvents(x, fit), reverse, model.levels, terms_of(noise), Scores(methylated, unmethylated)
    )
    return methylated, unmethylated
