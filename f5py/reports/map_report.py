"""The report of ``f5py map``, as one page of HTML that loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from html import escape
from typing import Any

from f5py.reports.axis import COUNT, Axis, ticks_of_bins
from f5py.reports.html_report import (
    amount,
    bars,
    card,
    command_shown,
    details,
    lengths_shown,
    page,
    section,
    shown,
    table,
    warnings_shown,
    words,
)
from f5py.reports.svg_charts import bar_chart

#: Counts of reads that add up to all.
FATES = ("mapped", "unmapped")
_MOST_CONTIGS = 24


def map_page(sample: str, run: Mapping[str, Any]) -> str:
    """Make the page.

    Parameters
    ----------
    run : mapping
        What the JSON report has below ``run``.
    """
    basis = run["rests_on"]
    seconds = table([(words(name), f"{value:,.2f}") for name, value in run["seconds"].items()])
    counts = table([(words(name), f"{count:,}") for name, count in run["counts"].items()])
    blocks = [
        f"<h1>f5py map: {escape(sample)}</h1>",
        f"<p>{escape(run['parameters']['reference'])}, {escape(run['finished'])}; {escape(basis['preset'])}</p>",
        command_shown(run["parameters"]["command_line"]),
        f'<div class="grid cards">{"".join(card(*one) for one in _figures(run))}</div>',
        warnings_shown(run["warnings"]),
        details("What the results rest on", [(words(name), shown(one)) for name, one in _flat(basis)]),
        f'<div class="grid">{"".join(_charts(run))}</div>',
        f'<div class="grid">{section("Reads", counts)}{section("Seconds", seconds)}</div>',
        details("Options", [(key, shown(one)) for key, one in run["parameters"].items() if one not in (None, [])]),
        details(
            "Input files",
            [(one["path"], f"{one['bytes']:,} bytes, {one['modified']}, MD5 {one['md5']}") for one in run["inputs"]],
        ),
        details("Versions", list(run["versions"].items())),
    ]
    return page(f"f5py map: {sample}", blocks)


def _flat(basis: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """List what the results rest on."""
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
    yield from lengths_shown(all_shown["read_lengths"], "aligned bases")
    covered = [one for one in all_shown["contigs"] if one["coverage"]][:_MOST_CONTIGS]
    if covered:
        means = {"mean": [one["coverage"] for one in covered]}
        up = Axis("reads over a base", least=0)
        yield bars("Coverage", [one["name"] for one in covered], means, "contig", up)
