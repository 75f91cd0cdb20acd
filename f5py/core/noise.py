"""The noise of events around the levels of their k-mers: independent, as f5c has it, or correlated.

Of event t in k-mer j of level l and standard deviation s (both those of the pore model, after the read's scaling), the
residual is ``z(j, t) = (x_t - l) / s``. With independent noise an event has the density ``q(z(j, t)) / s`` in the match
state of k-mer j, q being the standard normal density, whatever the events before were.

In real reads residuals of neighbouring events are alike, within a k-mer and from one to the next, and large ones are
more frequent than those of a normal distribution. Taken for independent, they are counted as evidence several times.
With correlated noise the density depends on where the path comes from. If that is a match state i, being j itself
(the path stays) or the k-mer before (it steps), the residual z(i, t - 1) of the event before is known, and with the
correlation rho of a stay or of a step::

    u = (z(j, t) - rho z(i, t - 1)) / sqrt(1 - rho ** 2)
    density = q(u) / (s sqrt(1 - rho ** 2))

After a bad event or a skip, and where the path enters the window, no residual is known; the density is ``q(z(j, t)) /
s`` there. The forward algorithm stays exact, because every transition has one residual before it. q is the standard
normal density, or Student's t with seven degrees of freedom scaled to variance 1, which needs no exponential::

    q(z) = 16 / (5 sqrt(5) pi) * (1 + z ** 2 / 5) ** -4

With Gaussian noise and both correlations 0 the two are the same.
"""

from __future__ import annotations

import math
from typing import NamedTuple

#: Names of the densities q.
GAUSSIAN, STUDENT = "gaussian", "t7"
#: Degrees of freedom less two: the variance of Student's t with seven of them is 7 / 5.
FREEDOM_LESS_TWO = 5.0
#: The greatest density of Student's t with seven degrees of freedom and variance 1.
STUDENT_PEAK = 16.0 / (5.0 * math.sqrt(FREEDOM_LESS_TWO) * math.pi)
#: Correlations beyond make the density of what follows too narrow for single precision.
MOST_CORRELATED = 0.95


class Noise(NamedTuple):
    """Constants of the noise of a chemistry."""

    # stay, step: correlation of the residuals of two successive events in the same k-mer, and in two successive ones
    stay: float
    step: float
    tails: str  # "gaussian" or "t7"

    @property
    def is_independent(self) -> bool:
        """Whether it is the noise that f5c assumes."""
        return self == INDEPENDENT

    @property
    def words(self) -> str:
        """For messages and comments."""
        kind = "Gaussian" if self.tails == GAUSSIAN else "Student's t (7)"
        return f"correlations {self.stay:g} (stay) and {self.step:g} (step), {kind}"

    def check(self) -> Noise:
        """Return it; raise `ValueError` if it is none that can be computed with."""
        if not (abs(self.stay) <= MOST_CORRELATED and abs(self.step) <= MOST_CORRELATED):
            raise ValueError(f"a correlation of noise is not from -{MOST_CORRELATED:g} to {MOST_CORRELATED:g}")
        if self.tails not in (GAUSSIAN, STUDENT):
            raise ValueError(f"tails {self.tails!r} are neither {GAUSSIAN} nor {STUDENT}")
        return self


INDEPENDENT = Noise(0.0, 0.0, GAUSSIAN)
#: By pore, of DNA. The likelihood of unlabelled reads (benchmarks/noise.py) prefers numbers near those of R9.4. Those
#: of R10.4.1 are exploratory: few reads of it were measured, and their likelihood prefers stronger correlations.
OF_PORES = {"r9": Noise(0.5, 0.4, STUDENT), "r10": Noise(0.5, 0.0, GAUSSIAN)}
#: By pore: factors of log-likelihood ratios of correlated noise where probabilities are made of them (the reciprocal of
#: a temperature). benchmarks/calibration.py measures them without labels: a factor is the geometric mean of that of
#: simulated reads and that of decoys in real ones.
CALIBRATION = {"r9": 1.1, "r10": 1.5}
