"""The report of a training as one page of HTML that loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from f5py.reports.html_report import page, section, table, warnings_shown
from f5py.reports.svg_charts import bar_chart, line_chart


def training_page(report: Mapping[str, Any]) -> str:
    """The page; `report` is what the JSON report has."""
    title = f"{report['tool']}: {report['chemistry']}, {report['k']}-mers over {report['alphabet']}"
    blocks = [
        f"<h1>{escape(title)}</h1>",
        f"<p>started from {escape(report['start'])}</p>",
        warnings_shown(report["warnings"]),
        f'<div class="grid">{"".join(_charts(report))}</div>',
    ]
    return page(title, blocks)


def _charts(report: Mapping[str, Any]) -> Iterable[str]:
    rounds = report["rounds"]
    numbers = [float(i + 1) for i in range(len(rounds))]
    rows = [
        (f"round {i + 1}", f"{one['events']:,} events, levels changed by {one['change']:.3f} pA")
        for i, one in enumerate(rounds)
    ]
    yield section("Rounds", table(rows))
    deviations = [one["held_out_deviation"] for one in rounds]
    if None not in deviations:
        chart = line_chart(numbers, {"": deviations}, "round")
        yield section("Deviation of the reads held out, in standard deviations, before each round", chart)
    for name, kmers in report["kmers"].items():
        # most methylated k-mers cannot occur
        first = int(name == "methylated")
        labels = [f"{low:,}" for low in kmers["coverage"]["from"][first:]]
        chart = bar_chart(labels, {"k-mers": kmers["coverage"]["kmers"][first:]}, "events, from")
        yield section(f"Coverage of {name} k-mers", chart)
    if "methylation_shifts" in report:
        shifts = report["methylation_shifts"]
        rows = [(f"base {i + 1}", "none" if one is None else f"{one:+.2f} pA") for i, one in enumerate(shifts)]
        yield section("Mean shift by the place of a methylated base", table(rows))
    if "held_out" in report:
        held_out = report["held_out"]
        roc = held_out["roc"]
        chart = line_chart(roc["false_positive_rate"], {"": roc["true_positive_rate"]}, "rate of false positives")
        words = f"Calls of reads held out: {held_out['calls']:,}, area {held_out['auc']:.4f}"
        if (known := held_out["known_model"]) is not None:
            words += f"; of the built-in model {known['name']} {known['auc']:.4f}"
        yield section(words, chart)
