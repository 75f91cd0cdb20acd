"""Frames that lie in one piece of memory."""

from __future__ import annotations

import resource
import threading

import pytest

from f5py.jit.frame_stack import with_wide_stack


def _descend(levels: int) -> int:
    return 1 + _descend(levels - 1) if levels else 0


def _up_and_down(levels: int) -> None:
    """Go up and down by some frames, many times, from each of many depths."""
    for _ in range(200):
        _descend(20)
    if levels:
        _up_and_down(levels - 1)


def _page_faults_of(function, *arguments) -> int:
    """In a thread of its own, whose frames begin a piece."""
    counts = []

    def measured() -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        function(*arguments)
        counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

    thread = threading.Thread(target=measured)
    thread.start()
    thread.join()
    return counts[0]


def test_calls_across_a_border_ask_for_no_memory():
    plain = _page_faults_of(_up_and_down, 300)
    wide = _page_faults_of(with_wide_stack, _up_and_down, 300)
    assert plain > 1000 > 10 * wide


def test_results_pass_through():
    assert with_wide_stack(divmod, 7, 2) == (3, 1)
    assert with_wide_stack(with_wide_stack, divmod, 7, 2) == (3, 1)


def test_errors_pass_through():
    with pytest.raises(ZeroDivisionError):
        with_wide_stack(divmod, 7, 0)


def test_endless_calls_still_end():
    def endless() -> None:
        with_wide_stack(endless)

    with pytest.raises(RecursionError):
        endless()
