"""Ends and ticks of axes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from f5py.reports.axis import COUNT, NUMBER, PERCENT, SHARE, Axis, bins_with_beyond, ticks_of_bins


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
