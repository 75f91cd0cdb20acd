"""Small charts as SVG for HTML pages, without libraries; values that are not finite are not drawn."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby, pairwise
from math import isfinite

from f5py.reports.axis import Axis, share

#: Size in pixels; pages show charts at this size or larger.
_WIDTH, _HEIGHT = 320, 216
_LEFT, _BOTTOM, _TOP, _RIGHT = 64, 44, 12, 20
#: Widths of letters of a label, and between two labels.
_CAPITAL_WIDTH, _LETTER_WIDTH, _SPACE = 10.0, 8.0, 8.0
_WIDEST_BAR = 56.0
#: Series of a line that others are compared with; it has no color of its own.
IDEAL = "ideal"
#: Longest label that is not shortened.
_LONGEST = 20
#: Most visible points of a line; more only have tooltips.
_MOST_POINTS = 40
#: Points of a scatter that differ by less, in pixels, are drawn once.
_POINT_GRID = 0.8


def bar_chart(
    labels: Sequence[str], series: Mapping[str, Sequence[float]], name: str, axis: Axis,
    ticks: Sequence[tuple[float, str]] | None = None,
) -> str:  # fmt: skip
    """Draw stacked bars with tooltips. `ticks`, in bars from the left of the first, replace labels."""
    n = len(labels)
    totals = [sum(column) for column in zip(*series.values(), strict=True)]
    low, high = axis.limits([0.0, *totals])
    slot = (_WIDTH - _LEFT - _RIGHT) / max(n, 1)
    width = min(slot * 0.84, _WIDEST_BAR)
    parts = []
    base = [0.0] * n
    for which, (series_name, heights) in enumerate(series.items()):
        for i, height in enumerate(heights):
            bottom, top = (_y(base[i] + one, low, high) for one in (0, height))
            base[i] += height
            if height and isfinite(top):
                parts.append(
                    f'<rect class="s{which}" x="{_LEFT + (i + 0.5) * slot - width / 2:.1f}" y="{min(top, bottom):.1f}" '
                    f'width="{width:.1f}" height="{max(abs(bottom - top), 0.5):.1f}"><title>{escape(labels[i])}: '
                    f"{escape(series_name)} {height:,.10g}</title></rect>"
                )
    if ticks is None:
        ticks = [(i + 0.5, label) for i, label in enumerate(labels)]
    places = _with_room([(_LEFT + at * slot, text) for at, text in ticks])
    return _framed("".join(parts), places, (low, high), name, axis)


def area_chart(heights: Sequence[float], ticks: Sequence[tuple[float, str]], name: str, axis: Axis) -> str:
    """Draw a filled step chart; `ticks` are in steps from the left of the first."""
    low, high = axis.limits([0.0, *heights])
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(heights), 1)
    bottom = _y(low, low, high)
    tops = [
        f"{_LEFT + (i + side) * step:.1f},{height if isfinite(height) else bottom:.1f}"
        for i, height in enumerate(_y(one, low, high) for one in heights)
        for side in (0, 1)
    ]
    points = " ".join([f"{_LEFT},{bottom:.1f}", *tops, f"{_WIDTH - _RIGHT},{bottom:.1f}"])
    places = _with_room([(_LEFT + at * step, text) for at, text in ticks])
    return _framed(f'<polygon class="s0" points="{points}"/>', places, (low, high), name, axis)


def line_chart(x: Sequence[float], series: Mapping[str, Sequence[float]], across: Axis, axis: Axis) -> str:
    """Draw lines through points with tooltips, and a legend of several series."""
    low, high = axis.limits([value for y in series.values() for value in y])
    least, most = across.limits(x)
    unseen = " unseen" if len(x) > _MOST_POINTS else ""
    parts = []
    classes = ["-ideal" if name == IDEAL else str(i) for i, name in enumerate(series)]
    for which, (name, y) in zip(classes, series.items(), strict=True):
        points = [(_x(one, least, most), _y(value, low, high), one, value) for one, value in zip(x, y, strict=True)]
        stretches = groupby(points, lambda point: isfinite(point[0]) and isfinite(point[1]))
        lines = [" ".join(f"{right:.1f},{down:.1f}" for right, down, *_ in some) for there, some in stretches if there]
        parts += [f'<polyline class="l{which}" points="{one}"/>' for one in lines]
        parts += [
            f'<circle class="s{which}{unseen}" cx="{right:.1f}" cy="{down:.1f}" r="2.5">'
            f"<title>{escape(name)}{': ' if name else ''}{one:,.6g}: {value:.4g}</title></circle>"
            for right, down, one, value in points
            if isfinite(right) and isfinite(down)
        ]
    ticks = [(_x(one, least, most), text) for one, text in across.ticks(least, most)]
    drawn = _framed("".join(parts), ticks, (low, high), across.name, axis)
    return drawn if len(series) < 2 else drawn + _keys(classes, list(series))


def scatter_chart(
    points: Mapping[str, Sequence[tuple[float, float]]], marked: Sequence[tuple[float, float, str]],
    across: Axis, axis: Axis,
) -> str:  # fmt: skip
    """Draw points of several series, a line of equal values, and a legend."""
    every = [value for one in points.values() for point in one for value in point]
    low, high = across.limits(every)
    diagonal = " ".join(f"{_x(one, low, high):.1f},{_y(one, low, high):.1f}" for one in (low, high))
    parts = [f'<polyline class="l-ideal" points="{diagonal}"/>']
    for which, series in enumerate(points.values()):
        cells = {
            tuple(round(one / _POINT_GRID) for one in (_x(x, low, high), _y(y, low, high)))
            for x, y in series
            if isfinite(x) and isfinite(y)
        }
        parts += [f'<circle class="s{which}" cx="{x * _POINT_GRID:.1f}" cy="{y * _POINT_GRID:.1f}" r="0.8"/>'
                  for x, y in sorted(cells)]  # fmt: skip
    sides = sides_of_labels([mark[:2] for mark in marked], (high - low) / 15)
    for i, ((x, y, title), (across_side, up_side)) in enumerate(zip(marked, sides, strict=True)):
        right, down = _x(x, low, high), _y(y, low, high)
        parts.append(
            f'<g><title>{escape(title)}</title><circle class="mark" cx="{right:.1f}" cy="{down:.1f}" r="2.5"/>'
            f'<text x="{right + 3 * across_side:.1f}" y="{down + 3 - 5 * up_side:.1f}" '
            f'text-anchor="{"start" if across_side > 0 else "end"}">{i + 1}</text></g>'
        )
    ticks = [(_x(one, low, high), text) for one, text in across.ticks(low, high)]
    keys = _keys([str(i) for i in range(len(points))], list(points))
    return f'<div class="large">{_framed("".join(parts), ticks, (low, high), across.name, axis)}</div>{keys}'


def sides_of_labels(points: Sequence[tuple[float, float]], near: float) -> list[tuple[int, int]]:
    """Choose the side of each point for its label, another one near earlier points."""
    sides = ((1, 1), (-1, 1), (1, -1), (-1, -1))
    n_near = [sum(abs(x - u) < near and abs(y - v) < near for u, v in points[:i]) for i, (x, y) in enumerate(points)]
    return [sides[n % len(sides)] for n in n_near]


def _keys(classes: Sequence[str], names: Sequence[str]) -> str:
    """Make a legend."""
    spans = (f'<span><i class="k{which}"></i>{escape(name)}</span>' for which, name in zip(classes, names, strict=True))
    return f'<p class="keys">{"".join(spans)}</p>'


def _with_room(places: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Select every n-th label so that none overlap or cross the right end."""
    places = [(at, _shortened(text, at)) for at, text in places]
    widths = [sum(_CAPITAL_WIDTH if one.isupper() else _LETTER_WIDTH for one in text) + _SPACE for _, text in places]
    for step in range(1, len(places) + 1):
        some = [(at, width) for (at, _), width in zip(places[::step], widths[::step], strict=True)]
        if all(a + (v + w) / 2 <= b for (a, v), (b, w) in pairwise(some)):
            fitting = [at + (width - _SPACE) / 2 <= _WIDTH + 2 for at, width in some]
            return [one for one, fits in zip(places[::step], fitting, strict=True) if fits]
    return []


