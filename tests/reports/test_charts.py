"""Axes of charts, read from their SVG: within the range of what the data mean, in plain numbers."""

from __future__ import annotations

import math
import re
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from f5py.reports import charts, html_report
from f5py.reports.axis import COUNT, NUMBER, PERCENT, SHARE, Axis, bins_with_beyond, ticks_of_bins, ticks_of_powers
from f5py.reports.charts import shorten_interval
from f5py.reports.evaluation_report import _paragraphs
from f5py.reports.html_report import amount, format_command
from f5py.reports.svg_charts import area_chart, bar_chart, line_chart

_SIZES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}


def _numbers(svg: str, is_up: bool) -> list[float]:
    """Numbers at an axis; every label is one, no two are alike, and all lie in the drawing."""
    root = ElementTree.fromstring(svg)
    width, height = (float(one) for one in root.attrib["viewBox"].split()[2:])
    texts = [one for one in root.iter("text") if "transform" not in one.attrib]
    place = "end" if is_up else "middle"
    labels = [one for one in texts if one.attrib["text-anchor"] == place and float(one.attrib["y"]) < height - 10]
    words = [one.text or "" for one in labels]
    assert len(set(words)) == len(words)
    for one in labels:
        assert 0 <= float(one.attrib["x"]) <= width
        assert 0 <= float(one.attrib["y"]) <= height
    found = []
    for word in words:
        number = re.fullmatch(r"(-?[\d,]+(?:\.\d+)?(?:e[+-]\d\d+)?)([kMG]?)", word)
        assert number, word
        found.append(float(number[1].replace(",", "")) * _SIZES[number[2]])
    return found


def _labels(svg: str) -> list[str]:
    return re.findall(r'text-anchor="middle">([^<]*)</text>', svg)


def test_intervals_have_room_below_their_bars() -> None:
    for words in (["1", "2", "3", "4", "5 and more"], ["1 to 4", "5 to 9", "10 to 19", "20 to 49"]):
        labels = [shorten_interval(one) for one in words]
        assert _labels(bar_chart(labels, {"": [1.0] * len(labels)}, "", COUNT))[: len(labels)] == labels
    assert labels == ["1-4", "5-9", "10-19", "20-49"]


def test_long_names_are_shortened_and_begin_in_the_drawing() -> None:
    contigs = [f"{i:04}b50e0-41f8-aed7-2689d566{i:04}" for i in range(24)]
    labels = _labels(bar_chart(contigs, {"": [1.0] * 24}, "", COUNT))
    assert labels[0] == "0000b5…660000"
    assert len(labels) > 1
    assert _labels(bar_chart(["passed", "could not calibrate"], {"": [1.0] * 2}, "", COUNT))[1] == "could not calibrate"


def test_many_points_do_not_cover_their_line() -> None:
    for n, unseen in ((11, False), (400, True)):
        places = [i / n for i in range(n)]
        points = re.findall(r'<circle class="([^"]*)"', line_chart(places, {"": places}, SHARE, SHARE))
        assert len(points) == n, "each tells its numbers"
        assert {("unseen" in one) for one in points} == {unseen}


def test_every_line_has_a_colour_on_light_and_dark_pages() -> None:
    """Also with all that `f5py summary` compares: two estimates, the other state, and two controls."""
    style = Path(html_report.__file__).with_name("report.css").read_text()
    grounds = style.split("@media (prefers-color-scheme: dark)")
    assert len(grounds) == 2
    names = [str(i) for i in range(5)]
    drawn = line_chart([0, 1], {name: [0.5, 0.6] for name in names}, Axis("x"), SHARE)
    for i in range(len(names)):
        assert f'class="k{i}"' in drawn
        assert all(f"--{'abcdef'[i]}: #" in ground for ground in grounds)
        assert all(f".{kind}{i} {{" in style.replace(",", " {") for kind in "ksl")
    assert len(set(charts._COLORS)) == len(charts._COLORS) >= len(names)


def test_tables_stay_whole_and_sentences_are_wrapped() -> None:
    text = "from  calls\n0.0       3\nadvice: one threshold\n  and why\n\nthe end <\n"
    assert _paragraphs(text.splitlines()) == (
        '<pre class="columns">from  calls\n0.0       3</pre><pre class="lines">advice: one threshold\n  and why</pre>'
        '<pre class="lines">the end &lt;</pre>'
    )


