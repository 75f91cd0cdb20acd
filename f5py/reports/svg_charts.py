"""Small charts as SVG, for pages that load nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT = 480, 220
_LEFT, _BOTTOM, _TOP, _RIGHT = 52, 34, 10, 10
#: Of a letter of a label.
_LETTER_WIDTH = 6.5
_WIDEST_BAR = 56.0


def bar_chart(labels: Sequence[str], series: Mapping[str, Sequence[float]], axis: str) -> str:
    """Draw bars beside each other; those of several series stand on top of each other.

    Parameters
    ----------
    labels : sequence of str
        Of the places; not all are written if there are many.
    series : mapping of str to sequence of float
        Heights by the name of the series; every bar tells its label, series and height when it is pointed at.
    axis : str
        What the labels are.
    """
    n = len(labels)
    totals = [sum(column) for column in zip(*series.values(), strict=True)]
    most = max(totals, default=0) or 1
    slot = (_WIDTH - _LEFT - _RIGHT) / max(n, 1)
    width = min(slot * 0.84, _WIDEST_BAR)
    parts = []
    base = [0.0] * n
    for which, (name, heights) in enumerate(series.items()):
        for i, height in enumerate(heights):
            top, size = _y(base[i] + height, most), height / most * _plot_height()
            base[i] += height
            if height:
                parts.append(
                    f'<rect class="s{which}" x="{_LEFT + (i + 0.5) * slot - width / 2:.1f}" y="{top:.1f}" '
                    f'width="{width:.1f}" height="{max(size, 0.5):.1f}"><title>{escape(labels[i])}: '
                    f"{escape(name)} {height:,.10g}</title></rect>"
                )
    longest = max(map(len, labels), default=1)
    fitting = max(int((_WIDTH - _LEFT - _RIGHT) / ((longest + 1) * _LETTER_WIDTH)), 1)
    centres = [(_LEFT + (i + 0.5) * slot, labels[i]) for i in range(0, n, max(-(-n // fitting), 1))]
    return _framed("".join(parts), centres, 0.0, most, axis)


def line_chart(x: Sequence[float], series: Mapping[str, Sequence[float]], axis: str) -> str:
    """Draw lines through points; those of several series have their names in a corner."""
    values = [value for y in series.values() for value in y]
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = (high - low) * 0.1 or abs(high) * 0.1 or 1.0
    low, high = max(low - margin, 0.0) if low >= 0 else low - margin, high + margin
    least, most = min(min(x, default=0.0), 0.0), max(x, default=1.0) or 1.0
    span = most - least
    parts = []
    for which, (name, y) in enumerate(series.items()):
        points = [
            (_LEFT + (one - least) / span * (_WIDTH - _LEFT - _RIGHT), _y(value - low, high - low))
            for one, value in zip(x, y, strict=True)
        ]
        drawn = " ".join(f"{across:.1f},{down:.1f}" for across, down in points)
        parts.append(f'<polyline class="l{which}" points="{drawn}"/>')
        parts += [
            f'<circle class="s{which}" cx="{across:.1f}" cy="{down:.1f}" r="2.5">'
            f"<title>{escape(name)}{': ' if name else ''}{_tick(one, most)}: {value:.4g}</title></circle>"
            for (across, down), one, value in zip(points, x, y, strict=True)
        ]
        if len(series) > 1:
            parts.append(
                f'<circle class="s{which}" cx="{_WIDTH - _RIGHT - 120}" cy="{_TOP + 6 + 15 * which}" r="4"/>'
                f'<text x="{_WIDTH - _RIGHT - 111}" y="{_TOP + 10 + 15 * which}">{escape(name)}</text>'
            )
    ticks = [
        (_LEFT + share * (_WIDTH - _LEFT - _RIGHT), _tick(least + share * span, most)) for share in (0.0, 0.5, 1.0)
    ]
    return _framed("".join(parts), ticks, low, high, axis)


def _tick(value: float, most: float) -> str:
    """A number on an axis that goes up to `most`."""
    return f"{value:,.0f}" if most >= 10 else f"{value:.2g}"


def _plot_height() -> float:
    return _HEIGHT - _TOP - _BOTTOM


def _y(value: float, most: float) -> float:
    return _TOP + (1 - value / most) * _plot_height()


def _framed(inside: str, ticks: Sequence[tuple[float, str]], low: float, high: float, axis: str) -> str:
    """The SVG with axes, their numbers and the name of the lower one."""
    across = "".join(
        f'<text x="{place:.1f}" y="{_HEIGHT - _BOTTOM + 13}" text-anchor="middle">{escape(text)}</text>'
        for place, text in ticks
    )
    up = "".join(
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{_y(share, 1):.1f}" y2="{_y(share, 1):.1f}"/>'
        f'<text x="{_LEFT - 5}" y="{_y(share, 1) + 4:.1f}" text-anchor="end">{number}</text>'
        for share, number in ((share, _short(low + share * (high - low))) for share in (0.0, 0.5, 1.0))
    )
    name = f'<text x="{(_WIDTH + _LEFT) / 2:.0f}" y="{_HEIGHT - 4}" text-anchor="middle">{escape(axis)}</text>'
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{up}{inside}{across}{name}</svg>'


def _short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
