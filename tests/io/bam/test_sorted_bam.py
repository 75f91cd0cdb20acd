"""Sorted records: the same bytes from a process of its own, which leaves nothing behind however it ends."""

from __future__ import annotations

import os
import random
import resource
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pysam
import pytest

from f5py.errors import OutputFileError
from f5py.io.bam import sorted_bam
from f5py.io.bam.bam_records import bam_header
from f5py.io.bam.sorted_bam import SortedRecords
from f5py.io.signals import helper_process

from ...patience import comes_true

N_RECORDS = 3000


class Unsorted:
    """Records in the order of their reads, many of them at the same place."""

    def __init__(self, folder: Path, longest: int) -> None:
        rng = random.Random(7)
        contigs = [{"SN": "a", "LN": longest}, {"SN": "b", "LN": 500}]
        self.header = pysam.AlignmentHeader.from_dict({"HD": {"VN": "1.6", "SO": "coordinate"}, "SQ": contigs})
        self.path = folder / "unsorted.bam"
        with pysam.AlignmentFile(str(self.path), "wb", header=self.header) as file:
            for i in range(N_RECORDS):
                record = pysam.AlignedSegment(self.header)
                record.query_name = f"read{i}"
                record.query_sequence = "ACGTTGCA" * rng.randint(1, 400 if i % 100 else 12_000)
                record.reference_id = rng.choice((0, 0, 1, -1))
                record.flag = 4 if record.reference_id < 0 else rng.choice((0, 16))
                if record.reference_id >= 0:
                    record.reference_start = rng.randrange(0, 400, 20)
                    record.cigarstring = f"{len(record.query_sequence)}M"
                file.write(record)
        with pysam.BGZFile(str(self.path)) as file:
            self.records = file.read()[len(bam_header(self.header)) :]

    def pieces(self) -> list[memoryview]:
        """Cut anywhere: between records is not asked for by what reads them."""
        data = memoryview(self.records)
        return [data[i : i + 100_000] for i in range(0, len(data), 100_000)]


@pytest.fixture(scope="module")
def unsorted(tmp_path_factory: pytest.TempPathFactory) -> Unsorted:
    return Unsorted(tmp_path_factory.mktemp("unsorted"), 5_000_000)


@pytest.fixture
def fed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_bam, "_MANY_BYTES", 1)
    monkeypatch.setattr(sorted_bam, "_FEW_THREADS", 0)


def write_all(records: SortedRecords, unsorted: Unsorted) -> int:
    """Write records as a run does; return the number of the process that sorts."""
    first, *others = unsorted.pieces()
    records.write(first)
    records.start_if_many()
    process = records._process
    if process is not None:
        assert comes_true(lambda: process.is_ready)
    for one in others:
        records.write(one)
        records.start_if_many()
    return -1 if process is None else process._process.pid


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(("n_threads", "megabytes"), [(1, 768), (1, 1), (2, 768), (2, 2), (4, 4)])
def test_both_ways_have_the_bytes_of_sort_and_index(
    unsorted: Unsorted, tmp_path: Path, monkeypatch, n_threads: int, megabytes: int
):
    assert len(unsorted.records) > 5 << 20  # more than the least memory
    pysam.sort("--no-PG", "-o", str(tmp_path / "theirs.bam"), str(unsorted.path))
    pysam.index(str(tmp_path / "theirs.bam"))
    monkeypatch.setattr(sorted_bam, "_MEGABYTES", megabytes)
    monkeypatch.setattr(sorted_bam, "_FEW_THREADS", 0)
    for name, many in (("file", 1 << 30), ("fed", 1)):
        monkeypatch.setattr(sorted_bam, "_MANY_BYTES", many)
        path = tmp_path / f"{name}.bam"
        with SortedRecords(str(path), unsorted.header, n_threads) as records:
            assert (write_all(records, unsorted) > 0) == (name == "fed")
        assert path.read_bytes() == (tmp_path / "theirs.bam").read_bytes()
        assert Path(f"{path}.bai").read_bytes() == (tmp_path / "theirs.bam.bai").read_bytes()
    assert len(list(tmp_path.iterdir())) == 6


def test_an_index_of_long_contigs(tmp_path: Path, fed, monkeypatch):
    unsorted = Unsorted(tmp_path, 600_000_000)
    pysam.sort("--no-PG", "-o", str(tmp_path / "theirs.bam"), str(unsorted.path))
    pysam.index("-c", str(tmp_path / "theirs.bam"))
    for many in (1 << 30, 1):
        monkeypatch.setattr(sorted_bam, "_MANY_BYTES", many)
        with SortedRecords(str(tmp_path / "out.bam"), unsorted.header) as records:
            write_all(records, unsorted)
        for suffix in ("", ".csi"):
            assert (tmp_path / f"out.bam{suffix}").read_bytes() == (tmp_path / f"theirs.bam{suffix}").read_bytes()
            (tmp_path / f"out.bam{suffix}").unlink()


