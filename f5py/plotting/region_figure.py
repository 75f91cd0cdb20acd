"""The figure of a locus: frequencies above, and below them the reads with their calls, haplotypes apart."""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING, BinaryIO
from xml.etree import ElementTree

import numpy as np

from f5py.plotting.figure import check_matplotlib
from f5py.plotting.figure_file import RC, save_figure
from f5py.plotting.region import RegionData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SVG = "http://www.w3.org/2000/svg"
_MODIFIED, _PLAIN, _UNDECIDED, _READ, _GREY = "#c2453a", "#2f6db3", "#b9c2cb", "#e3e8ed", "#555555"
_LINES = {1: "#7b3fa0", 2: "#1b8a6b", 0: "#555555"}
_OTHER_LINE = "#b8860b"

# Measures in inches.
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 11.0, 0.9, 0.2, 0.75, 0.85
_SHARES, _ROW, _BETWEEN = 1.5, 0.13, 0.32
_MARK = 0.045  # at least
_STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; max-width: 1500px; padding: 1rem; background: #f4f6f8; color: #1c2733;
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.2rem; margin: .2rem 0; overflow-wrap: anywhere; }
p { color: #5b6b7b; }
figure { margin: 0; background: #fff; border: 1px solid #d9e0e7; border-radius: 6px; overflow-x: auto; }
svg { display: block; width: 100%; height: auto; min-width: 640px; }
.hover { fill: #1c2733; fill-opacity: 0; stroke: none; pointer-events: all; }
.hover:hover { fill-opacity: .25; }
"""


def write_region_figure(data: RegionData, file: BinaryIO, kind: str) -> None:
    """Draw a locus and write the figure; the same data give the same bytes.

    Parameters
    ----------
    data : RegionData
    file : binary file
    kind : str
        One of `f5py.plotting.FORMATS`.

    Raises
    ------
    MissingDependencyError
        matplotlib is not installed.
    """
    check_matplotlib("plot-region")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.style import context

    groups = data.haplotypes()
    heights = [_ROW * (int(data.row[data.haplotype == group].max()) + 1) for group in groups]
    total = _BOTTOM + sum(heights) + _BETWEEN * len(groups) + _SHARES + _TOP
    with context(["default", RC]):
        figure = Figure(figsize=(_WIDTH, total))
        FigureCanvasAgg(figure)
        _draw(figure, data, groups, heights)
        if kind == "html":
            _write_html(figure, data, groups, file)
            return
        save_figure(figure, file, kind)


def _draw(figure: Figure, data: RegionData, groups: list[int], heights: list[float]) -> None:
    total = figure.get_size_inches()[1]
    inner = _WIDTH - _LEFT - _RIGHT

    def axes(bottom: float, height: float) -> Axes:
        made = figure.add_axes((_LEFT / _WIDTH, bottom / total, inner / _WIDTH, height / total))
        made.set_xlim(data.start + 1, data.end + 1)  # a base fills the interval to the next one's number
        for side in ("top", "right"):
            made.spines[side].set_visible(False)
        return made

    top = total - _TOP - _SHARES
    shares = axes(top, _SHARES)
    _draw_shares(shares, data, groups)
    for i, (group, height) in enumerate(zip(groups, heights, strict=True)):
        top -= _BETWEEN + height
        rows = axes(top, height)
        _draw_reads(rows, data, group, height, (data.end - data.start) / inner)
        n_reads = int((data.haplotype == group).sum())
        words = f"{n_reads} {'read' if n_reads == 1 else 'reads'}"
        if groups != [0]:
            words = f"haplotype {data.haplotype_names[group]}: {words}" if group else f"without haplotype: {words}"
        rows.set_title(
            words, parse_math=False, loc="left", fontsize=9, color=_line(group) if len(groups) > 1 else _GREY, pad=3
        )
        rows.spines["bottom"].set_visible(i == len(groups) - 1)
        if i < len(groups) - 1:
            rows.set_xticks([])
    rows.set_xlabel(f"position on {data.contig}", parse_math=False)
    rows.ticklabel_format(axis="x", style="plain", useOffset=False)
    rows.xaxis.set_major_formatter("{x:,.0f}")
    for x, colour, words in (
        (0.0, _MODIFIED, "modified"), (0.12, _PLAIN, "unmodified"), (0.26, _UNDECIDED, "below the threshold"),
    ):  # fmt: skip
        figure.text(_LEFT / _WIDTH + x, 0.17 / total, "\N{BLACK SQUARE} " + words, color=colour, fontsize=9)
    left_out = f"; {data.n_left_out} more reads are not drawn" if data.n_left_out else ""
    for words, above, size, weight in (
        (data.region, 0.24, 12, "bold"),
        (f"{data.modification}, threshold {data.threshold:g} (log-odds){left_out}", 0.47, 9.5, "normal"),
    ):
        figure.text(
            _LEFT / _WIDTH, 1 - above / total, words, fontsize=size, fontweight=weight, va="center", parse_math=False
        )


def _line(group: int) -> str:
    return _LINES.get(group, _OTHER_LINE)


def _draw_shares(axes: Axes, data: RegionData, groups: list[int]) -> None:
    """Share of modified calls by site, a line for each haplotype."""
    for group in groups:
        sites = data.shares(group)
        if len(sites.position):
            axes.plot(
                sites.position + 1.5, sites.modified / sites.called, color=_line(group), linewidth=1,
                marker="o", markersize=3, clip_on=False,
            )  # fmt: skip
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1], ["0", "50", "100"])
    axes.set_ylabel("modified (%)")
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", labelbottom=False)


def _draw_reads(axes: Axes, data: RegionData, group: int, height: float, bases_per_inch: float) -> None:
    """A bar for each read and a mark for each of its calls."""
    from matplotlib.collections import PolyCollection

    axes.set_ylim(height, 0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    mine = np.flatnonzero(data.haplotype == group)
    bars = _boxes(data.read_start[mine] + 1, data.read_end[mine] + 1, data.row[mine], 0.42, 0.58)
    axes.add_collection(PolyCollection(list(bars), facecolors=_READ, edgecolors="#9aa8b6", linewidths=0.3))
    is_mine = data.haplotype[data.marks.read] == group
    for colour, these in (
        (_UNDECIDED, np.abs(data.marks.ratio) < data.threshold),
        (_PLAIN, data.marks.ratio <= -data.threshold),
        (_MODIFIED, data.marks.ratio >= data.threshold),
    ):
        these = these & is_mine
        start, end = _mark_ends(data.marks.position[these], bases_per_inch)
        boxes = _boxes(start, end, data.row[data.marks.read[these]], 0.12, 0.88)
        axes.add_collection(PolyCollection(list(boxes), facecolors=colour, edgecolors="none"))


def _mark_ends(position: np.ndarray, bases_per_inch: float) -> tuple[np.ndarray, np.ndarray]:
    """Where marks of sites begin and end, so that they can be seen; in 1-based positions."""
    half = max(0.5, _MARK * bases_per_inch / 2)
    return position + 1.5 - half, position + 1.5 + half


def _boxes(start: np.ndarray, end: np.ndarray, row: np.ndarray, top: float, bottom: float) -> np.ndarray:
    """Corners of boxes; `top` and `bottom` in shares of a row."""
    low, high = (row + top) * _ROW, (row + bottom) * _ROW
    return np.stack([start, low, start, high, end, high, end, low], axis=1).reshape(-1, 4, 2)


def _write_html(figure: Figure, data: RegionData, groups: list[int], file: BinaryIO) -> None:
    """The figure with a tooltip for every call."""
    drawn = io.BytesIO()
    save_figure(figure, drawn, "svg")
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    svg = ElementTree.fromstring(drawn.getvalue())
    for metadata in svg.findall(f"{{{_SVG}}}metadata"):
        svg.remove(metadata)
    svg.attrib.pop("width")
    svg.attrib.pop("height")
    svg.append(_tooltips(figure, data, groups))
    title = escape(f"{data.region} {data.modification}")
    file.write(
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"/>\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<figure>\n"
        f"{ElementTree.tostring(svg, encoding='unicode')}\n</figure>\n"
        "<p>Point at a call for its read and its numbers.</p>\n</body>\n</html>\n".encode()
    )


def _tooltips(figure: Figure, data: RegionData, groups: list[int]) -> ElementTree.Element:
    """An invisible rectangle with a tooltip over every call."""
    height = figure.get_size_inches()[1] * 72  # the SVG's unit is a point
    boxes = [axes.get_position() for axes in figure.axes[1:]]
    inner = (_WIDTH - _LEFT - _RIGHT) * 72
    scale = inner / (data.end - data.start)
    group = ElementTree.Element(f"{{{_SVG}}}g", {"id": "tooltips"})
    start, end = _mark_ends(data.marks.position, (data.end - data.start) / (inner / 72))
    left = _LEFT * 72 + (start - data.start - 1) * scale
    tops = np.array([(1 - box.y1) * height for box in boxes])
    which = np.searchsorted(np.sort(groups), data.haplotype[data.marks.read])
    place = np.array([groups.index(one) for one in sorted(groups)])[which]
    top = tops[place] + data.row[data.marks.read] * _ROW * 72
    for i in range(len(left)):
        read = int(data.marks.read[i])
        rectangle = ElementTree.SubElement(
            group,
            f"{{{_SVG}}}rect",
            {
                "class": "hover",
                "x": f"{left[i]:.2f}",
                "y": f"{top[i]:.2f}",
                "width": f"{(end[i] - start[i]) * scale:.2f}",
                "height": f"{_ROW * 72:.2f}",
            },
        )
        ratio = float(data.marks.ratio[i])
        ElementTree.SubElement(rectangle, f"{{{_SVG}}}title").text = (
            f"{data.names[read]} ({'-' if data.reverse[read] else '+'})\nposition {data.marks.position[i] + 1:,}\n"
            f"probability {1 / (1 + np.exp(-ratio)):.3f}, log-odds {ratio:.2f}"
        )
    return group
