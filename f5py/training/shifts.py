"""Shifts of methylated k-mers from reads of unknown methylation.

Of group i the log-likelihood ratio for shifts s is d_i(s). With the share p of methylated groups, the likelihood of all
groups is, up to a constant, that of a mixture::

    L(s, p) = sum_i ln(p exp(d_i(s)) + 1 - p)

Its maximum over p, less ``1/2 sum_j ((s_j - b_j) / sd_j) ** 2`` for the start b, is maximized by damped scoring
with the outer product of scores. The plain component is fixed, so that the two states cannot be swapped, and L = 0
means: no better than no methylation. The first stage has a shift for each place of the methylated base; in the second
one it may differ between a purine and a pyrimidine before that base.
"""

import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.pore_model.model import Shifts

#: Fewer groups or reads are too few.
LEAST_GROUPS, LEAST_READS = 200, 6
#: Standard deviations of the priors around the start, in pA: of shifts by place, and of those by the base before.
_PRIOR, _PRIOR_BEFORE = 4.0, 2.0
#: Places at which the base before the methylated one counts in the second stage.
_WITH_BASE_BEFORE = slice(4, 8)
#: Step of difference quotients and longest step of a round, in pA.
_DIFFERENCE, _LONGEST_STEP = 0.25, 3.0
_MOST_ROUNDS, _MOST_TRIALS = 25, 6
#: A round that gains less, and moves no shift by so many pA, has settled.
_LEAST_GAIN, _LEAST_MOVE = 0.05, 0.3
_DAMPING, _LEAST_DAMPING = 0.03, 0.001
_SHARE_INFORMATION = 0.001
_FIRST_SHARES, _LEAST_SHARE, _SETTLED_SHARE, _MOST_EM_ROUNDS = (0.05, 0.5, 0.95), 1e-4, 1e-6, 200
#: With fewer methylated groups, or a smaller log-likelihood, there is no evidence of methylation.
_LEAST_EVIDENCE = 25.0
#: Halves disagree by more than both, in pA and in standard errors.
_MOST_DIFFERENCE, _MOST_ERRORS = 3.0, 4.0
#: Shifts of 5-methylcytosine: least cosine with the built-in ones, and greatest size in pA.
_LEAST_COSINE, _MOST_SHIFT = 0.5, 25.0

Ratios = Callable[[Shifts], NDArray[np.float64]]


class ShiftFit(NamedTuple):
    """Maximum-likelihood shifts of some groups."""

    shifts: NDArray[np.float64]  # shape (2, k): as `Shifts` has them
    errors: NDArray[np.float64]  # shape (2, k): standard errors; 0 for shifts that are not fitted
    share: float
    likelihood: float
    rounds: int
    settled: bool


class HeldOutGain(NamedTuple):
    """Gain in log-likelihood of groups by shifts fitted to the other half of the reads."""

    sum: float
    se: float
    per_group: float

    @property
    def is_clear(self) -> bool:
        """Whether it exceeds two standard errors."""
        return self.sum > 2 * self.se


class ShiftResult(NamedTuple):
    """Fitted shifts with their verdict."""

    fit: ShiftFit  # of the stage that is taken
    first_stage: ShiftFit
    halves: tuple[ShiftFit, ShiftFit]  # of the first stage
    gain: HeldOutGain  # of the stage that is taken against the start
    second_gain: HeldOutGain  # of the second stage against the first one
    has_second_stage: bool
    share_with_start: float
    likelihood_of_start: float
    verdict: str  # "fitted", "nothing to gain", or the name of a problem
    problem: str | None  # reason to refuse the shifts


def best_share(ratios: NDArray[np.float64]) -> tuple[float, float]:
    """Return the most likely share of methylated groups, and its likelihood."""
    found = []
    for share in _FIRST_SHARES:
        for _ in range(_MOST_EM_ROUNDS):
            before = share
            new = float(_responsibilities(ratios, share).mean())
            share = min(max(new, _LEAST_SHARE), 1 - _LEAST_SHARE)
            if abs(share - before) < _SETTLED_SHARE:
                break
        found.append((float(_mixture(ratios, share).sum()), share))
    likelihood, share = max(found)
    return share, likelihood


