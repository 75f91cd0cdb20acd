"""Processes that are started ahead: taken first, as good as others, and none is left."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from f5py.io.signals import helper_process, open_signals, spare_processes
from f5py.io.signals.choose import processes_ahead
from f5py.io.signals.processes import ParallelSource
from f5py.io.signals.spare_processes import SpareProcesses, files_to_read

from ...patience import comes_true
from ...shared_memory import to_oneself
from ..reads.made_index import write_readdb
from . import odd_readers
from .made_signals import GZIP, assert_holds, make_reads, write_multi
from .test_processes import children


@pytest.fixture(autouse=True)
def _nothing_is_left():
    with to_oneself():
        n_descriptors = len(os.listdir("/proc/self/fd"))
        yield
        assert len(os.listdir("/proc/self/fd")) == n_descriptors
    assert helper_process.spares == []
    assert comes_true(lambda: children() == set())


@pytest.fixture(autouse=True)
def _with_odd_readers(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def pids() -> set[int]:
    return {spare.pid for spare in helper_process.spares}


@pytest.mark.parametrize("n_spares", [0, 1, 2, 4])
def test_spares_are_taken_first(n_spares):
    with SpareProcesses(n_spares, "json", "f5py.io.signals.there_is_no_such_module"):
        started = pids()
        assert len(started) == n_spares
        with closing(ParallelSource(2, {}, odd_readers.LongReader)) as source:
            used = {reader.process.pid for reader in source._readers}
            assert len(used & started) == min(n_spares, 2)
            assert pids() == started - used
            assert source.fetch(["5", "4", "3"]).samples.tolist() == [5, 6, 7, 8, 9, 4, 5, 6, 7, 3, 4, 5]
        assert children() >= started - used
    assert children().isdisjoint(started)


def test_those_that_are_taken_outlive_the_block():
    with SpareProcesses(2):
        source = ParallelSource(2, {}, odd_readers.LongReader)
    with closing(source):
        assert source.fetch(["2", "1"]).samples.tolist() == [2, 3, 1]


def test_spares_that_have_died():
    with SpareProcesses(2):
        for spare in helper_process.spares:
            os.kill(spare.pid, signal.SIGKILL)
            assert comes_true(lambda spare=spare: spare.status is not None)
        with closing(ParallelSource(2, {}, odd_readers.LongReader)) as source:
            assert source.fetch(["2", "1"]).samples.tolist() == [2, 3, 1]


def test_processes_that_cannot_be_started(monkeypatch):
    def fail(*_, **__):
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(helper_process.subprocess, "Popen", fail)
    with SpareProcesses(3):
        assert pids() == set()


def test_what_a_run_will_read(tmp_path: Path):
    reads = make_reads(3)
    (tmp_path / "many").mkdir()
    paths = write_multi(tmp_path / "many" / "a.fast5", reads) | write_multi(tmp_path / "many" / "b.fast5", reads)
    (tmp_path / "many" / "other.txt").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.pod5").touch()
    os.mkfifo(tmp_path / "pipe")
    one = str(tmp_path / "many" / "b.fast5")
    write_readdb(str(tmp_path / "good"), paths)
    write_readdb(str(tmp_path / "slow5"), {"*": str(tmp_path / "reads.blow5")})
    (tmp_path / "reads.blow5").write_bytes(b"BLOW5\x01")
    (tmp_path / "senseless").write_bytes(bytes(1000))
    unknown = None, [], 0

    kind, files, n_to_list = files_to_read([], [str(tmp_path / "many")], None)
    assert (kind, sorted(files), n_to_list) == ("fast5", [str(tmp_path / "many" / f"{i}.fast5") for i in "ab"], 2)
    assert files_to_read([], [one], "index") == ("fast5", [one], 1)
    assert files_to_read([str(tmp_path / "a.pod5")], [], None) == ("pod5", [str(tmp_path / "a.pod5")], 0)
    assert files_to_read([str(tmp_path / "empty")], [], None) == ("pod5", [], 0)
    assert files_to_read([], [str(tmp_path / "gone")], None) == ("fast5", [], 0)
    assert files_to_read([], [str(tmp_path / "pipe")], None) == ("fast5", [], 0)
    assert files_to_read([], [], str(tmp_path / "good")) == ("fast5", [one], 0)
    assert files_to_read([], [], str(tmp_path / "slow5"))[0] is None
    for index in ("senseless", "gone", "pipe", "empty"):
        assert files_to_read([], [], str(tmp_path / index)) == unknown
    assert files_to_read([], [], None) == unknown


def test_a_run_needs_no_other_processes(tmp_path: Path, monkeypatch):
    """As many as are needed are started before, and none when the signals are opened."""
    reads = make_reads(4)
    (tmp_path / "many").mkdir()
    for i, read in enumerate(reads):
        write_multi(tmp_path / "many" / f"{i}.fast5", [read], **GZIP)
    folder = str(tmp_path / "many")
    with processes_ahead([], [folder], None, 2, 2):
        monkeypatch.setattr(helper_process.subprocess, "Popen", None)
        with closing(open_signals(None, fast5=[folder], n_processes=2, n_at_once=2)) as source:
            assert pids() == set()
            block = source.fetch([read.name for read in reads])
    for i, read in enumerate(reads):
        assert_holds(block, i, read)


@pytest.mark.parametrize("n", [1, 2])
def test_the_process_that_lists_pod5_reads_it_too(tmp_path: Path, monkeypatch, n: int):
    pytest.importorskip("pod5", reason="needs pod5")
    from .made_pod5 import pod5_name, write_pod5

    reads = make_reads(4)
    for i, read in enumerate(reads):
        write_pod5(tmp_path / f"{i}.pod5", [read])
    folder = str(tmp_path)
    with processes_ahead([folder], [], None, n, 2):
        assert len(spare_processes.spares) == n
        lister = spare_processes.spares[-1].pid
        monkeypatch.setattr(helper_process.subprocess, "Popen", None)
        with closing(open_signals(None, pod5=[folder], n_processes=n)) as source:
            assert spare_processes.spares == []
            assert lister in [one.process.pid for one in source._places._source._readers]
            block = source.fetch([pod5_name(read.name) for read in reads])
    for i, read in enumerate(reads):
        assert_holds(block, i, read)


def test_who_opens_pod5_without_processes_starts_as_many_as_read(tmp_path: Path, monkeypatch):
    pytest.importorskip("pod5", reason="needs pod5")
    from .made_pod5 import write_pod5

    write_pod5(tmp_path / "a.pod5", make_reads(2))
    started = []
    start = helper_process._started

    def noted(*arguments):
        started.append(start(*arguments))
        return started[-1]

    monkeypatch.setattr(helper_process, "_started", noted)
    with closing(open_signals(None, pod5=[str(tmp_path)], n_processes=2)) as source:
        assert {one.process.pid for one in source._places._source._readers} == {one.pid for one in started}
        assert len(started) == 2
    assert spare_processes.spares == []


def test_no_processes_for_files_that_are_not_there(tmp_path: Path):
    for pod5, fast5, reads in ((["gone"], [], None), ([], ["gone"], None), ([], [], "gone"), ([], [], None)):
        with processes_ahead(pod5, fast5, reads, 2, 2):
            assert spare_processes.spares == []
