"""The worker pool: every read once, errors are raised, the oldest batch first, no thread is left."""

from __future__ import annotations

import gc
import itertools
import os
import platform
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.errors import F5pyError
from f5py.jit.kernel import kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.threads.pool import WorkerPool, longest_first

from ..examples import examples
from ..made_data import ReadSet
from ..patience import PATIENCE


@kernel
def count_up(queue, reads, done):
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        done[reads[i]] += 1


def each(pool: WorkerPool, function: Callable[[int], None], items: Iterable[int], order: int = -1) -> None:
    """Let a pool call a Python function for all of `items`, in this order but concurrently."""
    numbers = itertools.count()

    def work(queue, reads):
        while queue[0] < len(reads) and (i := next(numbers)) < len(reads):
            function(int(reads[i]))

    pool.run(work, np.array(items), order=order)


@pytest.fixture
def no_thread_is_left():
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


@pytest.mark.usefixtures("no_thread_is_left")
@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_every_read_once(n_threads):
    pool = WorkerPool(n_threads)
    for n_reads in (0, 1, 3, 100_000):
        done = np.zeros(n_reads + 1, np.int64)
        seconds = pool.run(count_up, np.arange(n_reads)[::-1], done)
        assert (done[:-1] == 1).all()
        assert done[-1] == 0
        assert (seconds > 0) == (n_reads > 0)
    pool.close()


@pytest.mark.usefixtures("no_thread_is_left")
def test_what_has_been_worked_on_is_not_kept():
    """Until the next call, which may be long after: arrays of a batch are large."""
    pool = WorkerPool(2)
    done = np.zeros(1000, np.int64)
    gone = weakref.ref(done)
    pool.run(count_up, np.arange(1000), done)
    del done
    gc.collect()
    assert gone() is None
    pool.close()


@pytest.mark.usefixtures("no_thread_is_left")
def test_all_threads_may_work_on_a_call_that_is_alone_and_some_on_others():
    pool = WorkerPool(4, most_per_call=2)
    for _ in range(2):  # also when there have been others before
        all_meet = threading.Barrier(4)
        each(pool, lambda _, all_meet=all_meet: all_meet.wait(PATIENCE), range(4))

        has_begun, two_meet, release = threading.Event(), threading.Barrier(2), threading.Event()
        workers: set[int] = set()

        def hold(_: int, has_begun: threading.Event = has_begun, release: threading.Event = release) -> None:
            has_begun.set()
            release.wait(PATIENCE)

        def meet(i: int, two_meet: threading.Barrier = two_meet, workers: set[int] = workers) -> None:
            workers.add(threading.get_ident())
            if i < 2:
                two_meet.wait(PATIENCE)

        other = threading.Thread(target=each, args=(pool, hold, [0]))
        other.start()
        assert has_begun.wait(PATIENCE)
        each(pool, meet, range(100))
        release.set()
        other.join()
        assert len(workers) == 2
    pool.close()


@pytest.mark.usefixtures("no_thread_is_left")
@settings(max_examples=examples(30), deadline=None)
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
            each(pool, work, range(n_reads))
        assert raised.value.args[0] in broken
        assert len(set(done)) == len(done)
        assert n_threads > 1 or done == list(range(min(broken)))
        each(pool, done.append, range(100, 103))  # the pool can still be used
        assert set(done[-3:]) == {100, 101, 102}
    finally:
        pool.close()


@pytest.mark.usefixtures("no_thread_is_left")
def test_a_stop_ends_all_calls_after_the_reads_in_progress():
    pool = WorkerPool(2)
    done = []

    def work(read):
        done.append(read)
        pool.stop()

    each(pool, work, range(500))
    assert len(done) <= 4
    counted = np.zeros(10, np.int64)
    pool.run(count_up, np.arange(10), counted)
    assert counted.sum() == 0
    pool.close()


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
    assert longest_first(work, wanted).tolist() == [1, 3, 0, 2]
    assert longest_first(work, ~wanted).tolist() == [4]
    assert longest_first(work, np.zeros(5, bool)).tolist() == []


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
@pytest.mark.parametrize("keeps", [False, True])
def test_arrays_of_threads_are_made_of_earlier_ones_during_a_run(keeps: bool):
    """And all is given back after it."""
    n_faults, given_back = _in_threads(keeps, "[np.ones(12 << 20, np.uint8) for _ in range(8)]")
    assert (n_faults < 500) == keeps
    assert (given_back > 90 << 20) == keeps


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_large_arrays_are_given_back_at_once_during_a_run():
    n_faults, given_back = _in_threads(True, "np.ones(80 << 20, np.uint8)")
    assert n_faults > 10_000
    assert given_back < 10 << 20


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_all_threads_of_a_run_share_one_heap(made: ReadSet, tmp_path: Path):
    """Those too that begin before the worker threads."""
    script = (
        "import ctypes, sys\n"
        "from f5py.cli import main\n"
        "try:\n"
        "    main(sys.argv[2:])\n"
        "except SystemExit as end:\n"
        "    assert not end.code\n"
        "libc = ctypes.CDLL(None)\n"
        "libc.fopen.restype = ctypes.c_void_p\n"
        "out = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b'w'))\n"
        "libc.malloc_info(0, out)\n"
        "libc.fclose(out)\n"
    )
    heaps = tmp_path / "heaps.xml"
    command = [sys.executable, "-c", script, str(heaps), "call-methylation", *made.options(), "-o", f"{tmp_path}/o.tsv"]
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    subprocess.run(command, env=environment, capture_output=True, check=True)
    assert heaps.read_text().count("<heap nr=") == 1


def _in_threads(keeps: bool, make: str) -> tuple[int, int]:
    """Make arrays in one thread after the other; count pages from the system, and bytes that it gets at the end."""
    script = (
        "import resource, threading\n"
        "from contextlib import nullcontext\n"
        "import numpy as np\n"
        "from f5py.threads.pool import WorkerPool, kept_memory\n"
        "WorkerPool(2).close()\n"
        "def faults():\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "def in_use():\n"
        "    return int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize()\n"
        "def in_thread():\n"
        f"    thread = threading.Thread(target=lambda: {make})\n"
        "    thread.start()\n"
        "    thread.join()\n"
        f"with {'kept_memory()' if keeps else 'nullcontext()'}:\n"
        "    in_thread()\n"
        "    before = faults()\n"
        "    for _ in range(10):\n"
        "        in_thread()\n"
        "    print(faults() - before)\n"
        "    held = in_use()\n"
        "print(held - in_use())\n"
    )
    environment = os.environ | {"NUMPY_MADVISE_HUGEPAGE": "0"}
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    n_faults, given_back = map(int, ran.stdout.split())
    return n_faults, given_back
