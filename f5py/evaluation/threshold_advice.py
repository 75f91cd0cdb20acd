"""Advice on the smallest threshold with few wrong calls.

Only controls show how many calls are wrong. Without them an assumption is needed, and tested as far as possible:

* Two states, if the components fit, lie apart, and agree with the ratios on the share of methylated sites. The greater
  of the two estimates of `f5py.evaluation.mixture` counts.
* One state of nearly all sites, by the ratios. Every call of the other state counts as wrong, an upper bound if all
  sites are alike: ratios of a badly fitting model are too great and underestimate errors.
* Otherwise there is no advice.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from f5py.evaluation.mixture import Mixture, error_by_ratios, fit_mixture, share_by_ratios
from f5py.evaluation.ratios import RatioCounts

#: Candidate thresholds.
CANDIDATES = np.arange(0, 101) / 10
#: Greatest share of the other state in a sample of one state.
_ONE_STATE = 0.05
#: Greatest difference of the methylated shares by components and ratios; in simulations it is at most 0.06.
_GREATEST_DISAGREEMENT = 0.1


class ErrorEstimates:
    """Estimates of the share of wrong calls beyond a threshold.

    `controls` are ``methylated`` and ``unmethylated`` ones, if any; `calibration` is the factor of the ratios in
    probabilities.
    """

    def __init__(self, ratios: RatioCounts, controls: Mapping[str, RatioCounts], calibration: float = 1.0) -> None:
        self.ratios, self.controls, self.calibration = ratios, controls, calibration
        self.mixture = fit_mixture(ratios)
        self.share = share_by_ratios(ratios, calibration)  # methylated share of the sites
        self.problem = _problem(self.mixture, self.share)  # reason why the components do not estimate errors

    @property
    def has_one_state(self) -> bool:
        """Whether by the ratios nearly all sites are of one state, and no components show two."""
        two = self.mixture is not None and self.mixture.problem is None
        return not two and min(self.share, 1 - self.share) <= _ONE_STATE

    def at(self, threshold: float) -> dict[str, float | None]:
        """Estimate the share of wrong calls in every way; None for impossible ones."""
        two = self.mixture if self.problem is None else None
        found: dict[str, float | None] = {
            "by_ratios": error_by_ratios(self.ratios, self.share, threshold, self.calibration),
            "by_components": None if two is None else two.error_rate(threshold),
            "by_other_state": None,
        }
        if self.has_one_state and (passing := self.ratios.passing(threshold)):
            other = self.ratios.methylated if self.share < 0.5 else self.ratios.unmethylated
            found["by_other_state"] = other(threshold) / passing
        for state, control in self.controls.items():
            wrong = control.unmethylated(threshold) if state == "methylated" else control.methylated(threshold)
            found[f"{state}_control"] = wrong / passing if (passing := control.passing(threshold)) else None
        return found

    def basis(self) -> tuple[str | None, list[str], list[str]]:
        """Return the basis of advice, or None; the estimates of which the greatest counts; and reasons."""
        if self.controls:
            names = [f"{state}_control" for state in self.controls]
            reasons = [f"the errors are those of the {' and of the '.join(self.controls)} control"]
            if len(self.controls) == 2:
                return "controls", names, reasons
            reasons.append("the errors at sites of the other state are estimated, as if the ratios were right")
            return "one_control", [*names, "by_ratios"], reasons
        unknown = "without controls nothing shows how many calls are wrong; give --methylated and --unmethylated"
        if self.mixture is None:
            return None, [], [f"there are too few calls: {self.ratios.n:,}, without controls"]
        if self.problem is None:
            low, high = self.mixture.centres
            fit = (
                f"two components, around {low:.1f} ({100 * self.mixture.weight[0]:.0f} % of the calls) and {high:.1f}, "
                f"fit the ratios (difference of the distributions: {self.mixture.misfit:.3f}); the greater of both "
                "estimates counts"
            )
            return "components", ["by_ratios", "by_components"], [fit, unknown]
        if self.mixture.problem is None:
            return None, [], [str(self.problem), unknown]
        means = f"the ratios mean {100 * self.share:.1f} % methylated sites"
        if not self.has_one_state:
            return None, [], [f"{self.problem}; {means}, so that it is not one state either", unknown]
        one, other = ("un", "") if self.share < 0.5 else ("", "un")
        alike = (
            f"{self.problem}, and {means}: nearly all seem to be {one}methylated. Every call that says "
            f"{other}methylated counts as wrong"
        )
        return "one_state", ["by_ratios", "by_other_state"], [alike, unknown]


def _problem(mixture: Mixture | None, share: float) -> str | None:
    if mixture is None:
        return "there are too few calls"
    if mixture.problem is None and abs(mixture.weight[1] - share) > _GREATEST_DISAGREEMENT:
        return (
            f"two components fit the ratios, with {100 * mixture.weight[1]:.0f} % methylated calls, but the ratios "
            f"mean {100 * share:.0f} %: levels of the reads may differ from those of the pore model"
        )
    return mixture.problem


def advise(estimates: ErrorEstimates, goal: float) -> dict[str, Any]:
    """Find the smallest threshold with all estimates up to `goal`, the greatest share of wrong calls.

    It must keep 3 / `goal` calls of each control, or else of the sample: so many, none of them wrong, show with 95 %
    confidence that the share is not greater.
    """
    basis, counted, reasons = estimates.basis()
    advice = {"threshold": None, "share_of_calls": None, "error_rate": None, "basis": basis, "reasons": reasons}
    if basis is None:
        return advice
    least = math.ceil(3 / goal - 1e-9)
    tables = list(estimates.controls.values()) or [estimates.ratios]
    for threshold in CANDIDATES.tolist():
        if min(table.passing(threshold) for table in tables) < least:
            break
        at_threshold = estimates.at(threshold)
        found = [rate for name in counted if (rate := at_threshold[name]) is not None]
        if len(found) == len(counted) and max(found) <= goal:
            kept = estimates.ratios.passing(threshold) / estimates.ratios.n
            return {**advice, "threshold": threshold, "share_of_calls": kept, "error_rate": max(found)}
    reasons.append(f"no threshold up to {CANDIDATES[-1]:g} that keeps {least:,} calls or more has that few errors")
    return advice