def test_amounts_have_digits() -> None:
    assert [amount(n) for n in (0, 999, 2_449.2, 147_000, 1_250_000, 3.2e9)] == [
        "0", "999", "2.4 k", "147 k", "1.2 M", "3.2 G",
    ]  # fmt: skip


def test_options_of_a_command_are_whole() -> None:
    shown = format_command("f5py map 'a -b' ref-1.fa -o <x> --seeds-only")
    assert re.findall(r'<span class="name">([^<]*)</span>', shown) == ["-b", "-o", "--seeds-only"]
    assert "&lt;x&gt;" in shown
    text = unescape(re.sub("<[^>]*>", "", shown))
    assert text == "f5py map 'a -b' ref-1.fa -o <x> --seeds-only"


_COUNTS = st.lists(st.integers(0, 10**9) | st.integers(0, 12), min_size=2, max_size=30)
_SHARES = st.lists(st.floats(0, 1), min_size=2, max_size=30)


@given(_COUNTS)
def test_counts_are_whole_and_start_at_zero(heights: list[int]) -> None:
    for svg in (
        bar_chart([str(i) for i in range(len(heights))], {"": heights}, "", COUNT),
        area_chart(heights, [], "", COUNT),
        line_chart(list(range(len(heights))), {"": heights}, COUNT, COUNT),
    ):
        up = _numbers(svg, True)
        assert all(one == round(one) for one in up)
        assert min(up) == 0
        assert max(heights) <= max(up, default=0) * 1.0001 or max(heights) == 0


@given(_SHARES)
@example([0.0, 5e-324])
@example([0.0, 1e-7])
def test_shares_go_from_nothing_to_all(shares: list[float]) -> None:
    percent = [100 * one for one in shares]
    labels = [f"A[CG]{i}" for i in range(len(shares))]
    assert _numbers(bar_chart(labels, {"": percent}, "", PERCENT), True) == [0, 25, 50, 75, 100]
    curve = line_chart(sorted(shares), {"": sorted(shares)}, SHARE, SHARE)
    assert _numbers(curve, True) == _numbers(curve, False) == [0, 0.25, 0.5, 0.75, 1]
    assert min(_numbers(bar_chart(labels, {"": percent}, "", Axis("%", least=0)), True)) == 0


@given(st.lists(st.floats(-500, 500, allow_subnormal=False), min_size=2, max_size=30))
def test_other_numbers_are_plain(values: list[float]) -> None:
    values = [round(one, 4) for one in values]
    chart = line_chart([float(i) for i in range(len(values))], {"": values}, COUNT, NUMBER)
    assert _numbers(chart, True)
    assert all(one == round(one) for one in _numbers(chart, False))


_ANY = st.lists(st.floats(), min_size=2, max_size=12)


@given(_ANY, st.booleans())
@example([0.0, 5e-324], False)
@example([5e-324, 5e-324], True)
@example([0.0, 1e-120], True)
@example([1e308, 1e308], True)
@example([-1.7976931348623157e308, 1.7976931348623157e308], False)
@example([1.7976931348623157e308] * 2, True)
@example([1e17, 1e17], True)
@example([1.0, 1.0 + 2**-52], False)
@example([-3.0, -2.0], True)
@example([float("nan"), float("inf")], False)
@example([float("nan"), 1.0, float("-inf"), 2.0], False)
def test_charts_of_any_numbers(values: list[float], whole: bool) -> None:
    finite = [one for one in values if math.isfinite(one)]
    for axis in (Axis(whole=whole), Axis(least=0, whole=whole)):
        low, high = axis.limits(values)
        assert -math.inf < low < high < math.inf
        near = 1e-8 * (high / 2 - low / 2)
        assert high >= max(finite, default=high) - near
        assert low <= min(finite, default=low) + near or low == axis.least
        places = list(range(len(values)))
        for svg in (
            bar_chart([str(i) for i in places], {"": values, "again": values}, "", axis),
            area_chart(values, [], "", axis),
            line_chart(places, {"": values}, Axis(), axis),
            line_chart(values, {"": values}, axis, axis),
        ):
            assert not re.search("nan|inf", svg)
            assert 2 <= len(set(_numbers(svg, True))) <= 5


