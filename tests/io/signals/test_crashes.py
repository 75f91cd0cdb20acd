"""Files that end the library that reads them, or keep it for ever."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from f5py.errors import SignalError
from f5py.io.signals import helper_process
from f5py.io.signals.processes import ProcessSource

from ...patience import PATIENCE
from . import odd_readers


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Names of reads in files a, b and c; what a read does to its reader is the first part of its name."""
    names = {"a": ["fine-1", "fine-2"], "b": ["abort-3", "fine-4", "fine-5"], "c": ["fine-6"]}
    return {name: str(tmp_path / file) for file, of_file in names.items() for name in of_file}


@pytest.mark.parametrize("n_processes", [1, 2])
def test_one_deadly_read_is_left_out_and_the_rest_is_read(files, n_processes, capfd):
    source = ProcessSource(n_processes, files, odd_readers.HostileReader)
    try:
        for _ in range(2):  # the second time it is known
            block = source.fetch(list(files))
            assert list(block.problems) == [2]
            assert "read abort-3 ends the library that reads it (SIGABRT); it is damaged" in block.problems[2]
            assert [int(n) for n in block.offsets[1:] - block.offsets[:-1]] == [6, 6, 0, 6, 6, 6]
            assert block.samples.tolist() == [n for n in (1, 2, 4, 5, 6) for _ in range(6)]
        assert capfd.readouterr().err.count("SIGABRT); 1 of its reads is left out, and the run goes on") == 1
        assert source.fetch(["fine-6", "abort-3"]).problems.keys() == {1}
    finally:
        source.close()


def test_an_endless_loop(monkeypatch, files, tmp_path):
    files["loop-7"] = str(tmp_path / "d")
    monkeypatch.setattr(helper_process, "CPU_SECONDS", 0.5)  # more than starting takes
    monkeypatch.setattr(helper_process, "LOOK_EVERY", 0.5)
    source = ProcessSource(2, files, odd_readers.HostileReader)
    try:
        block = source.fetch([name for name in files if not name.startswith("abort")])
        assert len(block.problems) == 1
        (problem,) = block.problems.values()
        assert "loop-7 is in a file that keeps the library that reads it in an endless loop" in problem
    finally:
        source.close()


def test_a_process_that_waits_for_a_file_system_is_waited_for(monkeypatch, tmp_path, capfd):
    """It does not compute, so nothing is damaged; its reads are not lost."""
    monkeypatch.setattr(helper_process, "LOOK_EVERY", 0.02)
    monkeypatch.setattr(helper_process, "_WAITING_AFTER", 0.1)
    told = threading.Event()
    warning = helper_process.console.warning

    def tell(*arguments):
        warning(*arguments)
        told.set()

    monkeypatch.setattr(helper_process.console, "warning", tell)
    file = tmp_path / "signals"
    source = ProcessSource(1, {"5": str(file)}, odd_readers.WaitingReader)

    def answer():
        assert told.wait(PATIENCE)
        file.touch()

    answering = threading.Thread(target=answer)
    answering.start()
    try:
        block = source.fetch(["5"])
        assert not block.problems
        assert block.samples.tolist() == [5, 6, 7, 8, 9]
        assert f"{file}: the process that reads it has not answered for" in capfd.readouterr().err
    finally:
        answering.join()
        source.close()


def test_waiting_without_end_is_an_error_of_the_run(monkeypatch, tmp_path):
    monkeypatch.setattr(helper_process, "LOOK_EVERY", 0.02)
    monkeypatch.setattr(helper_process, "_MOST_WAITING", 0.3)
    source = ProcessSource(1, {"5": str(tmp_path / "signals")}, odd_readers.WaitingReader)
    with pytest.raises(SignalError, match=r"has not answered for .*; the first file that it was to read is .*signals"):
        source.fetch(["5"])
    source.close()


def test_groups_read_at_the_same_time(tmp_path: Path):
    """The reader of one waits for a file that is made after the other's answer."""
    file = tmp_path / "signals"
    with (
        closing(ProcessSource(2, {"5": str(file), "6": str(tmp_path)}, odd_readers.WaitingReader, None, 2)) as source,
        ThreadPoolExecutor(1) as threads,
    ):
        waiting = threads.submit(source.fetch, ["5"])
        assert source.fetch(["6"]).samples.tolist() == [6, 7, 8, 9, 10, 11]
        file.touch()
        assert waiting.result(PATIENCE).samples.tolist() == [5, 6, 7, 8, 9]


def two_groups(files: dict[str, str]) -> ProcessSource:
    return ProcessSource(2, files, odd_readers.HostileReader, None, 2)


def test_a_deadly_read_is_found_once(tmp_path: Path, capfd):
    files = {f"fine-{i}": str(tmp_path / "a") for i in range(8)} | {"abort-9": str(tmp_path / "a")}
    with ThreadPoolExecutor(2) as threads, closing(two_groups(files)) as source:
        for blocks in (threads.map(source.fetch, [list(files)] * 6) for _ in range(2)):
            for block in blocks:
                assert list(block.problems) == [8]
                assert "read abort-9 ends the library that reads it (SIGABRT); it is damaged" in block.problems[8]
                assert block.samples.tolist() == [i for i in range(8) for _ in range(6)]
    assert capfd.readouterr().err.count("1 of its reads is left out") == 1


def test_a_deadly_file_is_given_up_once(tmp_path: Path, capfd):
    files = {f"abort-{i}": str(tmp_path / "bad") for i in range(6)} | {"fine-7": str(tmp_path / "good")}
    with ThreadPoolExecutor(2) as threads, closing(two_groups(files)) as source:
        for block in threads.map(source.fetch, [list(files)] * 4):
            assert list(block.problems) == [0, 1, 2, 3, 4, 5]
            assert block.samples.tolist() == [7] * 6
    assert capfd.readouterr().err.count("its reads are left out") == 1


def test_metadata_that_end_the_library_are_told_once(tmp_path: Path, capfd):
    files = {"abort-1": str(tmp_path / "bad"), "fine-2": str(tmp_path / "good")}
    with closing(two_groups(files)) as source:
        assert source.run_info(["abort-1"]) == {}
        assert [source.run_info(list(files)) for _ in range(3)] == [{"name": "fine-2"}] * 3
        assert list(source.fetch(list(files)).problems) == [0]
    assert capfd.readouterr().err.count("its reads are left out") == 1
