"""Report of a training as a self-contained HTML page."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py import __version__
from f5py.core.kmers import kmer_digits
from f5py.pore_model.model import PoreModel
from f5py.reports.axis import COUNT, FALSE_POSITIVES, NUMBER, TRUE_POSITIVES, Axis
from f5py.reports.html_report import format_warnings, page, section, table
from f5py.reports.svg_charts import bar_chart, line_chart
from f5py.training.update import WELL_SEEN

_COVERAGE_STEPS = (0, 1, 10, 30, 100, 300, 1000, 3000, 10_000)


def training_page(report: Mapping[str, Any]) -> str:
    """Make the page of a JSON report."""
    title = f"{report['tool']}: {report['chemistry']}, {report['k']}-mers over {report['alphabet']}"
    blocks = [
        f"<h1>{escape(title)}</h1>",
        f"<p>started from {escape(report['start'])}</p>",
        format_warnings(report["warnings"]),
        f'<div class="grid">{"".join(_charts(report))}</div>',
    ]
    return page(title, blocks)


def shifts_page(report: Mapping[str, Any]) -> str:
    """Make the page of a JSON report of a fit to reads of unknown methylation."""
    title = report["tool"]
    gain = report["held_out_gain"]
    about = [
        ("groups of one site", f"{report['groups']:,} of {report['reads']:,} reads"),
        ("share methylated, about", f"{report['share']:.2f}"),
        ("log-likelihood", f"{report['likelihood']:.1f}, of the start {report['likelihood_of_start']:.1f}"),
        ("gain of a group in reads not fitted", f"{gain['per_group']:.3f} ± {gain['se'] / report['groups']:.3f}"),
        ("rounds", f"{report['rounds']}" + ("" if report["settled"] else ", not settled")),
        ("verdict", report["verdict"]),
    ]
    columns = "shifts", "standard_errors", "pyrimidine_before", "standard_errors_of_pyrimidine_before"
    starts, halves = report["start"]["shifts"], report["halves"]
    rows = []
    for place, (shift, error, before, error_before) in enumerate(zip(*(report[name] for name in columns), strict=True)):
        words = f"{shift:+.2f} ± {error:.2f} pA; start {starts[place]:+.2f}, halves of the reads "
        words += " and ".join(f"{half[place]:+.2f}" for half in halves)
        if error_before:
            words += f"; {before:+.2f} ± {error_before:.2f} with a pyrimidine before, the opposite with a purine"
        rows.append((f"place {place}", words))
    places = [float(place) for place in range(len(starts))]
    lines = {"fitted": report["shifts"], "start": starts}
    chart = line_chart(places, lines, Axis("place of the methylated base", whole=True), replace(NUMBER, name="pA"))
    blocks = [
        f"<h1>{escape(title)}</h1>",
        f"<p>started from {escape(report['start']['name'])}</p>",
        format_warnings(report["warnings"]),
        section("Fit", table(about)),
        section("Shifts of methylated k-mers", table(rows)),
        section("Shifts by place", chart),
    ]
    return page(title, blocks)


def _charts(report: Mapping[str, Any]) -> Iterable[str]:
    rounds = report["rounds"]
    numbers = [float(i + 1) for i in range(len(rounds))]
    rows = [
        (f"round\u00a0{i + 1}", f"{one['events']:,} events, levels changed by {one['change']:.3f} pA")
        for i, one in enumerate(rounds)
    ]
    yield section("Rounds", table(rows))
    deviations = [one["held_out_deviation"] for one in rounds]
    if None not in deviations:
        across, up = Axis("round", whole=True), replace(NUMBER, name="standard deviations")
        chart = line_chart(numbers, {"": deviations}, across, up)
        yield section("Deviation of the reads held out, before each round", chart)
    for name, kmers in report["kmers"].items():
        # most methylated k-mers are impossible
        first = int(name == "methylated")
        labels = [f"{low:,}" for low in kmers["coverage"]["from"][first:]]
        series = {"k-mers": kmers["coverage"]["kmers"][first:]}
        chart = bar_chart(labels, series, "events, from", replace(COUNT, name="k-mers"))
        yield section(f"Coverage of {name} k-mers", chart)
    if "methylation_shifts" in report:
        shifts = report["methylation_shifts"]
        rows = [(f"base {i + 1}", "none" if one is None else f"{one:+.2f} pA") for i, one in enumerate(shifts)]
        yield section("Mean shift by the place of a methylated base", table(rows))
    if "noise" in report:
        noise = report["noise"]
        rows = [
            ("correlation within a k-mer", f"{noise['stay']:.2f}"),
            ("correlation from one k-mer to the next", f"{noise['step']:.2f}"),
            ("tails", noise["tails"]),
            ("windows", f"{noise['n_windows']:,}"),
        ]
        yield section("Noise of the events", table(rows))
    if "held_out" in report:
        held_out = report["held_out"]
        roc = held_out["roc"]
        chart = line_chart(roc["false_positive_rate"], {"": roc["true_positive_rate"]}, FALSE_POSITIVES, TRUE_POSITIVES)
        words = f"Calls of reads held out: {held_out['calls']:,}, area {held_out['auc']:.4f}"
        if (known := held_out["known_model"]) is not None:
            words += f"; of the built-in model {known['name']} {known['auc']:.4f}"
        yield section(words, chart)


def training_data(
    plain: NDArray[np.int32], chemistry: str, start: PoreModel, model: PoreModel, n_events: NDArray[np.float64],
    rounds: list[dict[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    """Collect the report of a training from `start` to `model`, without tests; `plain` has `plain_ranks`."""
    report: dict[str, Any] = {
        "tool": f"f5py {__version__} train",
        "chemistry": chemistry,
        "start": start.name,
        "k": model.k,
        "alphabet": model.alphabet,
        "rounds": rounds,
        "kmers": {},
    }
    for name, these in (("plain", plain < 0), ("methylated", plain >= 0)):
        if not these.any():
            continue
        counts = n_events[these]
        edges = [*_COVERAGE_STEPS, np.inf]
        seen = counts > 0
        change = np.abs(model.level_mean - start.level_mean)[these][seen]
        report["kmers"][name] = {
            "seen": int(seen.sum()),
            "well_seen": int((counts >= WELL_SEEN).sum()),
            "median_events": float(np.median(counts[seen])) if seen.any() else 0.0,
            "coverage": {"from": list(_COVERAGE_STEPS), "kmers": np.histogram(counts, edges)[0].tolist()},
            "mean_change_from_start": float(change.mean()) if seen.any() else 0.0,
        }
    if (plain >= 0).any():
        report["methylation_shifts"] = _shifts(model, plain, n_events)
    return report


def _shifts(model: PoreModel, plain: NDArray[np.int32], n_events: NDArray[np.float64]) -> list[float | None]:
    """Average the shift by the place of a single M, weighted by events."""
    code = model.alphabet.index("M")
    ranks = np.flatnonzero((plain >= 0) & (n_events > 0))
    letters = kmer_digits(ranks, model.k, len(model.alphabet))
    single = (letters == code).sum(axis=1) == 1
    ranks, place = ranks[single], (letters[single] == code).argmax(axis=1)
    shift = model.level_mean[ranks].astype(np.float64) - model.level_mean[plain[ranks]]
    total = np.bincount(place, n_events[ranks], minlength=model.k)
    summed = np.bincount(place, n_events[ranks] * shift, minlength=model.k)
    return [float(s / t) if t else None for s, t in zip(summed.tolist(), total.tolist(), strict=True)]
