"""Figure of a locus with matplotlib: frequencies, depth, genes, and reads with calls by haplotype."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from f5py.plotting.genes import Genes
from f5py.plotting.picture import require_matplotlib, settings, write_caption
from f5py.plotting.region import RegionData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MODIFIED, _PLAIN, _UNDECIDED, _READ, _GREY = "#c2453a", "#2f6db3", "#b9c2cb", "#e3e8ed", "#555555"
#: Colors of lines; the page's style has the same names.
_LINES = {
    "one": "#7b3fa0", "two": "#1b8a6b", "other": "#b8860b", "four": "#d0508f", "five": "#138a9c", "none": "#555555"
}  # fmt: skip

# Measures in inches.
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 11.35, 0.9, 0.45, 0.75, 0.85
_CAPTION = 0.23
_SHARES, _DEPTH, _GENE, _ROW, _BETWEEN = 1.5, 0.4, 0.24, 0.13, 0.32
#: Most marks across, of equal whole numbers of pixels; closer calls of a read share one.
_MARKS = 250
#: Colors of several samples.
LINE_COLOURS = tuple(_LINES.values())
#: Length of the arrow tips of reads and genes.
_TIP = 0.06
#: Sites of a line beyond which their points are pale.
_MANY_SITES = 200


def region_figure(data: RegionData) -> Figure:
    """Draw a locus."""
    require_matplotlib("f5py plot-region needs")
    from matplotlib.figure import Figure

    heights = {group: _ROW * (int(data.row[data.in_group(group)].max()) + 1) for group in data.groups()}
    n_samples = len(data.sample_names)
    total = (
        _BOTTOM + sum(heights.values()) + _BETWEEN * len(heights) + n_samples * (_DEPTH + _BETWEEN)
        + _genes_height(data) + _SHARES + _top(data)
    )  # fmt: skip
    with settings():
        figure = Figure(figsize=(_WIDTH, total))
        _draw(figure, data, heights)
    return figure


def _top(data: RegionData) -> float:
    return _TOP + _CAPTION * (len(data.caption) - 1) + (_CAPTION if len(data.lines) > 1 else 0)


def _draw(figure: Figure, data: RegionData, heights: dict[tuple[int, int], float]) -> None:
    total = figure.get_size_inches()[1]
    inner = _WIDTH - _LEFT - _RIGHT

    def axes(bottom: float, height: float) -> Axes:
        made = figure.add_axes((_LEFT / _WIDTH, bottom / total, inner / _WIDTH, height / total))
        made.set_xlim(data.start + 1, data.end + 1)  # a base fills the interval to the next one's number
        for side in ("top", "right"):
            made.spines[side].set_visible(False)
        return made

    top = total - _top(data) - _SHARES
    _draw_shares(axes(top, _SHARES), data)
    if data.genes is not None and len(data.genes.start):
        top -= _genes_height(data) + _BETWEEN / 2
        _draw_genes(axes(top, _genes_height(data) - _BETWEEN / 2), data.genes, (data.end - data.start) / inner)
    for i, (group, height) in enumerate(heights.items()):
        if i == 0 or group[0] != list(heights)[i - 1][0]:
            top -= _BETWEEN / (2 if i == 0 else 1) + _DEPTH
            _draw_depth(axes(top, _DEPTH), data, group[0])
            top -= _BETWEEN / 2 if i == 0 else 0
        top -= _BETWEEN + height
        rows = axes(top, height)
        _draw_reads(rows, data, group, height, (data.end - data.start) / inner)
        colour = _LINES[data.group_colour(group)] if len(data.lines) > 1 else _GREY
        rows.set_title(data.group_words(group), parse_math=False, loc="left", fontsize=9, color=colour, pad=3)
        rows.spines["bottom"].set_visible(i == len(heights) - 1)
        if i < len(heights) - 1:
            rows.set_xticks([])
    rows.set_xlabel(f"position on {data.contig}", parse_math=False)
    rows.ticklabel_format(axis="x", style="plain", useOffset=False)
    rows.xaxis.set_major_formatter("{x:,.0f}")
    for x, colour, words in (
        (0.0, _MODIFIED, "modified"), (0.12, _PLAIN, "unmodified"), (0.26, _UNDECIDED, "below the threshold"),
    ):  # fmt: skip
        figure.text(_LEFT / _WIDTH + x, 0.17 / total, "\N{BLACK SQUARE}", color=colour, fontsize=9)
        figure.text(_LEFT / _WIDTH + x + 0.015, 0.17 / total, words, fontsize=9)
    write_caption(figure, [data.region, *data.caption], _LEFT, _CAPTION)


def _genes_height(data: RegionData) -> float:
    genes = data.genes
    return _GENE * (int(genes.row.max()) + 1) + _BETWEEN / 2 if genes is not None and len(genes.row) else 0.0


def _draw_shares(axes: Axes, data: RegionData) -> None:
    """Draw the share of modified calls by site, with points sized by calls, and the lines."""
    low, high = data.limits
    for line in data.lines:
        sites, colour = line.sites, _LINES[line.colour]
        if not len(sites.position):
            continue
        axes.plot(line.position + 1.5, line.share, color=colour, linewidth=1.2, clip_on=False, label=line.words)
        axes.scatter(
            sites.position + 1.5, np.clip(sites.modified / sites.called, low, high),
            10 * sites.called / sites.called.max(), color=colour, linewidths=0, clip_on=False,
            alpha=0.9 if data.window == 1 and len(sites.position) <= _MANY_SITES else 0.25,
        )  # fmt: skip
    axes.set_ylim(low, high)
    middle = (low + high) / 2
    axes.set_yticks([low, middle, high], [f"{100 * share:.0f}" for share in (low, middle, high)])
    axes.set_ylabel("modified (%)")
    if len(data.lines) > 1:
        keys = axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1.01), ncols=6, frameon=False, fontsize=9, borderaxespad=0,
            columnspacing=1.6, handlelength=1.4,
        )  # fmt: skip
        for text in keys.get_texts():
            text.set_parse_math(False)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", labelbottom=False)


def _draw_depth(axes: Axes, data: RegionData, sample: int) -> None:
    """Draw the depth of a sample as an area, binned in long regions."""
    depth = data.depth[sample]
    n = min(len(depth), int(300 * (_WIDTH - _LEFT - _RIGHT)))
    edges = np.arange(n + 1) * len(depth) // n
    means = np.add.reduceat(depth, edges[:-1]) / np.diff(edges)
    most = max(int(data.depth.max()), 1)
    axes.stairs(means, data.start + 1 + edges, fill=True, color="#aab6c2", linewidth=0)
    axes.set_ylim(0, most)
    axes.set_yticks([0, most])
    axes.set_ylabel("depth", labelpad=10)
    axes.tick_params(axis="x", labelbottom=False)


def _draw_genes(axes: Axes, genes: Genes, bases_per_inch: float) -> None:
    """Draw an arrow for each gene, and its name."""
    from matplotlib.collections import PolyCollection

    height = _GENE * (int(genes.row.max()) + 1)
    axes.set_ylim(height, 0)
    axes.set_yticks([])
    axes.set_xticks([])
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    forward, backward = (np.array([strand == one for strand in genes.strand]) for one in "+-")
    middle, half = genes.row * _GENE + 0.18, 0.035
    shapes = _arrows(
        genes.start + 1.0, genes.end + 1.0, middle - half, middle + half, forward, backward, _TIP * bases_per_inch
    )
    axes.add_collection(PolyCollection(list(shapes), facecolors="#5b6b7b", edgecolors="none"))
    for start, row, name in zip(genes.start.tolist(), genes.row.tolist(), genes.name, strict=True):
        axes.text(
            start + 1, row * _GENE + 0.125, name, fontsize=7, va="bottom", color=_GREY, clip_on=True, parse_math=False
        )


def _draw_reads(axes: Axes, data: RegionData, group: tuple[int, int], height: float, bases_per_inch: float) -> None:
    """Draw an arrow for each read, and marks of its calls.

    Calls that share a mark divide its area by state.
    """
    from matplotlib.collections import PolyCollection

    axes.set_ylim(height, 0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    in_group = data.in_group(group)
    mine = np.flatnonzero(in_group)
    row, reverse = data.row[mine], data.reverse[mine]
    bars = _arrows(
        data.read_start[mine] + 1.0, data.read_end[mine] + 1.0, (row + 0.42) * _ROW, (row + 0.58) * _ROW,
        ~reverse & (data.read_end[mine] < data.end), reverse & (data.read_start[mine] > data.start),
        _TIP * bases_per_inch,
    )  # fmt: skip
    axes.add_collection(PolyCollection(list(bars), facecolors=_READ, edgecolors="#9aa8b6", linewidths=0.3))
    length = data.end - data.start
    n_cells = min(length, _MARKS)
    read, cell, counts = data.cells(n_cells)
    these = in_group[read]
    width = length / n_cells
    start = data.start + 1 + cell[these] * width
    counts = counts[:, these]
    ends = 0.12 + 0.76 * np.cumsum(counts, axis=0) / counts.sum(axis=0)
    begins = np.vstack([np.full(counts.shape[1], 0.12), ends[:-1]])
    row = data.row[read[these]]
    for colour, count, top, bottom in zip((_MODIFIED, _PLAIN, _UNDECIDED), counts, begins, ends, strict=True):
        some = count > 0
        boxes = _boxes(start[some], start[some] + width, (row + top)[some], (row + bottom)[some])
        axes.add_collection(PolyCollection(list(boxes), facecolors=colour, edgecolors="none"))


def _boxes(start: np.ndarray, end: np.ndarray, top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """Return the corners of boxes; `top` and `bottom` are in rows."""
    low, high = top * _ROW, bottom * _ROW
    return np.stack([start, low, start, high, end, high, end, low], axis=1).reshape(-1, 4, 2)


def _arrows(
    start: np.ndarray, end: np.ndarray, low: np.ndarray, high: np.ndarray, forward: np.ndarray, backward: np.ndarray,
    tip: float,
) -> np.ndarray:  # fmt: skip
    """Return the corners of boxes with a tip at the end if `forward`, at the start if `backward`."""
    tip = np.minimum(tip, (end - start) / 2)
    left, right = np.where(backward, start + tip, start), np.where(forward, end - tip, end)
    middle, out = (low + high) / 2, (high - low) / 2
    wide_low, wide_high = middle - 2 * out, middle + 2 * out
    wings_left = [np.where(backward, wide_low, low), np.where(backward, wide_high, high)]
    wings_right = [np.where(forward, wide_low, low), np.where(forward, wide_high, high)]
    corners = [
        left, low, right, low, right, wings_right[0], end, middle, right, wings_right[1], right, high,
        left, high, left, wings_left[1], start, middle, left, wings_left[0],
    ]  # fmt: skip
    return np.stack([np.broadcast_to(corner, start.shape) for corner in corners], axis=1).reshape(-1, 10, 2)
