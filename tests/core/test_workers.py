"""The worker pool: every read once, errors are raised, no thread is left."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.core.workers import WorkerPool, longest_first
from f5py.errors import F5pyError


@pytest.fixture
def no_thread_is_left():
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


@pytest.mark.usefixtures("no_thread_is_left")
@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_every_read_once(n_threads):
    pool = WorkerPool(n_threads)
    for n_reads in (0, 1, 3, 200):
        done = np.zeros(n_reads, int)
        threads = set()

        def work(read, done=done, threads=threads):
            done[read] += 1
            threads.add(threading.current_thread())
            time.sleep(0.0001)

        pool.run(work, range(n_reads))
        assert (done == 1).all()
        assert len(threads) <= n_threads
    assert len(threads) == n_threads
    pool.close()


@pytest.mark.usefixtures("no_thread_is_left")
@settings(max_examples=30, deadline=None)
@given(n_threads=st.integers(1, 4), n_reads=st.integers(1, 30), data=st.data())
def test_an_error_stops_all_and_is_raised(n_threads, n_reads, data):
    broken = data.draw(st.sets(st.integers(0, n_reads - 1), min_size=1))
    pool = WorkerPool(n_threads)
    done = []

    def work(read):
        if read in broken:
            raise ValueError(read)
        done.append(read)

    try:
        with pytest.raises(ValueError, match=r"^\d+$") as raised:
            pool.run(work, range(n_reads))
        assert raised.value.args[0] in broken
        assert len(set(done)) == len(done)
        assert n_threads > 1 or done == list(range(min(broken)))
        pool.run(done.append, range(100, 103))  # the pool can still be used
        assert set(done[-3:]) == {100, 101, 102}
    finally:
        pool.close()


@pytest.mark.usefixtures("no_thread_is_left")
def test_an_interrupt_stops_the_others_after_their_read():
    pool = WorkerPool(2)
    main = threading.current_thread()
    done = []

    def work(read):
        if threading.current_thread() is main:
            raise KeyboardInterrupt
        time.sleep(0.01)
        done.append(read)

    with pytest.raises(KeyboardInterrupt):
        pool.run(work, range(500))
    pool.close()
    assert len(done) < 10


@pytest.mark.usefixtures("no_thread_is_left")
def test_threads_that_the_system_does_not_allow(monkeypatch):
    start = threading.Thread.start

    def limited(thread):
        if thread.name == "f5py-worker-3":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(F5pyError, match="cannot start 8 worker threads; use a smaller -t"):
        WorkerPool(8)


def test_longest_first_takes_the_wanted_reads_by_work():
    work = np.array([5, 9, 1, 9, 7])
    wanted = np.array([True, True, True, True, False])
    assert longest_first(work, wanted) == [1, 3, 0, 2]
    assert longest_first(work, ~wanted) == [4]
    assert longest_first(work, np.zeros(5, bool)) == []
