"""The report of a run as one page of HTML that loads nothing from elsewhere."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib import resources
from itertools import pairwise
from typing import Any

from f5py.reports.axis import COUNT, NUMBER, PERCENT, Axis, ticks_of_bins, ticks_of_powers
from f5py.reports.svg_charts import area_chart, bar_chart, line_chart

#: Counts of reads that add up to all.
FATES = ("passed", "qc_fail", "could_not_calibrate", "no_alignment", "bad_reads", "ultra_long")
_MOST_CONTIGS = 24
_OPTION = re.compile(r"(?<![^ ])--?[A-Za-z][A-Za-z0-9-]*")
_NAME = r'<span class="name">\g<0></span>'
_DEPTH = Axis("reads over a base", least=0)


def html_report(sample: str, run: Mapping[str, Any]) -> str:
    """Write the page.

    Parameters
    ----------
    run : mapping
        What the JSON report has below ``run``.
    """
    command = run["command"]
    seconds = table([(words(name), f"{value:,.2f}") for name, value in run["seconds"].items()])
    blocks = [
        f"<h1>f5py {escape(command)}: {escape(sample)}</h1>",
        f"<p>{escape(run['parameters'].get('bam', ''))}, {escape(run['finished'])}; "
        f"{escape(run['rests_on']['chemistry'])}, {escape(', '.join(run['rests_on']['models'].values()))}</p>",
        command_shown(run["parameters"].get("command_line", f"f5py {command}")),
        f'<div class="grid cards">{"".join(card(*one) for one in _figures(run))}</div>',
        warnings_shown(run["warnings"]),
        details("What the results rest on", _basis(run["rests_on"])),
        f'<div class="grid">{"".join(_charts(run))}</div>',
        f'<div class="grid">{section("Reads", table(_reads(run["counts"])))}{section("Seconds", seconds)}</div>',
        details("Options", [(key, shown(one)) for key, one in run["parameters"].items() if one not in (None, [])]),
        details(
            "Input files",
            [(one["path"], f"{one['bytes']:,} bytes, {one['modified']}, MD5 {one['md5']}") for one in run["inputs"]],
        ),
        details("Versions", list(run["versions"].items())),
    ]
    return page(f"f5py {command}: {sample}", blocks)


def page(title: str, blocks: Iterable[str]) -> str:
    """Write a page of blocks of HTML."""
    style = resources.files(__package__).joinpath("report.css").read_text()
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(blocks)
        + "\n</body>\n</html>\n"
    )


def amount(number: float) -> str:
    """Write a number with three digits or so."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:,.1f}{letter}" if number < 100 * size else f"{number / size:,.0f}{letter}"
    return f"{number:,.0f}"


