"""Sources side by side: several batches at the same time, and what one has died of is known to all."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from f5py.errors import SignalError
from f5py.io.signals.crash_isolation import Blocklist, GuardedSource
from f5py.io.signals.source_pool import _PATIENCE, SourcePool

from ...patience import PATIENCE
from . import odd_readers


def source_pool(n: int, files: dict[str, str], reader: type) -> SourcePool:
    blocklist = Blocklist()
    return SourcePool([GuardedSource(1, files, reader, blocklist=blocklist) for _ in range(n)], files)


class Meeting:
    """A source whose `fetch` waits for as many others as there are."""

    def __init__(self, barrier: threading.Barrier) -> None:
        self._barrier = barrier
        self.n_closed = 0

    def fetch(self, names):
        self._barrier.wait(PATIENCE)
        return names

    def run_info(self, names):
        return {"names": str(names)}

    def close(self):
        self.n_closed += 1


class Slow:
    """A source that keeps others waiting for longer than they do without one more."""

    def fetch(self, names):
        time.sleep(2 * _PATIENCE)
        return names

    def close(self):
        pass


def test_each_thread_has_a_source_of_its_own():
    barrier = threading.Barrier(3)
    sources = [Meeting(barrier) for _ in range(3)]
    with ThreadPoolExecutor(6) as threads, closing(SourcePool(sources, {})) as source:
        assert list(threads.map(source.fetch, range(30))) == list(range(30))
        assert source.run_info(["a"]) == {"names": "['a']"}
    assert [one.n_closed for one in sources] == [1, 1, 1]


def test_more_are_started_where_somebody_waits_and_no_more_than_are_wanted():
    barrier = threading.Barrier(3)
    started: list[Meeting] = []

    def start() -> Meeting:
        started.append(Meeting(barrier))
        return started[-1]

    with ThreadPoolExecutor(6) as threads, closing(SourcePool([start()], {}, None, start, 3)) as source:
        assert source.run_info(["a"]) == source.run_info(["a"]) == {"names": "['a']"}
        assert len(started) == 1
        assert list(threads.map(source.fetch, range(6))) == list(range(6))
        assert len(started) == 3
    assert [one.n_closed for one in started] == [1, 1, 1]


def test_where_no_more_can_be_started_those_that_are_there_do():
    n_tried = 0

    def start() -> Meeting:
        nonlocal n_tried
        n_tried += 1
        raise SignalError("no more processes")

    with ThreadPoolExecutor(2) as threads, closing(SourcePool([Slow()], {}, None, start, 3)) as source:
        assert list(threads.map(source.fetch, range(4))) == list(range(4))
    assert n_tried == 1


def test_none_is_started_after_the_end():
    source = SourcePool([Slow()], {}, None, lambda: pytest.fail("started"), 3)
    source.close()
    source._free.get()
    threading.Timer(0.5, source._free.put, [source._sources[0]]).start()
    assert source.fetch("a") == "a"


def test_a_source_that_has_failed_is_not_lost():
    source = SourcePool([GuardedSource(1, {}, odd_readers.BrokenReader)], {})
    with closing(source):
        for words in ("ZeroDivisionError", "ZeroDivisionError"):  # the second is that of the source that is closed
            with pytest.raises(SignalError, match=words):
                source.fetch(["a"])


def test_a_deadly_read_is_found_once(tmp_path: Path, capfd):
    files = {f"fine-{i}": str(tmp_path / "a") for i in range(8)} | {"abort-9": str(tmp_path / "a")}
    with ThreadPoolExecutor(2) as threads, closing(source_pool(2, files, odd_readers.HostileReader)) as source:
        for blocks in (threads.map(source.fetch, [list(files)] * 6) for _ in range(2)):
            for block in blocks:
                assert list(block.problems) == [8]
                assert "read abort-9 ends the library that reads it (SIGABRT); it is damaged" in block.problems[8]
                assert block.samples.tolist() == [i for i in range(8) for _ in range(6)]
    assert capfd.readouterr().err.count("1 of its reads is left out") == 1


def test_a_deadly_file_is_given_up_once(tmp_path: Path, capfd):
    files = {f"abort-{i}": str(tmp_path / "bad") for i in range(6)} | {"fine-7": str(tmp_path / "good")}
    with ThreadPoolExecutor(2) as threads, closing(source_pool(2, files, odd_readers.HostileReader)) as source:
        for block in threads.map(source.fetch, [list(files)] * 4):
            assert list(block.problems) == [0, 1, 2, 3, 4, 5]
            assert block.samples.tolist() == [7] * 6
    assert capfd.readouterr().err.count("its reads are left out") == 1


def test_metadata_that_end_the_library_are_told_once(tmp_path: Path, capfd):
    files = {"abort-1": str(tmp_path / "bad"), "fine-2": str(tmp_path / "good")}
    with closing(source_pool(2, files, odd_readers.HostileReader)) as source:
        assert source.run_info(["abort-1"]) == {}
        assert [source.run_info(list(files)) for _ in range(3)] == [{"name": "fine-2"}] * 3
        assert list(source.fetch(list(files)).problems) == [0]
    assert capfd.readouterr().err.count("its reads are left out") == 1
