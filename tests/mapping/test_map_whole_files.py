"""Whole files of ``f5py map``: the same bytes however they are made, in samtools' order, and never half of one."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import subprocess
import time
from collections import namedtuple
from contextlib import suppress
from itertools import count
from pathlib import Path

import pysam
import pytest

import f5py
from f5py.compute.gpu.mapping import chains, pair_alignments, seeds
from f5py.compute.mapping import Mapper
from f5py.io.bam import sorted_bam

from ..made_data import ReadSet, process_of, refused, run_command, start_process
from ..patience import PATIENCE, comes_true
from .gpu_runs import give_gpus_all

ECOLI = ("ecoli_r94/ref.fa", "ecoli_r94/reads.fasta")


def blocks_of(made: ReadSet, folder: Path, **given: object) -> bytes:
    """Map the made reads; return the blocks behind the first one, which is that of the header with the command line."""
    folder.mkdir()
    f5py.map_reads(made.genome, [made.reads], output=folder / "out.bam", **given)  # type: ignore[arg-type]
    data = (folder / "out.bam").read_bytes()
    size = int.from_bytes(data[16:18], "little") + 1
    assert b"@PG" in gzip.decompress(data[:size])
    assert b"@PG" not in gzip.decompress(data[size:])
    return data[size:]


@pytest.fixture(scope="module")
def expected(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return blocks_of(made, tmp_path_factory.mktemp("whole") / "one", threads=1, gpu="off")


@pytest.mark.parametrize(
    "given", [{"threads": 2}, {"threads": 16}, {"threads": 3, "batch_bases": 1}, {"threads": 2, "batch_bases": 5000}]
)
def test_bytes_do_not_depend_on_threads_and_batches(made: ReadSet, tmp_path: Path, expected, given):
    assert blocks_of(made, tmp_path / "out", gpu="off", **given) == expected


def test_bytes_do_not_depend_on_a_gpu(made: ReadSet, tmp_path: Path, expected, played_machine, monkeypatch, capfd):
    monkeypatch.setattr(chains, "_FEW_PAIRS", -1)
    monkeypatch.setattr(seeds, "_FEW_BASES", -1)
    monkeypatch.setattr(chains, "_MOST_ANCHORS", 1 << 16)
    monkeypatch.setattr(pair_alignments, "_MOST_SLOTS", 32)
    monkeypatch.setattr(pair_alignments, "_MOST_PACKED", 1 << 20)
    played_machine()
    give_gpus_all(monkeypatch)
    assert blocks_of(made, tmp_path / "out", gpu="on", threads=2, batch_bases=5000) == expected


def test_the_order_is_that_of_samtools(shared_data: Path, tmp_path: Path):
    output = tmp_path / "out.bam"
    assert run_command("map", "-t", 2, *(shared_data / name for name in ECOLI), "-o", output) == 0
    pysam.quickcheck(str(output))
    pysam.sort("--no-PG", "-o", str(tmp_path / "again.bam"), str(output))
    pysam.index(str(tmp_path / "again.bam"))
    n_inside = 0
    with pysam.AlignmentFile(str(output)) as ours, pysam.AlignmentFile(str(tmp_path / "again.bam")) as theirs:
        assert ours.has_index()
        found, sorted_again = ([one.to_string() for one in file.fetch(until_eof=True)] for file in (ours, theirs))
        assert found == sorted_again
        assert len(found) == 115
        name = ours.references[0]
        for begin in range(0, ours.lengths[0], 5000):
            inside = [one.to_string() for one in ours.fetch(name, begin, begin + 100)]
            assert inside == [one.to_string() for one in theirs.fetch(name, begin, begin + 100)]
            n_inside += len(inside)
    assert n_inside > 50


@pytest.fixture
def sorted_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a process of its own sort few records, too."""
    monkeypatch.setattr(sorted_bam, "_MANY_BYTES", 1)
    monkeypatch.setattr(sorted_bam, "_FEW_THREADS", 0)


@pytest.mark.parametrize("name", ["out.bam", "out.cram", "out.sam", "-"])
def test_bytes_do_not_depend_on_what_sorts(made: ReadSet, tmp_path: Path, monkeypatch, capfdbinary, name: str):
    found = []
    n_started = 0

    class Counted(sorted_bam.SortProcess):
        def __init__(self, *arguments: str, descriptors: tuple[int, ...]) -> None:
            nonlocal n_started
            n_started += 1
            super().__init__(*arguments, descriptors=descriptors)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sorted_bam, "SortProcess", Counted)
    for few in (2, 0):
        monkeypatch.setattr(sorted_bam, "_MANY_BYTES", 1)
        monkeypatch.setattr(sorted_bam, "_FEW_THREADS", few)
        capfdbinary.readouterr()
        assert run_command("map", "-t", 2, "-K", 3000, "--gpu", "off", made.genome, made.reads, "-o", name) == 0
        found.append([capfdbinary.readouterr().out, *(one.read_bytes() for one in sorted(tmp_path.iterdir()))])
        assert sorted(one.name for one in tmp_path.iterdir()) == {
            "out.bam": ["out.bam", "out.bam.bai"], "out.cram": ["out.cram", "out.cram.crai"], "out.sam": ["out.sam"],
        }.get(name, [])  # fmt: skip
        for one in list(tmp_path.iterdir()):
            one.unlink()
    assert n_started == 1
    assert found[0] == found[1]
    assert sum(map(len, found[0])) > 1000


