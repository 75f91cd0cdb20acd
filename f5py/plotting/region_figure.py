"""Figure of a locus with matplotlib: frequencies, depth, genes, and reads with calls by haplotype."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from f5py.plotting.figure import check_matplotlib
from f5py.plotting.figure_file import save_figure, settings
from f5py.plotting.genes import Genes
from f5py.plotting.pages import write_region_page
from f5py.plotting.region import RegionData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MODIFIED, _PLAIN, _UNDECIDED, _READ, _GREY = "#c2453a", "#2f6db3", "#b9c2cb", "#e3e8ed", "#555555"
_LINES = {1: "#7b3fa0", 2: "#1b8a6b", 0: "#555555"}
_OTHER_LINE = "#b8860b"

# Measures in inches.
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 11.35, 0.9, 0.45, 0.75, 0.85
_SHARES, _DEPTH, _GENE, _ROW, _BETWEEN = 1.5, 0.4, 0.24, 0.13, 0.32
#: Most marks across, of equal whole numbers of pixels; closer calls of a read share one.
_MARKS = 250
#: Length of the arrow tips of reads and genes.
_TIP = 0.06
#: Bins of the line of frequencies, with more sites than bins.
_STRETCHES = 200


def write_region_figure(data: RegionData, file: BinaryIO, kind: str) -> None:
    """Write the figure of a locus in one of `f5py.plotting.FORMATS`."""
    if kind == "html":
        write_region_page(data, file)
    else:
        save_figure(region_figure(data), file, kind)


def region_figure(data: RegionData) -> Figure:
    """Draw a locus."""
    check_matplotlib("plot-region")
    from matplotlib.figure import Figure

    groups = data.haplotypes()
    heights = [_ROW * (int(data.row[data.haplotype == group].max()) + 1) for group in groups]
    total = _BOTTOM + sum(heights) + _BETWEEN * len(groups) + _DEPTH + _BETWEEN + _genes_height(data) + _SHARES + _TOP
    with settings():
        figure = Figure(figsize=(_WIDTH, total))
        _draw(figure, data, groups, heights)
    return figure


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
    top -= _BETWEEN / 2 + _DEPTH
    _draw_depth(axes(top, _DEPTH), data)
    top -= _BETWEEN / 2
    if data.genes is not None and len(data.genes.start):
        top -= _genes_height(data)
        _draw_genes(axes(top, _genes_height(data) - _BETWEEN / 2), data.genes, (data.end - data.start) / inner)
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
        figure.text(_LEFT / _WIDTH + x, 0.17 / total, "\N{BLACK SQUARE}", color=colour, fontsize=9)
        figure.text(_LEFT / _WIDTH + x + 0.015, 0.17 / total, words, fontsize=9)
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


def _genes_height(data: RegionData) -> float:
    genes = data.genes
    return _GENE * (int(genes.row.max()) + 1) + _BETWEEN / 2 if genes is not None and len(genes.row) else 0.0


def _draw_shares(axes: Axes, data: RegionData, groups: list[int]) -> None:
    """Draw the share of modified calls by site, with points sized by calls, and a line for each haplotype.

    The line joins the sites, or the means of bins of many sites.
    """
    for group in groups:
        sites = data.shown_shares(group)
        if not len(sites.position):
            continue
        if len(sites.position) > _STRETCHES:
            smooth = data.smooth_shares(group, _STRETCHES)
            breaks = np.flatnonzero(np.diff(smooth.stretch) > 1) + 1
            x, y = np.insert(smooth.centre, breaks, np.nan), np.insert(smooth.share, breaks, np.nan)
            alpha = 0.25
        else:
            x, y, alpha = sites.position.astype(np.float64), sites.modified / sites.called, 0.9
        axes.plot(x + 1.5, y, color=_line(group), linewidth=1.2, clip_on=False)
        axes.scatter(
            sites.position + 1.5, sites.modified / sites.called, 10 * sites.called / sites.called.max(),
            color=_line(group), alpha=alpha, linewidths=0, clip_on=False,
        )  # fmt: skip
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1], ["0", "50", "100"])
    axes.set_ylabel("modified (%)")
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", labelbottom=False)


def _draw_depth(axes: Axes, data: RegionData) -> None:
    """Draw the depth as an area, binned in long regions."""
    n = min(len(data.depth), int(300 * (_WIDTH - _LEFT - _RIGHT)))
    edges = np.arange(n + 1) * len(data.depth) // n
    means = np.add.reduceat(data.depth, edges[:-1]) / np.diff(edges)
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


def _draw_reads(axes: Axes, data: RegionData, group: int, height: float, bases_per_inch: float) -> None:
    """Draw an arrow for each read, and marks of its calls.

    Calls that share a mark divide its area by state.
    """
    from matplotlib.collections import PolyCollection

    axes.set_ylim(height, 0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    mine = np.flatnonzero(data.haplotype == group)
    row, reverse = data.row[mine], data.reverse[mine]
    bars = _arrows(
        data.read_start[mine] + 1.0, data.read_end[mine] + 1.0, (row + 0.42) * _ROW, (row + 0.58) * _ROW,
        ~reverse & (data.read_end[mine] < data.end), reverse & (data.read_start[mine] > data.start),
        _TIP * bases_per_inch,
    )  # fmt: skip
    axes.add_collection(PolyCollection(list(bars), facecolors=_READ, edgecolors="#9aa8b6", linewidths=0.3))
    length = data.end - data.start
    n_cells = min(length, _MARKS)
    cells = data.cells(n_cells)
    these = data.haplotype[cells.read] == group
    width = length / n_cells
    start = data.start + 1 + cells.cell[these] * width
    counts = np.stack([part[these] for part in (cells.modified, cells.plain, cells.undecided)])
    ends = 0.12 + 0.76 * np.cumsum(counts, axis=0) / counts.sum(axis=0)
    begins = np.vstack([np.full(counts.shape[1], 0.12), ends[:-1]])
    row = data.row[cells.read[these]]
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