def _shortened(text: str, at: float) -> str:
    """Cut the middle out of a label that is long or would cross the left end."""
    if len(text) <= _LONGEST and len(text) * _LETTER_WIDTH / 2 <= at:
        return text
    return text if len(text) < 14 else f"{text[:6]}…{text[-6:]}"


def _x(value: float, low: float, high: float) -> float:
    return _LEFT + share(value, low, high) * (_WIDTH - _LEFT - _RIGHT)


def _y(value: float, low: float, high: float) -> float:
    return _TOP + share(value, high, low) * (_HEIGHT - _TOP - _BOTTOM)


def _framed(inside: str, ticks: Sequence[tuple[float, str]], limits: tuple[float, float], name: str, axis: Axis) -> str:
    """Add axes, ticks and names to the SVG."""
    across = "".join(
        f'<text x="{place:.1f}" y="{_HEIGHT - _BOTTOM + 19}" text-anchor="middle">{escape(text)}</text>'
        for place, text in ticks
    )
    up = "".join(
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{_y(one, *limits):.1f}" y2="{_y(one, *limits):.1f}"/>'
        f'<text x="{_LEFT - 6}" y="{_y(one, *limits) + 4:.1f}" text-anchor="end">{text}</text>'
        for one, text in axis.ticks(*limits)
    )
    middle = _TOP + (_HEIGHT - _TOP - _BOTTOM) / 2
    names = (
        f'<text x="{(_WIDTH - _RIGHT + _LEFT) / 2:.0f}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(name)}</text>'
    )
    if axis.name:
        names += (
            f'<text x="12" y="{middle:.0f}" text-anchor="middle" transform="rotate(-90 12 {middle:.0f})">'
            f"{escape(axis.name)}</text>"
        )
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{up}{inside}{across}{names}</svg>'