def _figures(run: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    counts, rates = run["counts"], run["rates"]
    yield f"{counts['passed']:,}", f"of {counts['total_entries']:,} reads used"
    yield f"{counts['results']:,}", "calls" if run["command"] == "call-methylation" else "rows"
    if "methylated_fraction" in rates:
        yield f"{100 * rates['methylated_fraction']:.1f} %", "of calls beyond the threshold methylated"
    yield amount(counts["total_bases"]), "bases"
    yield f"{run['distributions']['depth']['mean']:,.1f}", "reads over a base, on average"
    if "calls_of_sites" in run["distributions"]:
        yield f"{run['distributions']['calls_of_sites']['median']:,g}", "calls beyond the threshold of the median site"
    yield amount(rates["bases_per_second"]), "bases per second"


def _charts(run: Mapping[str, Any]) -> Iterable[str]:
    """Charts; there is none of a single bar, which cards and tables tell."""
    distributions = run["distributions"]
    counts = run["counts"]
    fates = {words(name): counts[name] for name in FATES if counts.get(name)}
    reads = replace(COUNT, name="reads")
    yield bars("What became of the reads", list(fates), {"reads": list(fates.values())}, "", reads)
    if "ratios" in distributions:
        yield _ratios(distributions["ratios"])
    yield from _depths(distributions)
    contigs = distributions["contigs"]
    called = {one["name"]: one for one in contigs if one.get("methylated", 0) + one.get("unmethylated", 0)}
    if called:
        yield _methylation("Methylation by contig", dict(list(called.items())[:_MOST_CONTIGS]), "contig")
    if distributions.get("contexts"):
        yield _methylation("Methylation of single sites by context", distributions["contexts"], "context")
    yield from lengths_shown(distributions["read_lengths"])
    yield from _over_time(distributions["yield_over_time"])
    covered = [one for one in contigs if one["coverage"]][:_MOST_CONTIGS]
    if covered:
        means = {"mean": [one["coverage"] for one in covered]}
        yield bars("Coverage", [one["name"] for one in covered], means, "contig", _DEPTH)
    drift = distributions["scaling"]
    if len(drift) > 1:
        for name, title in (
            ("shift", "Shift of the signals"),
            ("scale", "Scale of the signals"),
            ("var", "Noise (var)"),
        ):
            values = {"": [one[name] for one in drift]}
            chart = line_chart([one["reads"] for one in drift], values, reads, NUMBER)
            yield section(f"{title} over the run", chart)


def _ratios(ratios: Mapping[str, Any]) -> str:
    """Log-likelihood ratios of calls."""
    first, calls = ratios["from"], ratios["calls"]
    labels = [f"from {low:g}" for low in first]
    labels[0], labels[-1] = f"below {first[1]:g}", f"{labels[-1]} on"
    ticks = ticks_of_bins(first)
    words = "ratio (above 0 methylated)"
    chart = bar_chart(labels, {"calls": calls}, words, replace(COUNT, name="calls"), ticks)
    return section("Log-likelihood ratios", chart)


def _depths(shown: Mapping[str, Any]) -> Iterable[str]:
    """Draw calls of the sites, and reads along the reference."""
    of_sites = shown.get("calls_of_sites")
    if of_sites and any(of_sites["sites"]):
        first, sites, width = of_sites["from"], of_sites["sites"], of_sites["width"]
        labels = [f"{low:,}" if width == 1 else f"{low:,} to {low + width - 1:,}" for low in first]
        shift = 0.5 if width == 1 else 0.0  # the middle of a bar that stands for one number
        ticks = [(at / width + shift, text) for at, text in COUNT.ticks(0, width * len(sites))]
        percent = {"% of the sites": [100 * one / sum(sites) for one in sites]}
        chart = bar_chart(labels, percent, "calls beyond the threshold", Axis("% of the sites", least=0), ticks)
        yield section("Depth of the called sites", chart)
    along = shown["depth"]
    if len(along["reads"]) > 1:
        ticks, name = _along(along)
        yield section("Depth along the reference", area_chart(along["reads"], ticks, name, _DEPTH))


def _along(depth: Mapping[str, Any]) -> tuple[list[tuple[float, str]], str]:
    """Ticks along the reference, and what they are; of several windows or contigs the names of the contigs."""
    contig, first = depth["contig"], depth["from"]
    if all(b - a == depth["bases"] for a, b in pairwise(first)) and len(set(contig)) == 1:
        return ticks_of_bins(first), f"position on {contig[0]}"
    starts = [i for i, one in enumerate(contig) if i == 0 or one != contig[i - 1]]
    ends = [*starts[1:], len(contig)]
    return [((i + j) / 2, contig[i]) for i, j in zip(starts, ends, strict=True)], "one after the other"


def lengths_shown(lengths: Mapping[str, Any], of_yield: str = "bases of used reads") -> Iterable[str]:
    """Draw reads, and bases, which are called `of_yield`, by the lengths of the reads."""
    used = [i for i, count in enumerate(lengths["reads"]) if count]
    if not used:
        return
    part = slice(used[0], used[-1] + 1)
    first = lengths["from"][part]
    labels = [f"from {low:,} bases" for low in first]
    ticks = ticks_of_powers(first[0], len(first), round(1 / math.log10(lengths["from"][1] / lengths["from"][0])))
    reads = {"reads": lengths["reads"][part]}
    bases = {"bases": lengths["bases_used"][part]}
    for title, series, name in (
        ("Read lengths", reads, "reads"),
        ("Yield by read length", bases, of_yield),
    ):
        if any(*series.values()):
            yield section(title, bar_chart(labels, series, "bases of a read", replace(COUNT, name=name), ticks))


def _over_time(bases: Mapping[str, Any]) -> Iterable[str]:
    """Draw how the bases became more while the reads were sequenced, unless all came within a few minutes."""
    if len(bases["hours"]) > 2:
        across, up = Axis("hours of sequencing", least=0), replace(COUNT, name="bases of used reads")
        yield section("Yield over time", line_chart(bases["hours"], {"": bases["bases_used"]}, across, up))


def _methylation(title: str, counts: Mapping[str, Mapping[str, int]], name: str) -> str:
    """Percentages of methylated calls by name; 0 where there are no calls."""
    pairs = [(one["methylated"], one["methylated"] + one["unmethylated"]) for one in counts.values()]
    percent = [round(100 * methylated / n, 2) if n else 0.0 for methylated, n in pairs]
    return bars(title, list(counts), {"% methylated": percent}, name, replace(PERCENT, name="% methylated"))


def bars(title: str, labels: list[str], series: Mapping[str, Sequence[float]], name: str, up: Axis) -> str:
    """Draw a chart of bars; none of a single one."""
    return section(title, bar_chart(labels, series, name, up)) if len(labels) > 1 else ""


def _basis(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    chemistry = ("chemistry", f"{facts['chemistry']} ({facts['known_from']})")
    return [
        chemistry,
        *facts["models"].items(),
        *((words(name), shown(one)) for name, one in facts["options"].items()),
    ]


def _reads(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(words(name), f"{count:,}") for name, count in counts.items() if count or name in FATES]


def warnings_shown(lines: Sequence[str]) -> str:
    """Write a part of a page with the warnings, if there are any."""
    if not lines:
        return ""
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<div class="grid">{section("Warnings", f"<ul>{listed}</ul>")}</div>'


def card(figure: str, caption: str) -> str:
    """Draw a figure with what it is."""
    return f"<section><b>{escape(figure)}</b><span>{escape(caption)}</span></section>"


def section(title: str, inside: str) -> str:
    """Write a part of a page."""
    return f"<section><h2>{escape(title)}</h2>{inside}</section>"


def command_shown(line: str) -> str:
    """Write a command; no line ends at a hyphen within the name of an option."""
    return f"<pre>{_OPTION.sub(_NAME, escape(line))}</pre>"


def details(title: str, rows: list[tuple[str, str]]) -> str:
    """Make a table that is shown when it is asked for."""
    inside = f"<details><summary>{title}</summary>{table(rows)}</details>"
    return f'<div class="grid"><section class="wide">{inside}</section></div>'


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Write a table of names and values."""
    return f"<table>{''.join(f'<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>' for a, b in rows)}</table>"


def words(name: str) -> str:
    """Make words of a name in the JSON report."""
    return name.replace("_", " ")


def shown(value: Any) -> str:
    """Return a value as text."""
    if value is None or value == []:
        return "not given"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
