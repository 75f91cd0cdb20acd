"""Text and charts of `f5py summary`."""

from dataclasses import replace
from typing import Any

import numpy as np

from f5py.evaluation.summary import LEAST_CALLS_OF_READ
from f5py.reports.axis import COUNT, PERCENT, THRESHOLD, Axis, bins_with_beyond, ticks_of_bins
from f5py.reports.charts import Chart, shorten_interval
from f5py.reports.evaluation_report import aligned, percent

#: Wording of the error rate by the basis of advice.
_CERTAINTY = {
    "controls": "In the controls at most {} % of such calls are wrong",
    "one_control": "An estimated {} % of these are wrong",
    "components": "An estimated {} % of these are wrong",
    "one_state": "If all sites are of one state, {} % of these are wrong",
}


def text_of(data: dict[str, Any]) -> list[str]:
    """Format the report as lines of text."""
    lines = [
        f"calls                 {data['calls']:,} of {data['sites']:,} sites in {data['reads']:,} alignments of reads",
        f"beyond {data['threshold']:<14g} {data['calls_beyond']:,} ({percent(data['calls_beyond'] / data['calls'])} %)",
        f"methylated of these   {percent(data['methylated'])} %",
        f"methylated of all     {percent(data['methylated_share_by_ratios'])} % (if the ratios are right)",
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
            f"Advice: a threshold of {advice['threshold']:g} keeps {percent(advice['share_of_calls'])} % of the calls. "
            f"{_CERTAINTY[advice['basis']].format(percent(advice['error_rate']))}:"
        )
    lines += [f"  {reason}" for reason in advice["reasons"]]
    groups = [[_sites_of(one, data), *_counted(one)] for one in data["groups"] if one["calls"]]
    lines += ["", *aligned(["sites of a group", "calls", "% beyond", "% methylated"], groups)]
    if data["contexts"]:
        contexts = [[name, *_counted(one), f"{one['mean_ratio']:.2f}"] for name, one in data["contexts"].items()]
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


def _counted(one: dict[str, int]) -> list[str]:
    beyond, n = one["beyond"], one["calls"]
    return [f"{n:,}", percent(beyond / n), percent(one["methylated"] / beyond if beyond else None)]


def charts_of(data: dict[str, Any]) -> list[Chart]:
    """Make the charts."""
    ratios, reads, table = data["ratios"], data["read_methylation"], data["thresholds"]
    charts = [
        Chart(
            "Log-likelihood ratios", bins_with_beyond(ratios["from"]),
            Axis("ratio (above 0 methylated)"), {"calls": ratios["calls"]}, replace(COUNT, name="calls"),
            ticks_of_bins(ratios["from"], has_beyond=True),
        ),
        Chart(
            "Calls kept by a threshold", [one["threshold"] for one in table], THRESHOLD,
            {"": [100 * one["share_of_calls"] for one in table]}, replace(PERCENT, name="% of the calls"),
        ),
    ]  # fmt: skip
    errors = {
        name.replace("_", " "): [100 * one["errors"][name] for one in table]
        for name in table[0]["errors"]
        if all(one["errors"][name] is not None for one in table)
    }
    thresholds = [one["threshold"] for one in table]
    charts.append(Chart("Wrong calls among those kept", thresholds, THRESHOLD, errors, Axis("% wrong", least=0)))
    charts.append(
        Chart(
            "Reads by their methylated share of calls", [f"{100 * low:.0f}" for low in reads["from"]],
            Axis("% methylated"), {"reads": reads["count"]}, replace(COUNT, name="reads"),
            ticks_of_bins([100 * low for low in reads["from"]]),
        )
    )  # fmt: skip
    contexts = {name: one for name, one in data["contexts"].items() if one["beyond"]}
    if contexts:
        shares = [100 * one["methylated"] / one["beyond"] for one in contexts.values()]
        charts.append(
            Chart(
                "Methylation of single sites by context", list(contexts), Axis("context"), {"": shares},
                replace(PERCENT, name="% methylated"),
            )
        )  # fmt: skip
    groups = [one for one in data["groups"] if one["calls"]]
    sizes = [shorten_interval(_sites_of(one, data)) for one in groups]
    charts.append(
        Chart(
            "Calls beyond the threshold", sizes, Axis("sites of a group"),
            {"": [100 * one["beyond"] / one["calls"] for one in groups]}, replace(PERCENT, name="% beyond"),
        )
    )  # fmt: skip
    return charts


def _sites_of(group: dict[str, Any], data: dict[str, Any]) -> str:
    """Format the number of sites of groups; the last entry includes larger groups."""
    return f"{group['sites']}{' and more' if group is data['groups'][-1] else ''}"
