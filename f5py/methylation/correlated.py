"""The forward algorithm of `f5py.methylation.hmm` with the correlated noise of `f5py.core.noise`.

The states and transitions are the same, and so is the sum over the paths. What goes into a match state has a density
for each kind of transition, as that depends on the event before::

    M(i, j) = stay(i, j) * p_stay * M(i - 1, j) + step(i, j) * p_step * M(i - 1, j - 1)
              + free(i, j) * (P_FROM_BAD * (B(i - 1, j) + B(i - 1, j - 1)) + P_FROM_SKIP * K(i - 1, j - 1))

where free is the density without a residual before it.

Loops use residuals in units in which a normal density is a power of two, ``w = z * sqrt(log2(e) / 2)``, as those of
independent noise do. `Terms` has what is constant in

    stay(i, j) = stay_weight * peak * q((stay_now * w(i, j) + stay_before * w(i - 1, j)) ** 2)
    step(i, j) = step_weight * peak * q((step_now * w(i, j) + step_before * w(i - 1, j - 1)) ** 2)
    free(i, j) = free_weight * peak * q(square * w(i, j) ** 2)

with ``q(v) = 2 ** -v`` and peak the greatest normal density for Gaussian noise, and ``q(v) = (1 + v) ** -4`` and peak
the reciprocal standard deviation in units of w for Student's t.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.hmm import P_FROM_BAD, P_FROM_SKIP
from f5py.core.noise import FREEDOM_LESS_TWO, STUDENT, STUDENT_PEAK, Noise

_W = math.sqrt(0.5 * math.log2(math.e))


class Terms(NamedTuple):
    """A `Noise` as the loops take it."""

    stay_now: float
    stay_before: float
    step_now: float
    step_before: float
    square: float
    stay_weight: float
    step_weight: float
    free_weight: float
    is_student: bool


def terms_of(noise: Noise | None) -> Terms | None:
    """Convert a noise for the loops; None for that of f5c, which has loops of its own."""
    if noise is None or noise.is_independent:
        return None
    is_student = noise.tails == STUDENT
    unit = 1.0 / (math.sqrt(FREEDOM_LESS_TWO) * _W) if is_student else 1.0
    weight = STUDENT_PEAK / _W if is_student else 1.0
    stay, step = (1.0 / math.sqrt(1.0 - rho**2) for rho in (noise.stay, noise.step))
    return Terms(
        stay * unit, -noise.stay * stay * unit, step * unit, -noise.step * step * unit, unit * unit,
        stay * weight, step * weight, weight, is_student,
    )  # fmt: skip


def single_precision(terms: Terms) -> NDArray[np.float32]:
    """Convert the terms for a GPU, rounded as the CPU's lanes round them; float32, shape (9,)."""
    weight = terms.free_weight
    return np.array(
        [*terms[:5], P_FROM_BAD * weight, P_FROM_SKIP * weight, weight, float(terms.is_student)], np.float32
    )
