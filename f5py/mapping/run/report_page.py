"""Report of ``f5py map`` as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from html import escape
from typing import Any

from f5py.reports.axis import COUNT, Axis, ticks_of_bins
from f5py.reports.html_report import amount, bars, length_charts, run_page, section, shown, words
from f5py.reports.svg_charts import bar_chart

#: Counts that add up to all reads.
FATES = ("mapped", "unmapped")
_MOST_CONTIGS = 24


def map_page(sample: str, run: Mapping[str, Any]) -> str:
    """Make the page of a sample from ``run`` of the JSON report."""
    parameters, basis = run["parameters"], run["rests_on"]
    about = f"{escape(parameters['reference'])}, {escape(run['finished'])}; {escape(basis['preset'])}"
    rows = [(words(name), shown(one)) for name, one in _flat(basis)]
    title, line = f"f5py map: {sample}", parameters["command_line"]
    return run_page(title, about, line, run, _figures(run), rows, _charts(run), run["counts"])


def _flat(basis: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Flatten one level of objects."""
    for name, one in basis.items():
        yield from one.items() if isinstance(one, dict) else [(name, one)]


def _figures(run: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    counts, rates = run["counts"], run["rates"]
    yield f"{100 * rates['mapped_fraction']:.1f} %", f"of {counts['total_entries']:,} reads mapped"
    yield amount(counts["total_bases"]), "bases"
    if "identity" in rates:
        yield f"{100 * rates['identity']:.1f} %", "of the columns of alignments equal"
    yield f"{run['distributions']['coverage']:,.1f}", "reads over a base, on average"
    yield amount(rates["bases_per_second"]), "bases per second"


def _charts(run: Mapping[str, Any]) -> Iterable[str]:
    all_shown = run["distributions"]
    reads = replace(COUNT, name="reads")
    qualities = all_shown["mapping_qualities"]
    if any(qualities["reads"]):
        chart = bar_chart(
            [str(one) for one in qualities["from"]], {"reads": qualities["reads"]}, "mapping quality", reads,
            ticks_of_bins(qualities["from"]),
        )  # fmt: skip
        yield section("Mapping qualities", chart)
        identities = all_shown["identities"]
        used = [i for i, count in enumerate(identities["reads"]) if count]
        part = slice(max(min(used) - 1, 0), max(used) + 1)
        first = identities["from"][part]
        if len(first) > 1:
            chart = bar_chart(
                [f"from {low:g} %" for low in first], {"reads": identities["reads"][part]}, "% equal columns", reads,
                ticks_of_bins(first),
            )  # fmt: skip
            yield section("Identities", chart)
    yield from length_charts(all_shown["read_lengths"], "aligned bases")
    covered = [one for one in all_shown["contigs"] if one["coverage"]][:_MOST_CONTIGS]
    if covered:
        means = {"mean": [one["coverage"] for one in covered]}
        up = Axis("reads over a base", least=0)
        yield bars("Coverage", [one["name"] for one in covered], means, "contig", up)
