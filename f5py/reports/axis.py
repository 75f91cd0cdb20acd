"""Axes of charts: what is on them, within which bounds, and round numbers to write at them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_STEPS = (1, 2, 2.5, 5, 10)
_SIZES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class Axis:
    """Meaning of the numbers of an axis."""

    name: str = ""  # as it is written beside the axis; "" where the chart's title says it
    # least, most: bounds of what such a number can be. An axis with both shows all between them.
    least: float | None = None
    most: float | None = None
    whole: bool = False  # counts, which have no ticks between them

    def limits(self, values: Sequence[float]) -> tuple[float, float]:
        """Choose the ends of an axis: the bounds where there are two, else round numbers around the values."""
        if self.least is not None and self.most is not None:
            return self.least, self.most
        low, high = min(values, default=0.0), max(values, default=1.0)
        if self.least is not None:
            low = self.least
        if low == high:
            low, high = (low, low + 1) if self.whole or low == 0 else (low - abs(low) / 10, high + abs(high) / 10)
        step = _step(low, high, 4, self.whole)
        low = low if self.least is not None else math.floor(low / step + 1e-9) * step
        return low, math.ceil(high / step - 1e-9) * step

    def ticks(self, low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
        """Round numbers between two ends, at most so many, each with how it is written; no two are written alike."""
        step = _step(low, high, most - 1, self.whole)
        numbers = [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
        largest = max(abs(low), abs(high))
        size, letter = next((one for one in _SIZES if largest >= 10 * one[0]), (1.0, ""))
        digits = max(0, -math.floor(math.log10(step / size) + 1e-9))
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


def _step(low: float, high: float, most: int, whole: bool) -> float:
    """Find the least round number that goes at most so many times between two ends."""
    rough = (high - low) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(one * power for one in _STEPS if one * power >= rough * (1 - 1e-9) and not (whole and one == 2.5))
    return max(1.0, step) if whole else step
