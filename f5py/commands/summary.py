"""What calls have in them, and which threshold they need: what ``f5py summary`` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from f5py import console
from f5py.commands.meth_freq import chosen_motif
from f5py.core.options import SummaryOptions
from f5py.core.strictness import obeys_strict
from f5py.errors import InputFileError, UsageError
from f5py.evaluation.call_table import read_calls
from f5py.evaluation.mixture import Mixture, error_by_ratios, fit_mixture, share_by_ratios
from f5py.evaluation.ratios import RatioCounts
from f5py.evaluation.summary import LEAST_CALLS_OF_READ, N_READ_BINS, WANTED, CallSummary
from f5py.io.byte_input import shown_name, size_of
from f5py.io.complete_file import complete_output
from f5py.outputs.charts import Chart
from f5py.outputs.evaluation_report import aligned, check_reports, write_reports
from f5py.pipeline.inputs import check_outputs
from f5py.progress import progress

_THRESHOLDS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0)
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
    if inputs.count("-") > 1:
        raise UsageError("standard input (-) can be read only once")
    reports = {f"--report {path}": path for path in options.report}
    check_outputs([path for path in inputs if path != "-"], {"-o": options.output, **reports})
    check_reports(options.report)
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
    text = "\n".join(_text(data)) + "\n"
    title = f"Calls of {', '.join(map(shown_name, paths))}"
    write_reports(options.report, title, text, data, _charts(data))
    with complete_output(options.output) as out:
        out.write(text.encode())
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
    for threshold in _THRESHOLDS:
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
        counted = ["by_ratios"]
        if mixture is not None and mixture.problem is None:
            counted.append("by_components")
            low, high = mixture.centres
            reasons.append(
                f"two components, around {low:.1f} ({100 * mixture.weight[0]:.0f} % of the calls) and {high:.1f}, fit "
                "the ratios; the greater of both estimates counts"
            )
        else:
            assert mixture is not None
            reasons.append(f"{mixture.problem}; the errors are those that the ratios themselves mean")
        reasons.append("without controls errors are estimates; give --methylated and --unmethylated")
    for threshold in _CANDIDATES.tolist():
        found = [rates(threshold)[name] for name in counted]
        if all(rate is not None and rate <= goal for rate in found):
            kept = ratios.passing(threshold) / ratios.n
            return {"threshold": threshold, "share_of_calls": kept, "error_rate": max(found), "reasons": reasons}
    reasons.append(f"no threshold up to {_CANDIDATES[-1]:g} has that few errors")
    return {**none, "reasons": reasons}


def _text(data: dict[str, Any]) -> list[str]:
    def percent(value: float | None) -> str:
        return "-" if value is None else f"{100 * value:.2f}"

    lines = [
        f"calls                 {data['calls']:,} of {data['sites']:,} sites in {data['reads']:,} alignments of reads",
        f"beyond {data['threshold']:<14g} {data['calls_beyond']:,} ({percent(data['calls_beyond'] / data['calls'])} %)",
        f"methylated of these   {percent(data['methylated'])} %",
        f"methylated of all     {percent(data['methylated_share_by_ratios'])} % (estimated from the ratios)",
    ]
    if data["undefined_ratios"]:
        lines.append(f"no ratio              {data['undefined_ratios']:,} more calls")
    names = list(data["thresholds"][0]["errors"])
    header = ["threshold", "calls", "% kept", "% methylated", *(f"% wrong {name.replace('_', ' ')}" for name in names)]
    rows = [
        [
            f"{one['threshold']:g}", f"{one['calls']:,}", percent(one["share_of_calls"]), percent(one["methylated"]),
            *(percent(rate) for rate in one["errors"].values()),
        ]
        for one in data["thresholds"]
    ]  # fmt: skip
    lines += ["", *aligned(header, rows), ""]
    advice = data["advice"]
    if advice["threshold"] is None:
        lines.append("No threshold is advised:")
    else:
        lines.append(
            f"Advice: a threshold of {advice['threshold']:g} keeps {percent(advice['share_of_calls'])} % of the calls, "
            f"with {percent(advice['error_rate'])} % wrong:"
        )
    lines += [f"  {reason}" for reason in advice["reasons"]]
    groups = [
        [f"{one['sites']}{' and more' if one is data['groups'][-1] else ''}", *_counted(one, percent)]
        for one in data["groups"]
        if one["calls"]
    ]
    lines += ["", *aligned(["sites of a group", "calls", "% beyond", "% methylated"], groups)]
    if data["contexts"]:
        contexts = [
            [name, *_counted(one, percent), f"{one['mean_ratio']:.2f}"] for name, one in data["contexts"].items()
        ]
        header = ["context of single sites", "calls", "% beyond", "% methylated", "mean ratio"]
        lines += ["", *aligned(header, contexts)]
    reads = data["read_methylation"]
    if reads["reads"]:
        shares = np.array(reads["count"]) / reads["reads"]
        lines += [
            "",
            f"Of {reads['reads']:,} reads with {LEAST_CALLS_OF_READ} or more calls beyond the threshold, "
            f"{100 * shares[0]:.1f} % are methylated in less than 5 % of them, {100 * shares[-1]:.1f} % in 95 % or "
            "more.",
        ]
    return lines


def _counted(one: dict[str, int], percent: Any) -> list[str]:
    beyond, n = one["beyond"], one["calls"]
    return [f"{n:,}", percent(beyond / n), percent(one["methylated"] / beyond if beyond else None)]


def _charts(data: dict[str, Any]) -> Sequence[Chart]:
    ratios, reads, table = data["ratios"], data["read_methylation"], data["thresholds"]
    charts = [
        Chart(
            "Log-likelihood ratios", "ratio, from; at the ends all beyond", [f"{low:g}" for low in ratios["from"]],
            {"calls": ratios["calls"]},
        ),
        Chart(
            "Calls kept by a threshold, %", "threshold", [one["threshold"] for one in table],
            {"": [100 * one["share_of_calls"] for one in table]},
        ),
    ]  # fmt: skip
    errors = {
        name.replace("_", " "): [100 * one["errors"][name] for one in table]
        for name in table[0]["errors"]
        if all(one["errors"][name] is not None for one in table)
    }
    charts.append(Chart("Wrong calls among those kept, %", "threshold", [one["threshold"] for one in table], errors))
    charts.append(
        Chart(
            "Reads by their methylated share of calls", "% methylated, from",
            [f"{100 * low:.0f}" for low in reads["from"]], {"reads": reads["count"]},
        )
    )  # fmt: skip
    contexts = {name: one for name, one in data["contexts"].items() if one["beyond"]}
    if contexts:
        shares = [100 * one["methylated"] / one["beyond"] for one in contexts.values()]
        charts.append(Chart("Methylated calls of single sites by context, %", "context", list(contexts), {"": shares}))
    groups = [one for one in data["groups"] if one["calls"]]
    charts.append(
        Chart(
            "Calls beyond the threshold, %", "sites of a group", [str(one["sites"]) for one in groups],
            {"": [100 * one["beyond"] / one["calls"] for one in groups]},
        )
    )  # fmt: skip
    return charts