def _mixture(ratios: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Log-likelihood of each group against the plain one."""
    return np.logaddexp(np.log(share) + ratios, np.log1p(-share))


def _responsibilities(ratios: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Probability that each group is methylated."""
    return np.exp(np.log(share) + ratios - _mixture(ratios, share))


def fitted(
    ratios_of: Ratios, first: NDArray[np.float64], start: NDArray[np.float64], free: NDArray[np.bool_]
) -> ShiftFit:
    """Maximize the penalized likelihood from `first` on, by the `free` shifts, with priors around `start`."""
    sd = np.repeat([[_PRIOR], [_PRIOR_BEFORE]], start.shape[1], axis=1)[free]

    def at(shifts: NDArray[np.float64]) -> tuple[NDArray[np.float64], float, float]:
        """Return ratios, best share and value."""
        ratios = ratios_of(as_shifts(shifts))
        share, likelihood = best_share(ratios)
        return ratios, share, likelihood - 0.5 * float((((shifts - start)[free] / sd) ** 2).sum())

    def slopes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return gradient and information, by the free shifts and the share."""
        weights = _responsibilities(ratios, share)
        scores = [weights - share]
        for place in np.argwhere(free)[::-1]:
            moved = shifts.copy()
            moved[tuple(place)] += _DIFFERENCE
            scores.insert(0, weights * (ratios_of(as_shifts(moved)) - ratios) / _DIFFERENCE)
        # one number after the other: a library of matrices would add in an order of its own
        summed = np.array([[float((a * b).sum()) for b in scores] for a in scores])
        gradient = np.array([float(score.sum()) for score in scores])
        gradient[:-1] -= (shifts - start)[free] / sd / sd
        return gradient, summed + np.diag([*(sd**-2), _SHARE_INFORMATION])

    shifts, damping, calm, settled = first.copy(), _DAMPING, 0, False
    ratios, share, value = at(shifts)
    rounds = 0
    while rounds < _MOST_ROUNDS and not settled:
        rounds += 1
        gradient, information = slopes()
        for _ in range(1 + _MOST_TRIALS):
            step = np.linalg.solve(information + damping * np.diag(np.diag(information)), gradient)[:-1]
            step *= min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), 1e-9))
            trial = shifts.copy()
            trial[free] += step
            trial_ratios, trial_share, trial_value = at(trial)
            if trial_value > value:
                break
            damping *= 6
        else:
            settled = True
            break
        damping = max(damping / 5, _LEAST_DAMPING)
        is_calm = trial_value - value < _LEAST_GAIN and float(np.abs(step).max()) < _LEAST_MOVE
        calm = calm + 1 if is_calm else 0
        settled = calm == 2
        shifts, ratios, share, value = trial, trial_ratios, trial_share, trial_value
    _, information = slopes()
    errors = np.zeros_like(shifts)
    errors[free] = np.sqrt(np.diag(np.linalg.inv(information))[:-1])
    return ShiftFit(shifts, errors, share, best_share(ratios)[1], rounds, settled)


def as_shifts(shifts: NDArray[np.float64]) -> Shifts:
    """Convert an array of shape (2, k)."""
    return Shifts(tuple(shifts[0].tolist()), tuple(shifts[1].tolist()))


def halves_of(reads: Sequence[str]) -> NDArray[np.bool_]:
    """Return the mask of one half of the groups by the names of their `reads`."""
    ordered = sorted(set(reads), key=lambda name: (zlib.crc32(name.encode("utf-8", "surrogateescape")), name))
    half = set(ordered[::2])
    return np.array([name in half for name in reads], np.bool_)


def fit_shifts(
    likelihoods_of: Callable[[NDArray[np.int64]], Ratios], reads: Sequence[str], start: Shifts
) -> ShiftResult:
    """Fit shifts in both stages, and check them."""
    b = np.array(start)
    free = np.zeros(b.shape, np.bool_)
    free[0] = True
    everything, is_first = np.arange(len(reads)), halves_of(reads)
    parts = [np.flatnonzero(is_first), np.flatnonzero(~is_first)]
    ratios_of, of_halves = likelihoods_of(everything), [likelihoods_of(part) for part in parts]
    first_stage = fitted(ratios_of, b, b, free)
    halves = [fitted(one, b, b, free) for one in of_halves]

    def held_out_gain(shifts: list[NDArray[np.float64]], against: list[NDArray[np.float64]]) -> HeldOutGain:
        """Compute the gain of groups by the shifts of the other half over alternatives from that half."""
        by_read: dict[str, float] = dict.fromkeys(reads, 0.0)
        for here, there in ((0, 1), (1, 0)):
            new, old = (of_halves[here](as_shifts(one[there])) for one in (shifts, against))
            gains = _mixture(new, best_share(new)[0]) - _mixture(old, best_share(old)[0])
            for group, gain in zip(parts[here].tolist(), gains.tolist(), strict=True):
                by_read[reads[group]] += gain
        sums = np.array(list(by_read.values()))
        total = float(sums.sum())
        return HeldOutGain(total, float(np.sqrt(len(sums)) * sums.std(ddof=1)), total / len(reads))

    share_with_start, likelihood_of_start = best_share(ratios_of(start))
    free[1, _WITH_BASE_BEFORE] = True
    second_halves = [fitted(one, half.shifts, b, free) for one, half in zip(of_halves, halves, strict=True)]
    second_gain = held_out_gain([half.shifts for half in second_halves], [half.shifts for half in halves])
    fit = fitted(ratios_of, first_stage.shifts, b, free) if second_gain.is_clear else first_stage
    taken = second_halves if second_gain.is_clear else halves
    gain = held_out_gain([half.shifts for half in taken], [b, b])
    verdict, problem = _judged(first_stage, (halves[0], halves[1]), gain, likelihood_of_start, len(reads), b)
    if verdict == "nothing to gain":
        fit = first_stage._replace(shifts=b, share=share_with_start, likelihood=likelihood_of_start)
    return ShiftResult(
        fit, first_stage, (halves[0], halves[1]), gain, second_gain,
        second_gain.is_clear and verdict != "nothing to gain", share_with_start, likelihood_of_start, verdict, problem,
    )  # fmt: skip


def _judged(
    fit: ShiftFit, halves: tuple[ShiftFit, ShiftFit], gain: HeldOutGain, likelihood_of_start: float, n: int,
    start: NDArray[np.float64],
) -> tuple[str, str | None]:  # fmt: skip
    """Return the verdict on the first stage, and the reason to refuse it."""
    if n * fit.share < _LEAST_EVIDENCE or fit.likelihood < _LEAST_EVIDENCE:
        return "nothing methylated", (
            f"no evidence that anything is methylated (share about {fit.share:.3f}, log-likelihood "
            f"{fit.likelihood:.1f}), as in species without this methylation and in amplified DNA: the built-in model "
            "stays as it is"
        )
    shifts = fit.shifts[0]
    greatest = np.argsort(-np.abs(shifts), kind="stable")[:2]
    difference = np.abs(halves[0].shifts[0] - halves[1].shifts[0])[greatest]
    errors = np.hypot(halves[0].errors[0], halves[1].errors[0])[greatest]
    differ = bool(((difference > _MOST_DIFFERENCE) & (difference > _MOST_ERRORS * errors)).any())
    if not gain.is_clear and likelihood_of_start >= _LEAST_EVIDENCE:
        return "nothing to gain", None
    if not gain.is_clear or differ:
        return "halves disagree", "the two halves of the reads do not agree; give more reads"
    cosine = float(shifts @ start[0]) / max(float(np.linalg.norm(shifts) * np.linalg.norm(start[0])), 1e-9)
    if cosine < _LEAST_COSINE or float(np.abs(shifts).max()) > _MOST_SHIFT:
        return "not 5-methylcytosine", (
            "the shifts do not look like 5-methylcytosine; is it another modification, the wrong motif, or are "
            "the reads damaged?"
        )
    return "fitted", None