def sorting_beside(pid: int) -> list[int]:
    """List the processes that sort for this one."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == pid and b"sort_process" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("to_all", [False, True])
def test_a_run_that_is_ended_while_a_process_sorts_leaves_nothing(number, to_all: bool, made: ReadSet, tmp_path: Path):
    before = "from f5py.io.bam import sorted_bam; sorted_bam._MANY_BYTES, sorted_bam._FEW_THREADS = 1, 0"
    command = process_of("map", "-t", 2, "-K", 3000, "--gpu", "off", made.genome, "-", "-o", tmp_path / "out.bam")
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start_process(command, before=before, **pipes, start_new_session=True) as run:
        assert run.stdin is not None
        numbers = count()

        def is_handed_on() -> bool:
            """Whether the process has what was there before; more reads come, and no end."""
            run.stdin.write(made.reads.read_bytes().replace(b">", b">%d-" % next(numbers)))
            run.stdin.flush()
            return sorting_beside(run.pid) != [] and any(
                one.stat().st_size == 0 for one in tmp_path.glob(".unfinished-map-*/unsorted.bam")
            )

        assert comes_true(is_handed_on)
        (sorting,) = sorting_beside(run.pid)
        if to_all:
            os.killpg(run.pid, number)
        else:
            run.send_signal(number)
        _, messages = run.communicate(timeout=PATIENCE)
    assert run.returncode != 0
    assert b"Traceback" not in messages
    assert b"sort" not in messages
    assert comes_true(lambda: has_ended(sorting))
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("out")]
    if number != signal.SIGKILL:  # which nobody can clean up after
        assert list(tmp_path.iterdir()) == []


def test_the_mapper_is_closed_while_a_process_sorts(made: ReadSet, tmp_path: Path, monkeypatch, sorted_beside):
    close = Mapper.close
    there: list[list[str]] = []

    def closed(self: Mapper) -> None:
        there.append(sorted(one.name for one in tmp_path.iterdir() if not one.name.startswith(".unfinished-map-")))
        close(self)

    monkeypatch.setattr(Mapper, "close", closed)
    f5py.map_reads(made.genome, [made.reads], output=tmp_path / "out.bam", threads=2, batch_bases=3000, gpu="off")
    assert there == [[".unfinished-out.bam", ".unfinished-out.bam.bai"]]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out.bam", "out.bam.bai"]


def test_a_sort_that_is_killed_is_told(made: ReadSet, tmp_path: Path, capfd, monkeypatch, sorted_beside):
    start = sorted_bam.SortProcess.__init__

    def start_and_kill(self, *arguments: str, **more: tuple[int, ...]) -> None:
        start(self, *arguments, **more)
        os.kill(self._process.pid, signal.SIGKILL)

    monkeypatch.setattr(sorted_bam.SortProcess, "__init__", start_and_kill)
    output = tmp_path / "out.bam"
    line = refused(capfd, "map", "-t", 2, "-K", 3000, "--gpu", "off", made.genome, made.reads, "-o", output)
    assert f"{output}: cannot be sorted: the process that sorts was killed" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_half_written_file(number: signal.Signals, made: ReadSet, tmp_path: Path):
    command = process_of("map", "-t", 2, "-K", 3000, "--gpu", "off", made.genome, "-", "-o", tmp_path / "out.bam")
    with start_process(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdin is not None
        for i in range(60):
            run.stdin.write(made.reads.read_bytes().replace(b">", b">%d-" % i))  # and no end
        run.stdin.flush()
        deadline = time.monotonic() + PATIENCE
        # the records of the first batches are there
        while not any(path.stat().st_size > 5000 for path in tmp_path.glob(".unfinished-map-*/unsorted.bam")):
            assert time.monotonic() < deadline
            assert run.poll() is None
            time.sleep(0.05)
        run.send_signal(number)
        _, messages = run.communicate(timeout=PATIENCE)
    assert run.returncode != 0
    assert b"Traceback" not in messages
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("out")]
    if number != signal.SIGKILL:  # which nobody can clean up after
        assert list(tmp_path.iterdir()) == []


def test_too_little_space_to_sort_is_told(made: ReadSet, tmp_path: Path, capfd, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage(1 << 30, 1 << 30, 10))
    line = refused(capfd, "map", "-t", 2, made.genome, made.reads, "-o", tmp_path / "out.bam")
    assert "cannot be written and sorted" in line
    assert f"MB in {tmp_path}" in line
    assert list(tmp_path.iterdir()) == []
