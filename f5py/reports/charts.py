"""Charts of reports, drawn as SVG in HTML or with matplotlib."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from f5py.options.output_names import kind_of_several
from f5py.plotting.picture import KINDS, RC, require_matplotlib, save_figure
from f5py.reports.axis import Axis
from f5py.reports.html_report import section
from f5py.reports.svg_charts import IDEAL, bar_chart, line_chart, scatter_chart, sides_of_labels

#: Extensions of reports.
REPORT_KINDS = ("html", "json", *KINDS)
_COLORS = ("#2f6db3", "#c2453a", "#3a8f4d", "#8053a8", "#96690a", "#1a7f89")
_COLUMNS, _SIZE = 2, (5.6, 3.4)
_SCATTER_SIZE = (8.4, 5.0)  # with the legend
_MOST_TICKS = 12
_DOTS_PER_INCH = 130


@dataclass(frozen=True)
class Chart:
    """Bar chart of stacked series over labels, or line chart over numbers."""

    title: str
    places: Sequence[Any]
    across: Axis
    series: Mapping[str, Sequence[float]]
    up: Axis
    ticks: Sequence[tuple[float, str]] | None = None  # see `f5py.reports.svg_charts.bar_chart`

    @property
    def has_bars(self) -> bool:
        """Whether places are labels."""
        return bool(self.places) and isinstance(self.places[0], str)

    def html(self) -> str:
        """Draw the chart as a section of a page."""
        if self.has_bars:
            return section(self.title, bar_chart(self.places, self.series, self.across.name, self.up, self.ticks))
        return section(self.title, line_chart(self.places, self.series, self.across, self.up))


@dataclass(frozen=True)
class Scatter:
    """Points of several series on two axes of one range, some of them marked."""

    title: str
    points: Mapping[str, Sequence[tuple[float, float]]]
    marked: Sequence[tuple[float, float, str]]  # with names, from the most important on
    across: Axis
    up: Axis

    def html(self) -> str:
        """Draw the chart as a section of a page."""
        return section(self.title, scatter_chart(self.points, self.marked, self.across, self.up))


def shorten_interval(interval: str) -> str:
    """Shorten the label of an interval."""
    return interval.replace(" and more", "+").replace(" to ", "-")


def report_kind(path: str) -> str:
    """Return the format of a report by its file name, or raise `UsageError`."""
    return kind_of_several("--report", path, REPORT_KINDS)


def check_can_draw(kinds: Sequence[str]) -> None:
    """Raise `MissingDependencyError` if a format needs matplotlib, which is not installed."""
    if set(kinds) & set(KINDS):
        require_matplotlib("figures of reports, other than .html and .json, need")


def write_charts(charts: Sequence[Chart | Scatter], file: BinaryIO, kind: str, title: str) -> None:
    """Draw a grid of charts with matplotlib; `kind` is png, svg or pdf."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.style import context

    with context(["default", RC]):
        n_columns = min(_COLUMNS, len(charts))
        n_rows = -(-len(charts) // n_columns)
        width, height = _SCATTER_SIZE if isinstance(charts[0], Scatter) else _SIZE
        figure = Figure(figsize=(n_columns * width, n_rows * height + 0.5), layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(title, parse_math=False)
        for axes in (grid := figure.subplots(n_rows, n_columns, squeeze=False).ravel())[len(charts) :]:
            axes.set_visible(False)
        for axes, chart in zip(grid, charts, strict=False):
            _draw(axes, chart)
        save_figure(figure, file, kind, _DOTS_PER_INCH)


def _draw(axes: Any, chart: Chart | Scatter) -> None:
    axes.set_title(chart.title, fontsize=10, parse_math=False)
    axes.set_xlabel(chart.across.name, fontsize=9)
    axes.set_ylabel(chart.up.name, fontsize=9)
    axes.tick_params(labelsize=8)
    if isinstance(chart, Scatter):
        _draw_scatter(axes, chart)
        return
    if chart.has_bars:
        base = [0.0] * len(chart.places)
        for (name, heights), color in zip(chart.series.items(), _COLORS, strict=False):
            axes.bar(range(len(base)), heights, bottom=base, color=color, label=name, width=0.85)
            base = [low + height for low, height in zip(base, heights, strict=True)]
        _write_places(axes, chart)
    else:
        for (name, heights), color in zip(chart.series.items(), _COLORS, strict=False):
            style = {"color": "#777777", "linestyle": "--"} if name == IDEAL else {"color": color, "marker": "o"}
            axes.plot(chart.places, heights, label=name, markersize=2.5, linewidth=1.2, **style)
        axes.grid(color="#e6e6e6", linewidth=0.6)
        axes.set_xlim(*chart.across.limits(chart.places))
    totals = [sum(column) for column in zip(*chart.series.values(), strict=True)]
    values = [0.0, *totals] if chart.has_bars else [value for one in chart.series.values() for value in one]
    axes.set_ylim(*chart.up.limits(values))
    if len(chart.series) > 1:
        axes.legend(fontsize=8, frameon=False)


def _draw_scatter(axes: Any, chart: Scatter) -> None:
    limits = chart.across.limits([value for one in chart.points.values() for point in one for value in point])
    axes.plot(limits, limits, color="#777777", linestyle="--", linewidth=1)
    style = {"s": 5, "linewidths": 0, "rasterized": True}
    for (name, points), color in zip(chart.points.items(), _COLORS, strict=False):
        axes.scatter(*zip(*points, strict=True) if points else ((), ()), color=color, label=name, **style)
    ring = {"facecolors": "none", "edgecolors": "black", "linewidths": 0.8}
    sides = sides_of_labels([mark[:2] for mark in chart.marked], (limits[1] - limits[0]) / 25)
    for i, ((x, y, name), (right, up)) in enumerate(zip(chart.marked, sides, strict=True)):
        axes.scatter([x], [y], s=30, label=f"{i + 1}: {name}", **ring)
        place = {"xytext": (4 * right, 4 * up), "ha": "left" if right > 0 else "right"}
        axes.annotate(
            f"{i + 1}", (x, y), textcoords="offset points", fontsize=8, va="bottom" if up > 0 else "top", **place
        )
    axes.set_aspect("equal")
    axes.set(xlim=limits, ylim=limits)
    axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.02, 1))


def _write_places(axes: Any, chart: Chart) -> None:
    """Write the labels below the bars."""
    if chart.ticks is not None:
        axes.set_xticks([at - 0.5 for at, _ in chart.ticks], [text for _, text in chart.ticks])
        return
    step = -(-len(chart.places) // _MOST_TICKS)
    turned = 90 if max(map(len, chart.places)) > 5 else 0
    axes.set_xticks(range(0, len(chart.places), step), chart.places[::step], rotation=turned)
