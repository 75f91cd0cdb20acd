"""Interrupts and killed processes: they end the run soon, and what is written is valid."""

from __future__ import annotations

import fcntl
import gzip
import os
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from ...made_data import ReadSet, error_line, start_process
from ...patience import PATIENCE, comes_true
from ...shared_memory import left_since, named, to_oneself
from .commands import COMMANDS, MAPPED, SignalCommand, without_header

_TIMES = 300  # several seconds, so that no run is over before it is interrupted
mapped = pytest.mark.parametrize("command", MAPPED, ids=lambda command: command.name, indirect=True)
needs_proc = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")


LongRun = Callable[..., list[str]]


@pytest.fixture(scope="module")
def many(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Callable[[SignalCommand, str], ReadSet]:
    """Return a function that repeats the reads of a run of a command, once for all tests."""

    @cache
    def repeat(is_mapped: bool, signals: str) -> ReadSet:
        command = next(command for command in COMMANDS if command.is_mapped == is_mapped)
        reads = made.with_slow5(tmp_path_factory.mktemp("slow5")) if signals == "slow5" else made
        return command.many(reads, tmp_path_factory.mktemp("many"), _TIMES)

    return lambda command, signals: repeat(command.is_mapped, signals)


@pytest.fixture
def long_run(command: SignalCommand, many: Callable[[SignalCommand, str], ReadSet]) -> LongRun:
    """Return a function from options to the command line of a run of many batches.

    Fast5 files have processes that read them, which take longer than all else of a run that waits for its output.
    """
    return lambda *options, signals="slow5": command.process(many(command, signals), "-K", 16, *options)


@contextmanager
def started(command: list[str], start: Callable = start_process, **options: object) -> Iterator[subprocess.Popen]:
    """Start a process that is killed after a minute, so that a lost interrupt is a failure."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(command, **{**streams, **options}) as process:
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


def wait_for_batches(process: subprocess.Popen, n: int) -> None:
    for _ in range(n):
        while b"processed" not in process.stderr.readline():
            assert process.poll() is None


def interrupted(process: subprocess.Popen) -> str:
    """Interrupt a process, which must end; return its line of error."""
    process.send_signal(signal.SIGINT)
    messages = process.communicate(timeout=PATIENCE)[1].decode()
    assert process.returncode == 130
    line = error_line(messages)
    assert "interrupted; files appear only when they are complete" in line
    return line


def rows_left(out: Path, line: str) -> bytes:
    """Read what an ended run has written of a table, whose name it does not have; the error says where."""
    assert not out.exists()
    unfinished = out.with_name(f".unfinished-{out.name}")
    assert f"; the rows until then are in {unfinished}" in line
    text = unfinished.read_bytes()
    return gzip.decompress(text) if out.suffix == ".gz" else text


def test_interrupt_in_mid_computation(long_run: LongRun, table: bytes, tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    with started(long_run("-o", out, signals="fast5")) as process:
        wait_for_batches(process, 3)
        line = interrupted(process)
    output = rows_left(out, line)
    assert len(table) <= len(output) < (_TIMES - 1) * len(without_header(table))
    assert output.endswith(b"\n")
    assert (table + without_header(table) * _TIMES).startswith(output)


def test_interrupt_while_the_output_is_blocked(long_run: LongRun) -> None:
    with started(long_run()) as process:
        wait_for_batches(process, 1)
        wait_until_stuck(process.stdout.fileno(), process)
        interrupted(process)


def wait_until_stuck(reader: int, process: subprocess.Popen) -> None:
    """Wait until there is something in the pipe and it does not get more."""
    before, since = 0, time.monotonic()
    while before == 0 or time.monotonic() < since + 0.4:
        assert process.poll() is None
        time.sleep(0.05)
        (now,) = struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"\0" * 4))
        if now != before:
            before, since = now, time.monotonic()


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="needs Linux, to make a pipe small")
@pytest.mark.parametrize("name", ["out.tsv", "out.tsv.gz"])
def test_interrupt_while_the_writer_is_stuck(long_run: LongRun, tmp_path: Path, name: str) -> None:
    """In a named pipe that nobody reads."""
    folder = tmp_path / "out"
    folder.mkdir()
    with stuck_in(folder / name, long_run("-o", folder / name)) as process:
        interrupted(process)
    assert list(folder.iterdir()) == [folder / name]


@contextmanager
def stuck_in(pipe: Path, command: list[str]) -> Iterator[subprocess.Popen]:
    """Start a process that cannot go on as it writes to a pipe that nobody reads."""
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        with started(command, stdout=subprocess.DEVNULL) as process:
            wait_until_stuck(reader, process)
            yield process
    finally:
        os.close(reader)


_EVENTALIGN = [command for command in MAPPED if command.name == "eventalign"]


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="needs Linux, to make a pipe small")
@pytest.mark.parametrize("command", _EVENTALIGN, ids=["eventalign"], indirect=True)
@pytest.mark.parametrize(
    ("stuck", "name", "options"),
    [
        ("output", "out.bam", ["--sam"]),
        ("summary", "out.tsv", []),
        ("summary", "out.tsv.gz", []),
        ("summary", "out.bam", ["--sam"]),
        ("summary", "out.parquet", ["--output-format", "parquet"]),
    ],
)
def test_nothing_beside_a_stuck_output_is_closed(
    long_run: LongRun, table: bytes, tmp_path: Path, stuck: str, name: str, options: list[str]
) -> None:
    """And nothing stays after the interrupt but rows of tables, under the name of an unfinished file."""
    folder = tmp_path / "out"
    folder.mkdir()
    out, summary = folder / name, folder / "summary.tsv"
    pipe, other = (out, summary) if stuck == "output" else (summary, out)
    with stuck_in(pipe, long_run(*options, "-o", out, "--summary", summary)) as process:
        unfinished = [path.name for path in folder.iterdir() if path not in (out, summary)]
        assert unfinished == [f".unfinished-{other.name}"]
        line = interrupted(process)
    kept = other.with_name(f".unfinished-{other.name}")
    if other.suffix in (".bam", ".parquet") or not kept.exists():
        assert list(folder.iterdir()) == [pipe]
        return
    assert set(folder.iterdir()) == {pipe, kept}
    text = rows_left(other, line)
    if stuck == "summary":
        assert (table + without_header(table) * _TIMES).startswith(text)
        assert len(text) > 100_000
    if name != "out.tsv.gz":  # whose blocks end anywhere in a line
        assert text == b"" or text.endswith(b"\n")


# A stream that is held back makes the run wait where the test wants it to.


@needs_proc
def test_interrupt_before_there_is_any_input(command: SignalCommand, made: ReadSet) -> None:
    waiting, library = (
        (replace(made, bam=Path("-")), b"libcalignmentfile")
        if command.is_mapped
        else (replace(made, reads=Path("-")), b"libcfaidx")
    )
    with started(command.process(waiting), subprocess.Popen, stdin=subprocess.PIPE) as process:
        while library not in Path(f"/proc/{process.pid}/maps").read_bytes():
            assert process.poll() is None
            time.sleep(0.02)
        end = time.monotonic() + 5.0  # where the system does not tell what a process waits for
        while not waits_for_input(process.pid) and time.monotonic() < end:
            assert process.poll() is None
            time.sleep(0.02)
        interrupted(process)


def waits_for_input(process: int) -> bool:
    """Return whether a thread of a process is in a system call that reads from standard input, or waits for it."""
    calls = []
    for path in Path(f"/proc/{process}/task").glob("*/syscall"):
        with suppress(OSError):
            calls.append(path.read_text().split()[:2])
    # read and pselect6 (of one stream), of x86-64 and of 64-bit ARM
    return any(call in (["0", "0x0"], ["270", "0x1"], ["63", "0x0"], ["72", "0x1"]) for call in calls)


class Held:
    """A run that has put out the rows of the first batches and now waits for more records, or for its reader."""

    def __init__(self, command: SignalCommand, made: ReadSet, *options: str) -> None:
        header, records = made.records()
        self.process = start_process(
            command.process(replace(made, bam=Path("-")), "-K", "2", *options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self.sam = [f"{record.to_string()}\n".encode() for record in records]
        assert self.process.stdin is not None
        self.process.stdin.write(str(header).encode() + b"".join(self.sam[:6]))
        self.told = b""

    def wait_for_batches(self, output: Path, size: int) -> None:
        """Until the three batches that can be made have been processed and written."""
        assert self.process.stderr is not None
        while self.told.count(b" processed\n") < 3:
            piece = self.process.stderr.read(1000)
            assert piece, self.told
            self.told += piece
        unfinished = output.with_name(f".unfinished-{output.name}")
        while not unfinished.exists() or unfinished.stat().st_size < size:
            assert self.process.poll() is None
            time.sleep(0.02)

    def readers(self, count: int) -> list[int]:
        """Wait for the reader processes, until there are so many."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        while True:
            readers = [
                int(child)
                for child in path.read_text().split()
                if b"f5py.io.signals.helper_process" in Path(f"/proc/{child}/cmdline").read_bytes()
            ]
            if len(readers) == count:
                return readers
            assert self.process.poll() is None
            time.sleep(0.02)

    def end(self) -> tuple[int, str]:
        status = self.process.wait(timeout=PATIENCE)
        with self.process as process:
            assert process.stderr is not None
            return status, (self.told + process.stderr.read()).decode()


def first_rows(command: SignalCommand, made: ReadSet, table: bytes, n_reads: int) -> bytes:
    rows = command.by_read(table)
    lines = [line for name in made.names[:n_reads] for line in rows[name]]
    return table[: table.index(b"\n") + 1] + b"".join(line + b"\n" for line in lines)


@mapped
@pytest.mark.parametrize("iop", ["1", "2"])
def test_interrupt_while_waiting_for_input(
    command: SignalCommand, made: ReadSet, table: bytes, tmp_path: Path, iop: str
) -> None:
    expected, out = first_rows(command, made, table, 6), tmp_path / "out.tsv"
    run = Held(command, made, "--iop", iop, "-o", str(out))
    run.wait_for_batches(out, len(expected))
    os.killpg(run.process.pid, signal.SIGINT)  # as a terminal does, to all of them
    status, messages = run.end()
    assert status == 130
    assert "interrupted" in error_line(messages)
    assert rows_left(out, error_line(messages)) == expected


@needs_proc
@mapped
def test_killed_reader_process(command: SignalCommand, made: ReadSet, table: bytes, tmp_path: Path) -> None:
    expected, out = first_rows(command, made, table, 6), tmp_path / "out.tsv"
    run = Held(command, made, "--iop", "2", "-o", str(out))
    run.wait_for_batches(out, len(expected))
    for reader in run.readers(2):
        os.kill(reader, signal.SIGKILL)
    assert run.process.stdin is not None
    run.process.stdin.write(b"".join(run.sam[6:]))
    run.process.stdin.close()
    status, messages = run.end()
    assert status == 1
    line = error_line(messages)
    assert "a signal reader process (pid " in line
    assert "was ended by SIGKILL" in line
    assert "the output is incomplete" in line
    assert rows_left(out, line) == expected


@needs_proc
@pytest.mark.parametrize("command", MAPPED[:1], ids=["call-methylation"], indirect=True)
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@to_oneself()
def test_nothing_is_left_after_being_ended(
    command: SignalCommand, made: ReadSet, table: bytes, tmp_path: Path, how: signal.Signals
) -> None:
    out = tmp_path / "out.tsv"
    before = named()
    run = Held(command, made, "--iop", "2", "-o", str(out))
    run.wait_for_batches(out, len(first_rows(command, made, table, 6)))
    readers = run.readers(2)
    run.process.send_signal(how)
    assert run.end()[0] == (128 + how if how == signal.SIGTERM else -how)
    assert comes_true(lambda: not any(Path(f"/proc/{reader}/cmdline").exists() for reader in readers))
    assert not left_since(before)
