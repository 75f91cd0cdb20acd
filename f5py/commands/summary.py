"""What calls have in them, and which threshold they need: what ``f5py summary`` does."""

from __future__ import annotations

from typing import Any

import numpy as np

from f5py.commands.meth_freq import chosen_motif
from f5py.errors import InputFileError
from f5py.evaluation.call_table import read_calls
from f5py.evaluation.mixture import Mixture, error_by_ratios, fit_mixture, share_by_ratios
from f5py.evaluation.ratios import THRESHOLDS, RatioCounts
from f5py.evaluation.summary import N_READ_BINS, WANTED, CallSummary
from f5py.io.bytes.byte_input import check_read_once, shown_name, size_of
from f5py.messages import console
from f5py.messages.progress import progress
from f5py.messages.strict import obeys_strict
from f5py.options.table_commands import SummaryOptions
from f5py.reports.evaluation_report import check_reports, write_reports
from f5py.reports.summary_report import charts_of, text_of

#: Advice is one of these.
_CANDIDATES = np.arange(0, 101) / 10
_EDGES = np.arange(-20, 21, dtype=np.float64)


@obeys_strict
def run(options: SummaryOptions) -> dict[str, Any]:
    """Read the tables and write what they have in them.

    Returns
    -------
    dict
        What the JSON report has.

    Raises
    ------
    F5pyError
        For anything wrong with the options, input or output.
    """
    paths = list(options.tables) or ["-"]
    inputs = [*paths, *options.methylated, *options.unmethylated]
    check_read_once(inputs)
    check_reports(options)
    motif = chosen_motif(options)
    with progress("bytes", size_of(inputs)) as bar:
        summary = CallSummary(motif, options.threshold)
        for batch in read_calls(paths, WANTED, bar.advance, motif.name):
            summary.add(batch)
        summary.finish()
        controls = {}
        for state, tables in (("methylated", options.methylated), ("unmethylated", options.unmethylated)):
            if tables:
                controls[state] = RatioCounts()
                for batch in read_calls(tables, ["log_lik_ratio"], bar.advance, motif.name):
                    controls[state].add(batch["log_lik_ratio"].to_numpy(zero_copy_only=False))
    if not summary.ratios.n:
        raise InputFileError(f"{shown_name(paths[0])}: has no calls; nothing can be said of them")
    data = _data(summary, controls, options)
    title = f"Calls of {', '.join(map(shown_name, paths))}"
    write_reports(options, title, text_of(data), data, charts_of(data))
    if options.output != "-":
        console.result("summary", f"{summary.ratios.n:,} calls; written: {options.output}")
    return data


def _data(summary: CallSummary, controls: dict[str, RatioCounts], options: SummaryOptions) -> dict[str, Any]:
    ratios = summary.ratios
    mixture = fit_mixture(ratios)
    share = share_by_ratios(ratios)

    def rates(threshold: float) -> dict[str, float | None]:
        """Estimates of the share of wrong calls."""
        found: dict[str, float | None] = {"by_ratios": error_by_ratios(ratios, share, threshold)}
        found["by_components"] = None if mixture is None or mixture.problem else mixture.error_rate(threshold)
        for state, control in controls.items():
            wrong = control.unmethylated(threshold) if state == "methylated" else control.methylated(threshold)
            found[f"{state}_control"] = wrong / passing if (passing := control.passing(threshold)) else None
        return found

    table = []
    for threshold in THRESHOLDS:
        methylated, passing = ratios.methylated(threshold), ratios.passing(threshold)
        table.append(
            {
                "threshold": threshold,
                "calls": passing,
                "share_of_calls": passing / ratios.n,
                "methylated": methylated / passing if passing else None,
                "errors": rates(threshold),
            }
        )
    passing = ratios.passing(options.threshold)
    return {
        "calls": ratios.n,
        "undefined_ratios": ratios.n_undefined,
        "sites": summary.n_sites,
        "reads": summary.n_reads,
        "threshold": options.threshold,
        "calls_beyond": passing,
        "methylated": ratios.methylated(options.threshold) / passing if passing else None,
        "thresholds": table,
        "methylated_share_by_ratios": share,
        "components": _components(mixture),
        "advice": _advice(ratios, mixture, rates, controls, options.error_rate),
        "ratios": {"from": _EDGES[:-1].tolist(), "calls": ratios.histogram(_EDGES).tolist()},
        "groups": [
            {"sites": i + 1, "calls": int(n), "beyond": int(beyond), "methylated": int(methylated)}
            for i, (n, beyond, methylated) in enumerate(summary.by_sites.tolist())
        ],
        "read_methylation": {
            "reads": summary.n_fractions,
            "from": (np.arange(N_READ_BINS) / N_READ_BINS).tolist(),
            "count": summary.read_fractions.tolist(),
        },
        "contexts": {
            name: {
                "calls": int(n), "beyond": int(beyond), "methylated": int(methylated), "mean_ratio": round(total / n, 3)
            }
            for name, (n, beyond, methylated, total) in sorted(summary.contexts.items())
        },
    }  # fmt: skip


def _components(mixture: Mixture | None) -> dict[str, Any] | None:
    if mixture is None:
        return None
    return {
        "weight": list(mixture.weight), "centre": list(mixture.centres), "separation": mixture.separation,
        "misfit": mixture.misfit, "problem": mixture.problem,
    }  # fmt: skip


def _advice(
    ratios: RatioCounts, mixture: Mixture | None, rates: Any, controls: dict[str, RatioCounts], goal: float
) -> dict[str, Any]:
    """The smallest threshold at which all estimates that count are at most the goal, and why."""
    none: dict[str, Any] = {"threshold": None, "share_of_calls": None, "error_rate": None}
    if mixture is None and not controls:
        return {**none, "reasons": [f"there are too few calls: {ratios.n:,}, without controls"]}
    reasons = []
    if controls:
        counted = [f"{state}_control" for state in controls]
        reasons.append(f"the errors are those of the {' and of the '.join(controls)} control")
        if len(controls) == 1:
            counted.append("by_ratios")
            reasons.append("the errors at sites of the other state are estimated from the ratios")
    else:
        assert mixture is not None
        counted = ["by_ratios"]
        if mixture.problem is None:
            counted.append("by_components")
            low, high = mixture.centres
            reasons.append(
                f"two components, around {low:.1f} ({100 * mixture.weight[0]:.0f} % of the calls) and {high:.1f}, fit "
                "the ratios; the greater of both estimates counts"
            )
        else:
            reasons.append(f"{mixture.problem}; the errors are those that the ratios themselves mean")
        reasons.append("without controls errors are estimates; give --methylated and --unmethylated")
    for threshold in _CANDIDATES.tolist():
        at_threshold = rates(threshold)
        found = [at_threshold[name] for name in counted]
        if all(rate is not None and rate <= goal for rate in found):
            kept = ratios.passing(threshold) / ratios.n
            return {"threshold": threshold, "share_of_calls": kept, "error_rate": max(found), "reasons": reasons}
    reasons.append(f"no threshold up to {_CANDIDATES[-1]:g} has that few errors")
    return {**none, "reasons": reasons}
