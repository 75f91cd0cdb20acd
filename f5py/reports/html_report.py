"""Report of a run over signals as a self-contained HTML page, and the parts of such pages."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib import resources
from itertools import pairwise
from typing import Any

from f5py.reports.axis import COUNT, NUMBER, PERCENT, Axis, bins_with_beyond, ticks_of_bins, ticks_of_powers
from f5py.reports.svg_charts import area_chart, bar_chart, line_chart

#: Counts that add up to all reads.
FATES = ("passed", "qc_fail", "could_not_calibrate", "no_alignment", "bad_reads", "ultra_long")
_MOST_CONTIGS = 24
_OPTION = re.compile(r"(?<![^ ])--?[A-Za-z][A-Za-z0-9-]*")
_NAME = r'<span class="name">\g<0></span>'
_DEPTH = Axis("reads over a base", least=0)


def html_report(sample: str, run: Mapping[str, Any]) -> str:
    """Make the page of a sample from ``run`` of the JSON report."""
    facts, command = run["rests_on"], run["command"]
    about = (
        f"{escape(run['parameters'].get('bam', ''))}, {escape(run['finished'])}; "
        f"{escape(facts['chemistry'])}, {escape(', '.join(facts['models'].values()))}"
    )
    basis = [
        ("chemistry", f"{facts['chemistry']} ({facts['known_from']})"),
        *facts["models"].items(),
        *((words(name), shown(one)) for name, one in facts["options"].items()),
    ]
    counts = {name: count for name, count in run["counts"].items() if count or name in FATES}
    title = f"f5py {command}: {sample}"
    line = run["parameters"].get("command_line", f"f5py {command}")
    return run_page(title, about, line, run, _figures(run), basis, _charts(run), counts)


def run_page(
    title: str, about: str, line: str, run: Mapping[str, Any], figures: Iterable[tuple[str, str]],
    basis: list[tuple[str, str]], charts: Iterable[str], counts: Mapping[str, int],
) -> str:  # fmt: skip
    """Make a page of a run with its command line, key figures, charts, counts, inputs and versions."""
    seconds = table([(words(name), f"{value:,.2f}") for name, value in run["seconds"].items()])
    reads = table([(words(name), f"{count:,}") for name, count in counts.items()])
    inputs = [(one["path"], f"{one['bytes']:,} bytes, {one['modified']}, MD5 {one['md5']}") for one in run["inputs"]]
    blocks = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{about}</p>",
        format_command(line),
        f'<div class="grid cards">{"".join(_card(*one) for one in figures)}</div>',
        format_warnings(run["warnings"]),
        _details("Provenance", basis),
        f'<div class="grid">{"".join(charts)}</div>',
        f'<div class="grid">{section("Reads", reads)}{section("Seconds", seconds)}</div>',
        _details("Options", [(key, shown(one)) for key, one in run["parameters"].items() if one not in (None, [])]),
        _details("Input files", inputs),
        _details("Versions", list(run["versions"].items())),
    ]
    return page(title, blocks)


def page(title: str, blocks: Iterable[str]) -> str:
    """Make a page of HTML blocks."""
    style = resources.files(__package__).joinpath("report.css").read_text()
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(blocks)
        + "\n</body>\n</html>\n"
    )


def amount(number: float) -> str:
    """Format a number with about three digits and a unit prefix."""
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
    """Draw the charts; single bars are omitted, as cards and tables show them."""
    distributions = run["distributions"]
    counts = run["counts"]
    fates = {words(name): counts[name] for name in FATES if counts.get(name)}
    reads = replace(COUNT, name="reads")
    yield bars("Outcome of the reads", list(fates), {"reads": list(fates.values())}, "", reads)
    if "ratios" in distributions:
        yield _ratios(distributions["ratios"])
    yield from _depths(distributions)
    contigs = distributions["contigs"]
    called = {one["name"]: one for one in contigs if one.get("methylated", 0) + one.get("unmethylated", 0)}
    if called:
        yield _methylation("Methylation by contig", dict(list(called.items())[:_MOST_CONTIGS]), "contig")
    if distributions.get("contexts"):
        yield _methylation("Methylation of single sites by context", distributions["contexts"], "context")
    yield from length_charts(distributions["read_lengths"])
    yield from _over_time(distributions["yield_over_time"])
    covered = [one for one in contigs if one["coverage"]][:_MOST_CONTIGS]
    if covered:
        means = {"mean": [one["coverage"] for one in covered]}
        yield bars("Coverage", [one["name"] for one in covered], means, "contig", _DEPTH)
    drift = distributions["scaling"]
    if len(drift) > 1:
        titles = {"shift": "Shift of the signals", "scale": "Scale of the signals", "var": "Noise (var)"}
        for name, title in titles.items():
            values = {"": [one[name] for one in drift]}
            chart = line_chart([one["reads"] for one in drift], values, reads, NUMBER)
            yield section(f"{title} over the run", chart)


def _ratios(ratios: Mapping[str, Any]) -> str:
    """Draw the log-likelihood ratios of calls."""
    first, calls = ratios["from"], ratios["calls"]
    labels, ticks = bins_with_beyond(first), ticks_of_bins(first, has_beyond=True)
    words = "ratio (above 0 methylated)"
    chart = bar_chart(labels, {"calls": calls}, words, replace(COUNT, name="calls"), ticks)
    return section("Log-likelihood ratios", chart)


def _depths(shown: Mapping[str, Any]) -> Iterable[str]:
    """Draw the depth of called sites, and along the reference."""
    of_sites = shown.get("calls_of_sites")
    if of_sites and any(of_sites["sites"]):
        first, sites, width = of_sites["from"], of_sites["sites"], of_sites["width"]
        labels = [f"{low:,}" if width == 1 else f"{low:,} to {low + width - 1:,}" for low in first]
        shift = 0.5 if width == 1 else 0.0  # the middle of a bar of one number
        ticks = [(at / width + shift, text) for at, text in COUNT.ticks(0, width * len(sites))]
        percent = {"% of the sites": [100 * one / sum(sites) for one in sites]}
        chart = bar_chart(labels, percent, "calls beyond the threshold", Axis("% of the sites", least=0), ticks)
        yield section("Depth of the called sites", chart)
    along = shown["depth"]
    if len(along["reads"]) > 1:
        ticks, name = _along(along)
        yield section("Depth along the reference", area_chart(along["reads"], ticks, name, _DEPTH))


def _along(depth: Mapping[str, Any]) -> tuple[list[tuple[float, str]], str]:
    """Return ticks along the reference, positions or names of contigs, and their label."""
    contig, first = depth["contig"], depth["from"]
    if all(b - a == depth["bases"] for a, b in pairwise(first)) and len(set(contig)) == 1:
        return ticks_of_bins(first), f"position on {contig[0]}"
    starts = [i for i, one in enumerate(contig) if i == 0 or one != contig[i - 1]]
    ends = [*starts[1:], len(contig)]
    return [((i + j) / 2, contig[i]) for i, j in zip(starts, ends, strict=True)], "one after the other"


def length_charts(lengths: Mapping[str, Any], of_yield: str = "bases of used reads") -> Iterable[str]:
    """Draw reads and bases by read length; `of_yield` labels bases."""
    used = [i for i, count in enumerate(lengths["reads"]) if count]
    if not used:
        return
    part = slice(used[0], used[-1] + 1)
    first = lengths["from"][part]
    labels = [f"from {low:,} bases" for low in first]
    ticks = ticks_of_powers(first[0], len(first), round(1 / math.log10(lengths["from"][1] / lengths["from"][0])))
    reads = {"reads": lengths["reads"][part]}
    bases = {"bases": lengths["bases_used"][part]}
    for title, series, name in (("Read lengths", reads, "reads"), ("Yield by read length", bases, of_yield)):
        if any(*series.values()):
            yield section(title, bar_chart(labels, series, "bases of a read", replace(COUNT, name=name), ticks))


def _over_time(bases: Mapping[str, Any]) -> Iterable[str]:
    """Draw the cumulative yield over sequencing time, unless it is a few minutes."""
    if len(bases["hours"]) > 2:
        across, up = Axis("hours of sequencing", least=0), replace(COUNT, name="bases of used reads")
        yield section("Yield over time", line_chart(bases["hours"], {"": bases["bases_used"]}, across, up))


def _methylation(title: str, counts: Mapping[str, Mapping[str, int]], name: str) -> str:
    """Draw the percentages of methylated calls by name."""
    pairs = [(one["methylated"], one["methylated"] + one["unmethylated"]) for one in counts.values()]
    percent = [round(100 * methylated / n, 2) if n else 0.0 for methylated, n in pairs]
    return bars(title, list(counts), {"% methylated": percent}, name, replace(PERCENT, name="% methylated"))


def bars(title: str, labels: list[str], series: Mapping[str, Sequence[float]], name: str, up: Axis) -> str:
    """Draw a bar chart of at least two bars."""
    return section(title, bar_chart(labels, series, name, up)) if len(labels) > 1 else ""


def format_warnings(lines: Sequence[str]) -> str:
    """Format the warnings, if any, as a section."""
    if not lines:
        return ""
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<div class="grid">{section("Warnings", f"<ul>{listed}</ul>")}</div>'


def _card(figure: str, caption: str) -> str:
    """Format a key figure with its caption."""
    return f"<section><b>{escape(figure)}</b><span>{escape(caption)}</span></section>"


def section(title: str, inside: str) -> str:
    """Format a section of a page."""
    return f"<section><h2>{escape(title)}</h2>{inside}</section>"


def format_command(line: str) -> str:
    """Format a command line without breaks at hyphens of options."""
    return f"<pre>{_OPTION.sub(_NAME, escape(line))}</pre>"


def _details(title: str, rows: list[tuple[str, str]]) -> str:
    """Format a collapsed table."""
    inside = f"<details><summary>{title}</summary>{table(rows)}</details>"
    return f'<div class="grid"><section class="wide">{inside}</section></div>'


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Format a table of names and values."""
    return f"<table>{''.join(f'<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>' for a, b in rows)}</table>"


def words(name: str) -> str:
    """Convert a name of the JSON report to words."""
    return name.replace("_", " ")


def shown(value: Any) -> str:
    """Format a value."""
    if value is None or value == []:
        return "not given"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
