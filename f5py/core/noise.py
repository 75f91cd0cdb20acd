"""Noise of events around the levels of their k-mers: independent, as in f5c, or correlated.

For event t in k-mer j with level l and standard deviation s (of the scaled pore model), the residual is ``z(j, t) =
(x_t - l) / s``. With independent noise the event has density ``q(z(j, t)) / s`` in the match state of k-mer j, with the
standard normal density q.

In real reads residuals of neighboring events are correlated, within a k-mer and between successive ones, and have heavy
tails. Treated as independent they count as evidence several times. With correlated noise the density depends on the
preceding state. If that is a match state i, equal to j (stay) or the preceding k-mer (step), the preceding residual
z(i, t - 1) is known, and with the correlation rho of a stay or step::

    u = (z(j, t) - rho z(i, t - 1)) / sqrt(1 - rho ** 2)
    density = q(u) / (s sqrt(1 - rho ** 2))

After a bad event or a skip, and at the start of the window, no residual is known and the density is ``q(z(j, t)) / s``.
The forward algorithm stays exact, because every transition has one preceding residual. q is the standard normal
density, or Student's t with seven degrees of freedom scaled to variance 1, which needs no exponential::

    q(z) = 16 / (5 sqrt(5) pi) * (1 + z ** 2 / 5) ** -4

Gaussian noise with both correlations 0 is independent noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

#: Names of the densities q.
GAUSSIAN, STUDENT = "gaussian", "t7"
#: Degrees of freedom less two: the variance of Student's t with seven of them is 7 / 5.
FREEDOM_LESS_TWO = 5.0
#: Peak of the scaled Student density.
STUDENT_PEAK = 16.0 / (5.0 * math.sqrt(FREEDOM_LESS_TWO) * math.pi)
#: Larger correlations exceed single precision.
MOST_CORRELATED = 0.95


class Noise(NamedTuple):
    """Noise constants of a chemistry."""

    stay: float  # correlation of residuals of successive events in the same k-mer
    step: float  # and in successive k-mers
    tails: str  # "gaussian" or "t7"

    @property
    def is_independent(self) -> bool:
        return self == INDEPENDENT

    @property
    def words(self) -> str:
        """Description for messages and comments."""
        kind = "Gaussian" if self.tails == GAUSSIAN else "Student's t (7)"
        return f"correlations {self.stay:g} (stay) and {self.step:g} (step), {kind}"

    def check(self) -> Noise:
        """Return it; raise `ValueError` if it is out of range."""
        if not (abs(self.stay) <= MOST_CORRELATED and abs(self.step) <= MOST_CORRELATED):
            raise ValueError(f"a correlation of noise is not from -{MOST_CORRELATED:g} to {MOST_CORRELATED:g}")
        if self.tails not in (GAUSSIAN, STUDENT):
            raise ValueError(f"tails {self.tails!r} are neither {GAUSSIAN} nor {STUDENT}")
        return self


INDEPENDENT = Noise(0.0, 0.0, GAUSSIAN)
#: Noise of DNA by pore, near the maximum likelihood of unlabeled reads for R9.4 (benchmarks/noise.py). R10.4.1 is
#: exploratory: its few measured reads prefer stronger correlations.
OF_PORES = {"r9": Noise(0.5, 0.4, STUDENT), "r10": Noise(0.5, 0.0, GAUSSIAN)}
#: Calibration factors (inverse temperatures) of log-likelihood ratios with correlated noise, by pore: the geometric
#: mean of those of simulated reads and of decoys in real ones (benchmarks/calibration.py).
CALIBRATION = {"r9": 1.1, "r10": 1.5}
