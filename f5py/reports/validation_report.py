"""Text and charts of `f5py validate`."""

from dataclasses import replace
from typing import Any

from f5py.reports.axis import FALSE_POSITIVES, PERCENT, SHARE, THRESHOLD, TRUE_POSITIVES, Axis
from f5py.reports.charts import Chart, shorten_interval
from f5py.reports.evaluation_report import aligned, percent
from f5py.reports.svg_charts import IDEAL

_MEASURES = ("share_of_calls", "accuracy", "precision", "recall", "specificity", "f1")


def _number(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _bounds(data: dict[str, Any], name: str, times: float = 1.0) -> str:
    """Format the interval of a measure, if any, after a blank."""
    bounds = data["intervals"][name]
    if bounds is None:
        return ""
    low, high = (_number(times * one, 4 if times == 1.0 else 2) for one in bounds)
    return f" [{low}, {high}]"


def text_of(data: dict[str, Any]) -> list[str]:
    """Format the report as lines of text."""
    lines: list[str] = []
    if "auc" in data:
        lines += [
            f"calls of known state         {data['calls']:,}, {data['methylated_calls']:,} at methylated sites",
            f"area under the ROC curve     {_number(data['auc'])}{_bounds(data, 'auc')}",
        ]
        one = data["at_threshold"]
        if one["accuracy"] is not None:
            kept, wrong = percent(one["share_of_calls"]), percent(1 - one["accuracy"])
            lines.append(
                f"beyond {one['threshold']:<22g}{kept} %{_bounds(data, 'kept', 100)} kept, of which "
                f"{wrong} %{_bounds(data, 'wrong', 100)} wrong"
            )
        lines.append("95 % intervals by bootstrap over reads")
    if (tags := data.get("tags")) is not None:
        for name, why in (("not_at_motif", "where the read does not have the motif"), ("not_aligned", "not aligned")):
            if tags[name]:
                lines.append(f"left out                     {tags[name]:,} of {tags['n']:,} tags, {why}")
    if data.get("mixed_groups"):
        lines.append(f"left out                     {data['mixed_groups']:,} groups with different or unclear sites")
    if data.get("unknown"):
        lines.append(f"left out                     {data['unknown']:,} calls at sites that the truth does not have")
    if "auc" in data:
        header = ["threshold", "calls", "% kept", "% accuracy", "% precision", "% recall", "% specificity", "% F1"]
        rows = [
            [f"{one['threshold']:g}", f"{one['calls']:,}", *(percent(one[name]) for name in _MEASURES)]
            for one in data["thresholds"]
        ]
        lines += ["", *aligned(header, rows)]
        found = data["reliability"]
        factor = "" if found["calibration"] == 1.0 else f" and ratios times {found['calibration']:g}"
        rows = [
            [f"{low:.1f}", f"{n:,}", _number(predicted, 3), _number(observed, 3)]
            for low, n, predicted, observed in zip(
                found["from"], found["calls"], found["predicted"], found["observed"], strict=True
            )
        ]
        lines += [
            "",
            f"probabilities of methylation with a prior of {found['prior']:g}{factor}: expected calibration "
            f"error {_number(found['expected_calibration_error'])}{_bounds(data, 'expected_calibration_error')}, "
            f"Brier score {_number(found['brier_score'])}",
            *_balanced(data["reliability_balanced"]),
            *aligned(["from", "calls", "mean probability", "methylated"], rows),
        ]
    if "frequencies" in data:
        lines += ["", *_frequencies(data["frequencies"])] if lines else _frequencies(data["frequencies"])
    return lines


def _balanced(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    error, score = (_number(found[name]) for name in ("expected_calibration_error", "brier_score"))
    return [
        f"if {100 * found['prior']:g} % of the weight were at methylated sites: expected calibration error {error}, "
        f"Brier score {score}"
    ]


def _frequencies(found: dict[str, Any]) -> list[str]:
    if not found["sites"]:
        return [f"no site of the truth has {found['min_coverage']} or more calls beyond the threshold"]
    header = ["sites", "true", "called", "correlation", "RMS", "|difference|"]

    def row(name: str, one: dict[str, Any]) -> list[str]:
        means = (_number(one[key], 3) for key in ("true", "called"))
        return [
            name, f"{one['sites']:,}", *means, _number(one["correlation"]), _number(one["rms"], 3),
            _number(one["difference"], 3),
        ]  # fmt: skip

    fifths = [row(f"{one['from']:.1f} to {one['from'] + 0.2:.1f}", one) for one in found["by_frequency"]]
    coverage = [row(_interval(one), one) for one in found["by_coverage"]]
    return [
        *aligned(["true frequency", *header], [*fifths, row("all", found)]),
        "",
        *aligned(["calls of a site", *header], coverage),
        "",
        f"Pearson correlation over {found['sites']:,} sites of {found['min_coverage']} or more calls: "
        f"{_number(found['correlation'])}",
    ]


def _interval(one: dict[str, Any]) -> str:
    return f"{one['from']} and more" if one["to"] is None else f"{one['from']} to {one['to']}"


def charts_of(data: dict[str, Any]) -> list[Chart]:
    """Make the charts."""
    charts = []
    if "auc" in data:
        table = data["thresholds"]
        thresholds = [one["threshold"] for one in table]
        if data["auc"] is not None:
            roc = data["roc"]
            charts.append(
                Chart(
                    f"ROC curve, area {data['auc']:.4f}", roc["false_positive_rate"], FALSE_POSITIVES,
                    {"": roc["true_positive_rate"]}, TRUE_POSITIVES,
                )
            )  # fmt: skip
        measures = {
            name: [100 * one[name] for one in table]
            for name in ("precision", "recall", "specificity")
            if all(one[name] is not None for one in table)
        }
        charts.append(Chart("Of the calls kept", thresholds, THRESHOLD, measures, replace(PERCENT, name="% right")))
        kept = {"": [100 * (one["share_of_calls"] or 0) for one in table]}
        charts.append(Chart("Calls kept", thresholds, THRESHOLD, kept, replace(PERCENT, name="% of the calls")))
        found = data["reliability"]
        lines = {"observed": found["observed"], IDEAL: found["predicted"]}
        predicted, share = replace(SHARE, name="mean probability"), replace(SHARE, name="methylated share")
        charts.append(Chart(f"Reliability, prior {found['prior']:g}", found["predicted"], predicted, lines, share))
    if "frequencies" in data and data["frequencies"]["sites"]:
        fifths = data["frequencies"]["by_frequency"]
        points = {"called": [one["called"] for one in fifths], IDEAL: [one["true"] for one in fifths]}
        true, called = replace(SHARE, name="mean true frequency"), replace(SHARE, name="mean frequency")
        charts.append(Chart("Frequencies of sites", [one["true"] for one in fifths], true, points, called))
        coverage = data["frequencies"]["by_coverage"]
        calls = [shorten_interval(_interval(one)) for one in coverage]
        charts.append(
            Chart(
                "Difference of frequencies", calls, Axis("calls of a site"),
                {"": [one["rms"] for one in coverage]}, Axis("root mean square", least=0),
            )
        )  # fmt: skip
    return charts
