"""Axes of charts: what is on them, within which bounds, and round numbers to write at them."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

_STEPS = (1, 2, 2.5, 5, 10)
_SIZES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
#: Ends of an axis that are nearer to each other, and parts of the larger one, are alike: between them doubles have not
#: enough digits for round numbers.
_LEAST_SPAN, _LEAST_PART = 1e-300, 1e-9
#: Numbers with more digits after the point, and from this size on, are written with an exponent.
_MOST_DIGITS, _LARGEST_PLAIN = 8, 1e15


@dataclass(frozen=True)
class Axis:
    """Meaning of the numbers of an axis."""

    name: str = ""  # as it is written beside the axis; "" where the chart's title says it
    # least, most: bounds of what such a number can be. An axis with both shows all between them.
    least: float | None = None
    most: float | None = None
    whole: bool = False  # counts, which have no ticks between them

    def limits(self, values: Sequence[float]) -> tuple[float, float]:
        """Choose the ends of an axis: the bounds where there are two, else round numbers around the values.

        Values that are not finite do not count.
        """
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
        # one step also where whole numbers are asked for and there is next to nothing
        return low, min(max(math.ceil(high / step - 1e-9) * step, low + step), sys.float_info.max)

    def ticks(self, low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
        """Round numbers between two ends, at most so many, each with how it is written; no two are written alike.

        There are none between ends that are alike.
        """
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


def ticks_of_bins(first: Sequence[float]) -> list[tuple[float, str]]:
    """Round numbers along bins of equal width, by where these start, with how they are written; places are in bins."""
    width = first[1] - first[0]
    return [((one - first[0]) / width, text) for one, text in NUMBER.ticks(first[0], first[-1] + width)]


def ticks_of_powers(first: float, n: int, per_power: int, most: int = 6) -> list[tuple[float, str]]:
    """Round numbers along n bins, so many for each power of ten, with how they are written; places are in bins."""
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
    """Format a number with at most three digits and a letter for its thousands."""
    size, letter = next((one for one in _SIZES if number >= one[0]), (1.0, ""))
    return f"{number / size:.3g}{letter}"


#: Counts of something, percentages, probabilities and rates; other numbers.
COUNT, PERCENT, SHARE, NUMBER = Axis(least=0, whole=True), Axis("%", 0, 100), Axis(least=0, most=1), Axis()
THRESHOLD = Axis("threshold", least=0)
FALSE_POSITIVES, TRUE_POSITIVES = Axis("rate of false positives", 0, 1), Axis("rate of true positives", 0, 1)


def share(value: float, low: float, high: float) -> float:
    """Return where a value is between two ends, as a share of the way."""
    return _half_span(low, value) / _half_span(low, high)


def _half_span(low: float, high: float) -> float:
    """Return half the distance, as the whole one may be more than the largest number."""
    return high / 2 - low / 2


def _are_alike(low: float, high: float) -> bool:
    """Return whether there is no axis between two ends."""
    half = _half_span(low, high)
    return not half > _LEAST_SPAN or half < _LEAST_PART * max(abs(low), abs(high))


def _around(value: float, whole: bool) -> tuple[float, float]:
    """Choose the ends of an axis with one value only."""
    if abs(value) <= _LEAST_SPAN:
        return 0.0, 1.0
    if whole and not _are_alike(value, value + 1):
        return value, value + 1
    return max(value - abs(value) / 10, -sys.float_info.max), min(value + abs(value) / 10, sys.float_info.max)


def _step(low: float, high: float, most: int, whole: bool) -> float:
    """Find the least round number that goes at most so many times between two ends."""
    rough = _half_span(low, high) / max(most, 1) * 2
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(one * power for one in _STEPS if one * power >= rough * (1 - 1e-9) and not (whole and one == 2.5))
    return max(1.0, step) if whole else step
