"""Figure of several reads' signals over the same bases, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from f5py.plotting.figure import BASE_COLOURS, MODEL_COLOUR, OTHER_BASE
from f5py.plotting.picture import require_matplotlib, settings, write_caption
from f5py.plotting.pileup import Pileup, StrandPileup
from f5py.plotting.region_figure import LINE_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Measures in inches.
_WIDTH_PER_BASE, _LEAST_WIDTH, _MOST_WIDTH = 0.17, 10.0, 60.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 0.9, 0.3, 0.55, 0.6
_PANEL, _STRIP, _BETWEEN, _CAPTION = 2.6, 0.22, 0.45, 0.23
_COLOUR_ALONE = "#14375e"


def pileup_figure(data: Pileup) -> Figure:
    """Draw the reads of each strand over the bases."""
    require_matplotlib("f5py plot-region needs")
    from matplotlib.figure import Figure

    n_bases = data.end - data.start
    inner = min(max(n_bases * _WIDTH_PER_BASE, _LEAST_WIDTH), _MOST_WIDTH)
    width = inner + _LEFT + _RIGHT
    top = _TOP + _CAPTION * len(data.caption)
    height = top + _BOTTOM + len(data.strands) * (_PANEL + _STRIP + _BETWEEN)
    with settings():
        figure = Figure(figsize=(width, height))
        write_caption(figure, [data.region, *data.caption], _LEFT, _CAPTION)
        y = height - top
        for strand in data.strands:
            y -= _BETWEEN + _STRIP
            strip = figure.add_axes((_LEFT / width, y / height, inner / width, _STRIP / height))
            _draw_letters(strip, data, strand, inner * 72 / n_bases)
            strip.set_title(data.words(strand), loc="left", fontsize=9, pad=3)
            y -= _PANEL
            axes = figure.add_axes((_LEFT / width, y / height, inner / width, _PANEL / height))
            _draw_traces(axes, data, strand)
        axes.set_xlabel(f"position on {data.contig}", parse_math=False)
    return figure


def _draw_letters(axes: Axes, data: Pileup, strand: StrandPileup, points: float) -> None:
    """Draw the bases of a strand as colored letters; `points` are the width of one."""
    axes.set_xlim(data.start + 1, data.end + 1)
    axes.set_ylim(0, 1)
    axes.axis("off")
    letters = strand.letters.tobytes().decode("latin-1").upper()
    for kind in sorted(set(letters) - {"\0"}):
        places = [(data.start + 1 + i, 1) for i, letter in enumerate(letters) if letter == kind]
        axes.broken_barh(places, (0, 1), facecolor=BASE_COLOURS.get(kind, OTHER_BASE), edgecolor="white", linewidth=0.3)
        for at, _ in places if points >= 7 else ():
            size = min(points / 0.75, 10)
            axes.text(at + 0.5, 0.45, kind, fontsize=size, color="white", fontweight="bold", ha="center", va="center")


def _draw_traces(axes: Axes, data: Pileup, strand: StrandPileup) -> None:
    """Draw the expected levels, a thin line for each read, and the medians."""
    edges = np.arange(data.start, data.end + 1) + 1.0
    low, high = strand.level - strand.level_stdv, strand.level + strand.level_stdv
    axes.stairs(high, edges, baseline=low, fill=True, color=MODEL_COLOUR, alpha=0.3, linewidth=0)
    axes.stairs(strand.level, edges, baseline=None, color=MODEL_COLOUR, linewidth=1.5)
    several = len(data.sample_names) > 1
    alpha = min(0.6, max(0.08, 6 / max(len(strand.traces), 1)))
    for trace in strand.traces:
        colour = _colour(data, trace.sample)
        if data.kind == "events":
            axes.stairs(trace.mean, edges, baseline=None, color=colour, linewidth=0.7, alpha=alpha)
            continue
        gaps = np.flatnonzero(np.diff(np.floor(trace.position)) > 1) + 1
        x, y = (np.insert(one.astype(np.float64), gaps, np.nan) for one in (trace.position + 1, trace.current))
        axes.plot(x, y, color=colour, linewidth=0.6, alpha=alpha)
    for i, median in enumerate(strand.medians(len(data.sample_names))):
        label = data.sample_names[i] if several else ""
        axes.hlines(median, edges[:-1], edges[1:], color=_colour(data, i), linewidth=2, label=label)
    axes.set_xlim(data.start + 1, data.end + 1)
    axes.set_ylim(*data.limits())
    axes.set_ylabel("current (pA)")
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.ticklabel_format(axis="x", style="plain", useOffset=False)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    if several:
        for text in axes.legend(loc="upper right", fontsize=8, ncols=4).get_texts():
            text.set_parse_math(False)


def _colour(data: Pileup, sample: int) -> str:
    return LINE_COLOURS[sample % len(LINE_COLOURS)] if len(data.sample_names) > 1 else _COLOUR_ALONE