@pytest.mark.parametrize(("name", "more"), [("out.sam", []), ("a##idx##b.bam", ["a##idx##b.bam.bai"])])
def test_other_formats_and_names(unsorted: Unsorted, tmp_path: Path, fed, monkeypatch, name: str, more: list[str]):
    found = []
    for many in (1 << 30, 1):
        monkeypatch.setattr(sorted_bam, "_MANY_BYTES", many)
        with SortedRecords(str(tmp_path / name), unsorted.header) as records:
            write_all(records, unsorted)
        assert sorted(one.name for one in tmp_path.iterdir()) == [name, *more]
        found.append({one.name: one.read_bytes() for one in tmp_path.iterdir()})
        for one in list(tmp_path.iterdir()):
            one.unlink()
    assert found[0] == found[1]
    assert len(found[0][name]) > 10_000


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_few_threads_have_no_process_beside(unsorted: Unsorted, tmp_path: Path, monkeypatch, n_threads: int):
    monkeypatch.setattr(sorted_bam, "_MANY_BYTES", 1)
    with SortedRecords(str(tmp_path / "out.bam"), unsorted.header, n_threads) as records:
        assert (write_all(records, unsorted) > 0) == (n_threads == 3)


def test_files_appear_at_the_end_of_what_ends_later(unsorted: Unsorted, tmp_path: Path, fed):
    path = tmp_path / "out.bam"
    path.write_text("earlier")
    stages: list[str] = []
    with ExitStack() as ending:
        with SortedRecords(str(path), unsorted.header, begin=stages.append, ending=ending) as records:
            write_all(records, unsorted)
        assert stages == ["sorting"]
        assert path.read_text() == "earlier"
        assert not Path(f"{path}.bai").exists()
    assert stages == ["sorting", ""]
    with pysam.AlignmentFile(str(path)) as file:
        assert file.has_index()
        assert sum(1 for _ in file.fetch(until_eof=True)) == N_RECORDS
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out.bam", "out.bam.bai"]


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def fill_disk(pid: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1000, 1000))


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (kill, "cannot be sorted: the process that sorts was killed, as happens when memory runs short; no file"),
        (fill_disk, r"cannot be written and sorted \(.*File too large.*\); it needs about \d+ MB in /"),
    ],
)
@pytest.mark.parametrize("n_more", [0, 20])
def test_a_sort_that_fails_is_told_and_leaves_nothing(
    unsorted: Unsorted, tmp_path: Path, fed, monkeypatch, harm: Callable[[int], None], words: str, n_more: int
):
    monkeypatch.setattr(sorted_bam, "_MEGABYTES", 1)  # it writes before all is there
    pids: list[int] = []

    def run() -> None:
        with (
            ExitStack() as ending,
            SortedRecords(str(tmp_path / "out.bam"), unsorted.header, ending=ending) as records,
        ):
            pids.append(write_all(records, unsorted))
            harm(pids[0])
            for _ in range(n_more):
                write_all(records, unsorted)

    with pytest.raises(OutputFileError, match=words):
        run()
    assert not is_running(pids[0])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_late", [False, True])
def test_an_interrupt_leaves_nothing(unsorted: Unsorted, tmp_path: Path, fed, is_late: bool):
    pids: list[int] = []

    def run() -> None:
        with ExitStack() as ending:
            with SortedRecords(str(tmp_path / "out.bam"), unsorted.header, ending=ending) as records:
                pids.append(write_all(records, unsorted))
                if not is_late:
                    raise KeyboardInterrupt
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert not is_running(pids[0])
    assert list(tmp_path.iterdir()) == []


def test_a_thread_that_writes_comes_back_when_all_stops(unsorted: Unsorted, tmp_path: Path, fed):
    ended: list[OutputFileError] = []

    def write(records: SortedRecords) -> None:
        try:
            write_all(records, unsorted)
        except OutputFileError as problem:
            ended.append(problem)

    def run() -> None:
        with SortedRecords(str(tmp_path / "out.bam"), unsorted.header) as records:
            os.kill(write_all(records, unsorted), signal.SIGSTOP)
            thread = threading.Thread(target=write, args=(records,))
            thread.start()
            records.stop()
            thread.join()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert ended
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_to_all_processes_of_a_run_do_not_end_the_sort(unsorted: Unsorted, tmp_path: Path, fed, number):
    with SortedRecords(str(tmp_path / "out.bam"), unsorted.header) as records:
        os.kill(write_all(records, unsorted), number)
    pysam.quickcheck(str(tmp_path / "out.bam"))


def test_without_more_processes_this_one_sorts(unsorted: Unsorted, tmp_path: Path, fed, monkeypatch):
    def refused(*_: object, **__: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr(helper_process.subprocess, "Popen", refused)
    with SortedRecords(str(tmp_path / "out.bam"), unsorted.header) as records:
        assert write_all(records, unsorted) == -1
    with pysam.AlignmentFile(str(tmp_path / "out.bam")) as file:
        assert sum(1 for _ in file.fetch(until_eof=True)) == N_RECORDS
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out.bam", "out.bam.bai"]
