"""Forward algorithm of `f5py.methylation.hmm` with the correlated noise of `f5py.core.noise`.

States, transitions and the sum over paths are the same. The density in a match state depends on the preceding event, so
each kind of transition has its own::

    M(i, j) = stay(i, j) * p_stay * M(i - 1, j) + step(i, j) * p_step * M(i - 1, j - 1)
              + free(i, j) * (P_FROM_BAD * (B(i - 1, j) + B(i - 1, j - 1)) + P_FROM_SKIP * K(i - 1, j - 1))

where free is the density without a preceding residual.

Loops use residuals ``w = z * sqrt(log2(e) / 2)``, in which a normal density is a power of two, as for independent
noise. `NoiseTerms` has the constants of

    stay(i, j) = stay_weight * peak * q((stay_now * w(i, j) + stay_before * w(i - 1, j)) ** 2)
    step(i, j) = step_weight * peak * q((step_now * w(i, j) + step_before * w(i - 1, j - 1)) ** 2)
    free(i, j) = free_weight * peak * q(square * w(i, j) ** 2)

For Gaussian noise, ``q(v) = 2 ** -v`` and peak is the largest normal density. For Student's t, ``q(v) = (1 + v) ** -4``
and peak is the reciprocal standard deviation in units of w.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.hmm import P_FROM_BAD, P_FROM_SKIP
from f5py.core.noise import FREEDOM_LESS_TWO, STUDENT, STUDENT_PEAK, Noise

_W = math.sqrt(0.5 * math.log2(math.e))


class NoiseTerms(NamedTuple):
    """Constants of a `Noise` for the loops."""

    stay_now: float
    stay_before: float
    step_now: float
    step_before: float
    square: float
    stay_weight: float
    step_weight: float
    free_weight: float
    is_student: bool


def noise_terms(noise: Noise | None) -> NoiseTerms | None:
    """Convert a noise for the loops; None for independent noise, computed by its own loops."""
    if noise is None or noise.is_independent:
        return None
    is_student = noise.tails == STUDENT
    unit = 1.0 / (math.sqrt(FREEDOM_LESS_TWO) * _W) if is_student else 1.0
    weight = STUDENT_PEAK / _W if is_student else 1.0
    stay, step = (1.0 / math.sqrt(1.0 - rho**2) for rho in (noise.stay, noise.step))
    return NoiseTerms(
        stay * unit, -noise.stay * stay * unit, step * unit, -noise.step * step * unit, unit * unit,
        stay * weight, step * weight, weight, is_student,
    )  # fmt: skip


def single_precision(terms: NoiseTerms) -> NDArray[np.float32]:
    """Convert the terms for a GPU, rounded like the CPU's lanes; float32, shape (9,)."""
    weight = terms.free_weight
    return np.array(
        [*terms[:5], P_FROM_BAD * weight, P_FROM_SKIP * weight, weight, float(terms.is_student)], np.float32
    )
