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
from pathlib import Path

import pysam
import pytest

import f5py
from f5py.io.files.disk import temporary_folder
from f5py.mapping.sorting import sorted_bam

from ..made_data import ReadSet, process_of, refused, run_command, start_process
from ..patience import PATIENCE, comes_true

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


def limit_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let records be written to the disk before all are there."""
    monkeypatch.setattr(sorted_bam, "_MEGABYTES", 0)


@pytest.mark.parametrize("name", ["out.bam", "out.cram", "out.sam", "-"])
def test_bytes_do_not_depend_on_how_many_records_are_held(
    made: ReadSet, tmp_path: Path, monkeypatch, capfdbinary, name: str
):
    found = []
    monkeypatch.chdir(tmp_path)
    for is_limited in (False, True):
        if is_limited:
            limit_memory(monkeypatch)
        capfdbinary.readouterr()
        assert run_command("map", "-t", 2, "-K", 3000, "--gpu", "off", made.genome, made.reads, "-o", name) == 0
        found.append([capfdbinary.readouterr().out, *(one.read_bytes() for one in sorted(tmp_path.iterdir()))])
        assert sorted(one.name for one in tmp_path.iterdir()) == {
            "out.bam": ["out.bam", "out.bam.bai"], "out.cram": ["out.cram", "out.cram.crai"], "out.sam": ["out.sam"],
        }.get(name, [])  # fmt: skip
        for one in list(tmp_path.iterdir()):
            one.unlink()
    assert found[0] == found[1]
    assert sum(map(len, found[0])) > 1000


SLOWLY = """
import os, time
from f5py.mapping.sorting import sorted_bam
make = sorted_bam.bgzf_block
def make_slowly(text):
    while not os.path.exists({sign!r}):
        time.sleep(0.02)
    time.sleep(0.5)
    return make(text)
sorted_bam.bgzf_block = make_slowly
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_while_it_sorts_leaves_nothing(number: signal.Signals, made: ReadSet, tmp_path: Path):
    reads = tmp_path / "reads.fastq"
    reads.write_bytes(b"".join(made.reads.read_bytes().replace(b">", b">%d-" % i) for i in range(40)))
    out = tmp_path / "out"
    out.mkdir()
    sign = tmp_path / "go-on"  # nothing is compressed before
    command = process_of("map", "-t", 2, "--gpu", "off", made.genome, reads, "-o", out / "out.bam")
    with start_process(command, before=SLOWLY.format(sign=str(sign)), stderr=subprocess.PIPE) as run:
        deadline = time.monotonic() + PATIENCE
        while not (out / ".unfinished-out.bam").exists():
            assert time.monotonic() < deadline
            assert run.poll() is None
            time.sleep(0.02)
        run.send_signal(number)
        sign.touch()
        _, messages = run.communicate(timeout=PATIENCE)
    assert run.returncode != 0
    assert b"Traceback" not in messages
    assert not [path for path in out.iterdir() if path.name.startswith("out")]
    if number != signal.SIGKILL:  # which nobody can clean up after
        assert list(out.iterdir()) == []


def _writes_nameless_file(process: int, size: int) -> bool:
    """Return whether a process has a file open that has no name any more, and more than `size` bytes."""
    for opened in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):
            if os.readlink(opened).endswith(" (deleted)") and opened.stat().st_size > size:
                return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_half_written_file(number: signal.Signals, made: ReadSet, tmp_path: Path):
    command = process_of("map", "-t", 2, "-K", 3000, "--gpu", "off", made.genome, "-", "-o", tmp_path / "out.bam")
    before = "from f5py.mapping.sorting import sorted_bam; sorted_bam._MEGABYTES = 0"
    with start_process(command, before=before, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdin is not None
        for i in range(60):
            run.stdin.write(made.reads.read_bytes().replace(b">", b">%d-" % i))  # and no end
        run.stdin.flush()
        deadline = time.monotonic() + PATIENCE
        # the records of the first batches are there
        while not _writes_nameless_file(run.pid, 5000):
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


_UNIT = "GGTCTTC"


def _seconds(process: subprocess.Popen) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / 100


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("output", ["out.paf", "out.bam"])
def test_in_a_long_read(number: signal.Signals, output: str, tmp_path: Path):
    """A read in a tandem repeat, of minutes; a run that waited for it would not end in time."""
    text = _UNIT * 20_000
    (tmp_path / "ref.fa").write_text(f">c\n{text}\n")
    (tmp_path / "reads.fa").write_text("".join(f">r{i}\n{text}\n" for i in range(3)))
    process = subprocess.Popen(
        process_of("map", tmp_path / "ref.fa", tmp_path / "reads.fa", "-t", 1, "-o", tmp_path / output),
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert any("minimizers" in line for line in process.stderr)
        before = _seconds(process)
        assert comes_true(lambda: _seconds(process) > before + 2)
        assert process.poll() is None
        process.send_signal(number)
        _, messages = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 128 + number
    assert "Traceback" not in messages
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reads.fa", "ref.fa"]


def test_a_killed_run_leaves_nothing_that_stays(tmp_path: Path):
    """What it has left beside the output goes with the next run."""
    text = _UNIT * 20_000
    (tmp_path / "ref.fa").write_text(f">c\n{text}\n")
    (tmp_path / "reads.fa").write_text(f">r\n{text}\n")
    out = tmp_path / "out.bam"
    process = subprocess.Popen(
        process_of("map", tmp_path / "ref.fa", tmp_path / "reads.fa", "-t", 1, "-o", out),
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    assert any("minimizers" in line for line in process.stderr)
    process.kill()
    process.communicate()
    (tmp_path / "reads.fa").write_text(f">r\n{text[:100]}\n")
    assert run_command("map", tmp_path / "ref.fa", tmp_path / "reads.fa", "-o", out) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.bam", "out.bam.bai", "reads.fa", "ref.fa"]


def test_folders_of_processes_that_have_ended_are_removed(tmp_path: Path):
    (tmp_path / "f5py-x-left").mkdir()
    (tmp_path / "f5py-x-left" / "records").write_text("left")
    (tmp_path / "f5py-x-file").write_text("no folder")
    (tmp_path / "other").mkdir()
    with temporary_folder("f5py-x-", tmp_path) as first, temporary_folder("f5py-x-", tmp_path) as second:
        names = {Path(first).name, Path(second).name, "f5py-x-file", "other"}
        assert {path.name for path in tmp_path.iterdir()} == names
    assert {path.name for path in tmp_path.iterdir()} == {"f5py-x-file", "other"}
