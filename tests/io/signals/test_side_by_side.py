"""Sources side by side: several batches at the same time, and what one has died of is known to all."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from f5py.errors import SignalError
from f5py.io.signals.guarded import Deadly, GuardedSource
from f5py.io.signals.side_by_side import SideBySide

from ...patience import PATIENCE
from . import odd_readers


def side_by_side(n: int, files: dict[str, str], reader: type) -> SideBySide:
    deadly = Deadly()
    return SideBySide([GuardedSource(1, files, reader, deadly=deadly) for _ in range(n)], files)


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


def test_each_thread_has_a_source_of_its_own():
    barrier = threading.Barrier(3)
    sources = [Meeting(barrier) for _ in range(3)]
    with ThreadPoolExecutor(6) as threads, closing(SideBySide(sources, {})) as source:
        assert list(threads.map(source.fetch, range(30))) == list(range(30))
        assert source.run_info(["a"]) == {"names": "['a']"}
    assert [one.n_closed for one in sources] == [1, 1, 1]


def test_a_source_that_has_failed_is_not_lost():
    source = SideBySide([GuardedSource(1, {}, odd_readers.BrokenReader)], {})
    with closing(source):
        for words in ("ZeroDivisionError", "ZeroDivisionError"):  # the second is that of the source that is closed
            with pytest.raises(SignalError, match=words):
                source.fetch(["a"])


def test_a_deadly_read_is_found_once(tmp_path: Path, capfd):
    files = {f"fine-{i}": str(tmp_path / "a") for i in range(8)} | {"abort-9": str(tmp_path / "a")}
    with ThreadPoolExecutor(2) as threads, closing(side_by_side(2, files, odd_readers.HostileReader)) as source:
        for blocks in (threads.map(source.fetch, [list(files)] * 6) for _ in range(2)):
            for block in blocks:
                assert list(block.problems) == [8]
                assert "read abort-9 ends the library that reads it (SIGABRT); it is damaged" in block.problems[8]
                assert block.samples.tolist() == [i for i in range(8) for _ in range(6)]
    assert capfd.readouterr().err.count("1 of its reads is left out") == 1


def test_a_deadly_file_is_given_up_once(tmp_path: Path, capfd):
    files = {f"abort-{i}": str(tmp_path / "bad") for i in range(6)} | {"fine-7": str(tmp_path / "good")}
    with ThreadPoolExecutor(2) as threads, closing(side_by_side(2, files, odd_readers.HostileReader)) as source:
        for block in threads.map(source.fetch, [list(files)] * 4):
            assert list(block.problems) == [0, 1, 2, 3, 4, 5]
            assert block.samples.tolist() == [7] * 6
    assert capfd.readouterr().err.count("its reads are left out") == 1


def test_metadata_that_end_the_library_are_told_once(tmp_path: Path, capfd):
    files = {"abort-1": str(tmp_path / "bad"), "fine-2": str(tmp_path / "good")}
    with closing(side_by_side(2, files, odd_readers.HostileReader)) as source:
        assert source.run_info(["abort-1"]) == {}
        assert [source.run_info(list(files)) for _ in range(3)] == [{"name": "fine-2"}] * 3
        assert list(source.fetch(list(files)).problems) == [0]
    assert capfd.readouterr().err.count("its reads are left out") == 1
