"""Axes of charts: names, bounds and ticks at round numbers."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

_STEPS = (1, 2, 2.5, 5, 10)
_SIZES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
#: Least absolute and relative span of an axis: doubles need enough digits for round numbers.
_LEAST_SPAN, _LEAST_PART = 1e-300, 1e-9
#: Most decimals, and bound, of numbers without an exponent.
_MOST_DIGITS, _LARGEST_PLAIN = 8, 1e15


@dataclass(frozen=True)
class Axis:
    """Name and range of an axis."""

    name: str = ""
    least: float | None = None  # bounds of possible values; an axis with both shows the whole range
    most: float | None = None
    whole: bool = False  # only whole ticks

    def limits(self, values: Sequence[float]) -> tuple[float, float]:
        """Choose the ends of the axis: the bounds, or round numbers around the finite values."""
        if self.least is not None and self.most is not None:
            return self.least, self.most
        finite = [one for one in values if math.isfinite(one)]
        low, high = min(finite, default=0.0), max(finite, default=1.0)
        if self.least is not None:
            low, high = self.least, max(self.least, high)
        if _are_alike(low, high):
            low, high = _around(low, self.whole)
        step = _step(low, high, 4, self.whole)
        low = low if self.least is not None else max(math.floor(low / step + 1e-9) * step, -sys.float_info.max)
        # at least one step
        return low, min(max(math.ceil(high / step - 1e-9) * step, low + step), sys.float_info.max)

    def ticks(self, low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
        """Return at most `most` round numbers between two ends, with distinct labels."""
        if _are_alike(low, high):
            return []
        step = _step(low, high, most - 1, self.whole)
        numbers = [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
        largest = max(abs(low), abs(high))
        size, letter = next((one for one in _SIZES if largest >= 10 * one[0]), (1.0, ""))
        digits = max(0, -math.floor(math.log10(step / size) + 1e-9))
        if digits > _MOST_DIGITS or largest >= _LARGEST_PLAIN:
            significant = max(2, math.ceil(math.log10(largest / step)) + 2)
            return [(one, f"{one + 0.0:.{significant}g}") for one in numbers]
        if round(step / size * 10**digits, 6) % 1:  # 2.5
            digits += 1
        return [(one, f"{one / size + 0.0:,.{digits}f}{letter if one else ''}") for one in numbers]


def ticks_of_bins(first: Sequence[float], has_beyond: bool = False) -> list[tuple[float, str]]:
    """Return round numbers along bins of equal width, in units of bins, with labels.

    With `has_beyond`, the first and the last bin have all that lies beyond, too, and labels that say so.
    """
    width = first[1] - first[0]
    ticks = [((one - first[0]) / width, text) for one, text in NUMBER.ticks(first[0], first[-1] + width)]
    if not has_beyond:
        return ticks
    n = len(first)
    inside = [(at, text) for at, text in ticks if n / 8 < at < n * 7 / 8]
    return [(0.5, f"\u2264{first[1]:g}"), *inside, (n - 0.5, f"\u2265{first[-1]:g}")]


def bins_with_beyond(first: Sequence[float]) -> list[str]:
    """Label bins, with "and beyond" for the first and the last."""
    return [f"{first[1]:g} and below", *(f"from {low:g}" for low in first[1:-1]), f"{first[-1]:g} and beyond"]


def ticks_of_powers(first: float, n: int, per_power: int, most: int = 6) -> list[tuple[float, str]]:
    """Return round numbers along n logarithmic bins, in units of bins, with labels."""
    last = first * 10 ** (n / per_power)
    powers = range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)
    inside: list[int] = []
    for digits in ((1, 2, 5), (1, 3), (1,)):
        numbers = [one * 10**power for power in powers for one in digits]
        inside = [one for one in numbers if first * (1 - 1e-9) <= one <= last * (1 + 1e-9)]
        if len(inside) <= most:
            break
    return [(per_power * math.log10(one / first), short(one)) for one in inside]


def short(number: float) -> str:
    """Format a number with three digits and a unit prefix."""
    size, letter = next((one for one in _SIZES if number >= one[0]), (1.0, ""))
    return f"{number / size:.3g}{letter}"


COUNT, PERCENT, SHARE, NUMBER = Axis(least=0, whole=True), Axis("%", 0, 100), Axis(least=0, most=1), Axis()
THRESHOLD = Axis("threshold", least=0)
FALSE_POSITIVES, TRUE_POSITIVES = Axis("rate of false positives", 0, 1), Axis("rate of true positives", 0, 1)


def share(value: float, low: float, high: float) -> float:
    """Return the relative position of a value between two ends."""
    return _half_span(low, value) / _half_span(low, high)


def _half_span(low: float, high: float) -> float:
    """Return half the distance, as the whole one may overflow."""
    return high / 2 - low / 2


def _are_alike(low: float, high: float) -> bool:
    """Return whether two ends are too close for an axis."""
    half = _half_span(low, high)
    return not half > _LEAST_SPAN or half < _LEAST_PART * max(abs(low), abs(high))


def _around(value: float, whole: bool) -> tuple[float, float]:
    """Choose the ends of an axis around a single value."""
    if abs(value) <= _LEAST_SPAN:
        return 0.0, 1.0
    if whole and not _are_alike(value, value + 1):
        return value, value + 1
    return max(value - abs(value) / 10, -sys.float_info.max), min(value + abs(value) / 10, sys.float_info.max)


def _step(low: float, high: float, most: int, whole: bool) -> float:
    """Return the smallest round step with at most `most` steps between two ends."""
    rough = _half_span(low, high) / max(most, 1) * 2
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(one * power for one in _STEPS if one * power >= rough * (1 - 1e-9) and not (whole and one == 2.5))
    return max(1.0, step) if whole else step
