"""The figure of a read's signal, events and bases, drawn with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from f5py.errors import F5pyError
from f5py.plotting.data import PlotData
from f5py.plotting.picture import require_matplotlib, settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colors that other figures share.
BASE_COLOURS = {"A": "#3a9d3a", "C": "#3b6fc4", "G": "#e08a1e", "T": "#d1383d", "U": "#d1383d"}
OTHER_BASE = "#888888"
_SIGNAL, _MATCH, _BAD = "#9a9a9a", "#14375e", "#0d8585"
_UNALIGNED, MODEL_COLOUR, _GREY = "#b06fc9", "#e08a1e", "#555555"

# Measures in inches.
_WIDTH_PER_KMER, _MIN_WIDTH, _MAX_WIDTH = 0.17, 10.0, 120.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 0.8, 0.25, 1.0, 0.95
_STRIP, _SKIPPED_ROW, _SIGNAL_HEIGHT = 0.24, 0.18, 3.6
# Font sizes in points; smaller letters are omitted.
_LARGEST_LETTER, _SMALLEST_LETTER = 10.0, 4.0
_LETTER_WIDTH = 0.75  # of the font size
#: Least distance, in inches, and steps of labeled positions.
_TICK_DISTANCE = 0.55
_TICK_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
#: Most k-mers of a figure.
MAX_KMERS = 5000


def read_figure(data: PlotData, seconds: bool = False) -> Figure:
    """Draw a read, with an axis of samples or seconds."""
    if len(data.position) > MAX_KMERS:
        raise F5pyError(
            f"-w: the region has {len(data.position)} k-mers of read {data.name}, too many for a figure; choose one of "
            f"at most {MAX_KMERS}, or write .html, which can be zoomed"
        )
    require_matplotlib("f5py plot needs")
    from matplotlib.figure import Figure

    with settings():
        width = min(max(len(data.position) * _WIDTH_PER_KMER, _MIN_WIDTH - _LEFT - _RIGHT), _MAX_WIDTH)
        height = _BOTTOM + _SIGNAL_HEIGHT + _STRIP + _SKIPPED_ROW + _TOP
        figure = Figure(figsize=(width + _LEFT + _RIGHT, height))
        _draw(figure, data, width, seconds)
    return figure


def _draw(figure: Figure, data: PlotData, width: float, seconds: bool) -> None:
    """Fill the figure; `width` of the axes is in inches."""
    from matplotlib.ticker import MaxNLocator

    total_width, total_height = figure.get_size_inches()

    def axes(bottom: float, height: float) -> Axes:
        return figure.add_axes((_LEFT / total_width, bottom / total_height, width / total_width, height / total_height))

    unit = 1 / data.sampling_rate if seconds else 1.0
    signal = axes(_BOTTOM, _SIGNAL_HEIGHT)
    strip = axes(_BOTTOM + _SIGNAL_HEIGHT, _STRIP + _SKIPPED_ROW)
    first, end = data.first_sample * unit, (data.first_sample + len(data.current)) * unit
    for one in (signal, strip):
        one.set_xlim(first, end)
    _draw_signal(signal, data, unit)
    # Where k-mers are narrower than letters, those without events are not shown.
    roomy = width * 72 / len(data.position) >= _SMALLEST_LETTER
    _draw_bases(strip, data, unit, width * 72 / (end - first), roomy)
    _label_positions(strip, data, unit, width / (end - first), roomy)

    signal.set_ylabel("current (pA)")
    signal.set_xlabel(data.signal_words(seconds), loc="left")
    signal.xaxis.set_major_locator(MaxNLocator(max(int(width), 5), steps=[1, 2, 2.5, 5, 10], integer=not seconds))
    if not seconds:
        signal.ticklabel_format(axis="x", style="plain", useOffset=False)
    signal.legend(
        loc="upper left", bbox_to_anchor=(0, -0.155), ncols=6, frameon=False, fontsize=9, borderaxespad=0,
        columnspacing=1.6, handlelength=1.8,
    )  # fmt: skip
    for text, above, size, weight in ((data.title, 0.26, 12, "bold"), (data.subtitle, 0.50, 9.5, "normal")):
        figure.text(
            _LEFT / total_width, 1 - above / total_height, text,
            fontsize=size, fontweight=weight, va="center", parse_math=False,
        )  # fmt: skip


def _draw_signal(axes: Axes, data: PlotData, unit: float) -> None:
    """Draw samples, expected levels and events."""
    from matplotlib.collections import PolyCollection

    samples = np.arange(data.first_sample, data.first_sample + len(data.current))
    axes.plot((samples + 0.5) * unit, data.current, color=_SIGNAL, linewidth=0.6, label="signal", zorder=1)

    here = ~data.skipped
    left, right = data.kmer_start[here] * unit, data.kmer_end[here] * unit
    level, stdv = data.level[here], data.level_stdv[here]
    low, high = level - stdv, level + stdv
    corners = np.stack([left, low, left, high, right, high, right, low], axis=1).reshape(-1, 4, 2)
    bands = PolyCollection(list(corners), facecolors=MODEL_COLOUR, edgecolors="none", alpha=0.3, zorder=2)
    bands.set_label("expected level \N{PLUS-MINUS SIGN} stdv")
    axes.add_collection(bands)
    axes.hlines(level, left, right, color=MODEL_COLOUR, linewidth=1.2, zorder=3)

    start, end = data.event_start * unit, (data.event_start + data.event_length) * unit
    axes.stairs(
        data.event_mean, np.append(start, end[-1]), baseline=None, color=_MATCH, linewidth=0.5, alpha=0.5, zorder=4
    )
    unaligned = data.event_kmer < 0
    for label, colour, these in (
        ("event", _MATCH, ~unaligned & ~data.event_bad),
        ("event that fits no k-mer", _BAD, data.event_bad),
        ("event that is not aligned", _UNALIGNED, unaligned),
    ):
        if these.any():
            axes.hlines(
                data.event_mean[these], start[these], end[these], color=colour, linewidth=1.8, zorder=5, label=label
            )
    for x in data.kmer_start[data.new_segment] * unit:
        axes.axvline(x, color=_GREY, linestyle="--", linewidth=1)
    axes.set_ylim(*data.current_limits())
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)


def _draw_bases(axes: Axes, data: PlotData, unit: float, points: float, roomy: bool) -> None:
    """Draw a colored letter for each base, and skipped ones above; `points` are per unit of x."""
    axes.set_ylim(0, _STRIP + _SKIPPED_ROW)
    axes.set_yticks([])
    for side in ("left", "right", "top", "bottom"):
        axes.spines[side].set_visible(False)
    left, width = data.kmer_start * unit, (data.kmer_end - data.kmer_start) * unit
    letters = data.letter.tobytes().decode("latin-1").upper()
    kinds = np.array(list(letters))
    here = ~data.skipped
    for kind in np.unique(kinds[here]).tolist():
        these = here & (kinds == kind)
        fields = list(zip(left[these].tolist(), width[these].tolist(), strict=True))
        colour = BASE_COLOURS.get(kind, OTHER_BASE)
        axes.broken_barh(fields, (0, _STRIP), facecolor=colour, edgecolor="white", linewidth=0.5 if roomy else 0)
    sizes = np.minimum(width * points / _LETTER_WIDTH, _LARGEST_LETTER)
    for i in np.flatnonzero(here & (sizes >= _SMALLEST_LETTER)).tolist():
        axes.text(
            left[i] + width[i] / 2, 0.48 * _STRIP, letters[i], fontsize=sizes[i], color="white", fontweight="bold",
            ha="center", va="center",
        )  # fmt: skip
    if not roomy:
        return
    places, first = np.unique(left[data.skipped], return_index=True)
    missing = np.flatnonzero(data.skipped)
    for x, begin, end in zip(places, first, np.append(first, len(missing))[1:], strict=True):
        axes.text(
            x, _STRIP + 0.35 * _SKIPPED_ROW, "".join(letters[i] for i in missing[begin:end]), fontsize=6.5,
            color=_GREY, ha="center", va="center", clip_on=True,
        )  # fmt: skip
        axes.plot([x, x], [_STRIP, _STRIP + 0.03], color=_GREY, linewidth=0.6)


def _label_positions(axes: Axes, data: PlotData, unit: float, inches: float, roomy: bool) -> None:
    """Label positions above their bases; `inches` are per unit of x."""
    per_position = len(data.current) * unit * inches / len(data.position)
    step = next((n for n in _TICK_STEPS if n * per_position >= _TICK_DISTANCE), _TICK_STEPS[-1])
    numbers = data.position + 1
    these = ~data.skipped & (numbers % step == 0)
    x = (data.kmer_start + data.kmer_end)[these] * unit / 2
    labels = numbers[these].tolist()
    kept: list[int] = []
    for i, place in enumerate(x.tolist()):  # k-mers of short events may be close together
        if not kept or (place - x[kept[-1]]) * inches >= 0.075 * len(f"{labels[i]:,}") + 0.1:
            kept.append(i)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xticks(x[kept], [f"{labels[i]:,}" for i in kept], fontsize=8)
    axes.tick_params(axis="x", length=2, pad=1)
    axes.set_xlabel(
        f"{data.position_words}{'; small letters: k-mers without events' if roomy and data.skipped.any() else ''}",
        loc="left", fontsize=9, parse_math=False,
    )  # fmt: skip
