"""Work ahead: results in order, bounded, errors after what was before them, and threads that end."""

from __future__ import annotations

import threading
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.threads.ordered import prefetch_ordered

from ..examples import examples
from ..patience import PATIENCE

_NAME = "f5py-test-ahead"


class Broken(Exception):
    pass


def threads_left() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(_NAME)]


@settings(max_examples=examples(60), deadline=None)
@given(
    n=st.integers(0, 12),
    n_threads=st.integers(1, 4),
    pauses=st.lists(st.integers(0, 3), min_size=12, max_size=12),
    broken=st.none() | st.integers(0, 11),
    where=st.sampled_from(["portions", "work"]),
)
def test_results_in_order_up_to_the_first_error(n, n_threads, pauses, broken, where):
    lock = threading.Lock()
    asked = begun = taken = most_asked = most = 0

    def portions():
        nonlocal asked, most_asked
        for i in range(n):
            if where == "portions" and i == broken:
                raise Broken
            with lock:
                asked += 1
                most_asked = max(most_asked, asked - taken)
            yield i

    def work(i):
        nonlocal begun, most
        with lock:
            begun += 1
            most = max(most, begun - taken)
        time.sleep(pauses[i] / 1000)
        if where == "work" and i == broken:
            raise Broken
        return i * i

    results = []
    fails = broken is not None and broken < n
    try:
        for result in prefetch_ordered(portions(), work, n_threads, _NAME):
            results.append(result)
            with lock:
                taken += 1
    except Broken:
        assert fails
    else:
        assert not fails
    assert results == [i * i for i in range(broken if fails else n)]
    assert most <= n_threads
    assert most_asked <= n_threads + 1
    assert not threads_left()


def test_portions_are_worked_on_at_the_same_time():
    meeting = threading.Barrier(3, timeout=PATIENCE)
    assert len(list(prefetch_ordered(iter(range(3)), lambda _: meeting.wait(), 3, _NAME))) == 3


def test_what_is_done_does_not_wait_for_the_next_portion():
    """As when the input is a pipe that comes to a halt."""
    goes_on = threading.Event()

    def portions():
        yield 1
        assert goes_on.wait(PATIENCE)
        yield 2

    results = prefetch_ordered(portions(), str, 3, _NAME)
    assert next(results) == "1"
    goes_on.set()
    assert list(results) == ["2"]
    assert not threads_left()


def test_closing_ends_the_threads_and_leaves_out_what_has_not_begun():
    done = []
    results = prefetch_ordered(iter(range(10)), done.append, 2, _NAME)
    next(results)
    results.close()
    assert len(done) <= 2
    assert not threads_left()


def test_a_result_that_was_taken_is_not_kept():
    class Large:
        alive = 0

        def __init__(self, _):
            type(self).alive += 1

        def __del__(self):
            type(self).alive -= 1

    results = prefetch_ordered(iter(range(3)), Large, 1, _NAME)
    first = next(results)
    assert isinstance(first, Large)
    del first
    assert Large.alive == 0
    assert sum(1 for _ in results) == 2