def test_lines_have_a_gap_where_there_is_no_number() -> None:
    drawn = line_chart([0.0, 1.0, 2.0, 3.0, 4.0], {"": [0.1, 0.2, float("nan"), 0.3, 0.4]}, COUNT, SHARE)
    assert [len(points.split()) for points in re.findall(r'<polyline class="l0" points="([^"]*)"', drawn)] == [2, 2]
    assert drawn.count("<circle") == 4


@given(st.integers(-400, 400), st.sampled_from([0.5, 1, 2, 50, 12_345]), st.integers(2, 300))
def test_ticks_of_bins_are_at_their_numbers(first: int, width: float, n: int) -> None:
    starts = [first + i * width for i in range(n)]
    ticks = ticks_of_bins(starts)
    assert 2 <= len(ticks) <= 6
    for place, text in ticks:
        assert -1e-6 <= place <= n + 1e-6
        number, letter = text.rstrip("kMG").replace(",", ""), text[len(text.rstrip("kMG")) :]
        assert abs(float(number) * _SIZES[letter] - (first + place * width)) <= 1e-6 * max(abs(first), n * width, 1)
    _numbers(bar_chart([""] * n, {"": [1.0] * n}, "", COUNT, ticks), False)


@given(st.integers(0, 40), st.integers(1, 50))
def test_ticks_of_lengths_are_round(first: int, n: int) -> None:
    start = round(10 ** (2 + first / 10))
    ticks = ticks_of_powers(start, n, 10)
    assert len(ticks) <= 6
    assert all(re.fullmatch(r"[1235]0{0,2}[kMG]?", text) for _, text in ticks)
    assert all(-0.1 <= place <= n + 0.1 for place, _ in ticks)
    assert n < 4 or ticks
    _numbers(bar_chart([""] * n, {"": [1.0] * n}, "", COUNT, ticks), False)


@pytest.mark.parametrize(
    ("axis", "values", "texts"),
    [
        (COUNT, [57, 115], ["0", "50", "100", "150"]),
        (COUNT, [0, 1], ["0", "1"]),
        (COUNT, [1_999_999], ["0", "500k", "1,000k", "1,500k", "2,000k"]),
        (COUNT, [29_000_000], ["0", "10M", "20M", "30M"]),
        (PERCENT, [79.5, 99.1], ["0", "25", "50", "75", "100"]),
        (Axis("%", least=0), [8.8], ["0.0", "2.5", "5.0", "7.5", "10.0"]),
        (SHARE, [0.98], ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        (NUMBER, [0.9951, 0.9958], ["0.9950", "0.9952", "0.9954", "0.9956", "0.9958"]),
        (NUMBER, [-3.0, 4.0], ["-4", "-2", "0", "2", "4"]),
        (NUMBER, [130.0], ["110", "120", "130", "140", "150"]),
        (Axis("%", least=0), [0.4, 2.4], ["0", "1", "2", "3"]),
    ],
)
def test_ticks_are_round(axis: Axis, values: list[float], texts: list[str]):
    assert [text for _, text in axis.ticks(*axis.limits(values))] == texts


@given(
    st.lists(st.floats(-1e12, 1e12, allow_subnormal=False).filter(lambda one: one == 0 or abs(one) > 1e-9), max_size=4),
    st.sampled_from([NUMBER, Axis(whole=True)]),
)
def test_values_are_inside_and_no_two_ticks_are_written_alike(values: list[float], axis: Axis):
    if axis.whole:
        values = [float(round(one)) for one in values]
    low, high = axis.limits(values)
    assert low < high
    near = 1e-6 * (high - low)
    assert all(low - near <= one <= high + near for one in values)
    ticks = axis.ticks(low, high)
    texts = [text for _, text in ticks]
    assert len(set(texts)) == len(texts) <= 6
    if axis.whole:
        assert all(one == round(one) for one, _ in ticks)


def test_bins_that_have_all_beyond_say_so() -> None:
    first = [float(low) for low in range(-20, 20)]
    ticks = ticks_of_bins(first, has_beyond=True)
    assert [text for _, text in ticks] == ["\u2264-19", "-10", "0", "10", "\u226519"]
    assert (ticks[0][0], ticks[-1][0]) == (0.5, 39.5)
    labels = bins_with_beyond(first)
    assert (labels[0], labels[1], labels[-1], len(labels)) == ("-19 and below", "from -19", "19 and beyond", 40)
