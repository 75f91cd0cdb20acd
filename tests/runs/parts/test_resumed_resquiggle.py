"""resquiggle that is ended and goes on: the bytes of one run, and no part is done twice."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from f5py.commands import resquiggle
from f5py.errors import OutputFileError
from f5py.pipeline import sequence_loader
from f5py.runs.parts.plan import Plan

from ...made_data import N_READS, ReadSet, process_of, refused, run_command, start_process
from ...patience import PATIENCE

PER_PART = 3
N_PARTS = -(-N_READS // PER_PART)
FOLDER = "moves.tsv.f5py-parts"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resquiggle, "READS_PER_PART", PER_PART)


def inputs(made: ReadSet) -> list[str]:
    return [str(made.reads), str(made.signal_path), "-t", "2", "--iop", "1"]


@pytest.fixture
def stop_at(monkeypatch: pytest.MonkeyPatch):
    """Return a function that says from which part on the disk is full; None: it is not."""
    complete_part = Plan.complete_part

    def fails_at(number: int | None) -> None:
        def complete(self: Plan, part: int, folder: Path) -> None:
            if number is not None and part >= number:
                raise OutputFileError(f"{folder}: cannot write: No space left on device")
            complete_part(self, part, folder)

        monkeypatch.setattr(Plan, "complete_part", complete)

    return fails_at


def parts_done(here: Path) -> list[int]:
    return sorted(Plan.load(str(here / FOLDER)).done())


@pytest.mark.parametrize(
    "options",
    [("-o", "moves.tsv"), ("-o", "moves.paf", "-c", "-K", "5"), ("-o", "moves.tsv.gz", "--failed-reads", "failed.tsv")],
    ids=" ".join,
)
def test_one_run(made: ReadSet, here: Path, options: tuple[str, ...]):
    names = [name for name in options if "." in name]
    assert run_command("resquiggle", *inputs(made), *options) == 0
    expected = {name: Path(name).read_bytes() for name in names}
    for name in names:
        Path(name).unlink()
    assert run_command("resquiggle", *inputs(made), *options, "--resume") == 0
    assert {name: Path(name).read_bytes() for name in names} == expected
    assert sorted(entry.name for entry in here.iterdir()) == sorted(names)


def test_goes_on(made: ReadSet, here: Path, stop_at, monkeypatch: pytest.MonkeyPatch, capfd):
    """Also with batches of another size, and if a part in the middle is missing."""
    failed = made.with_slow5(here, made.names[:11])
    command = [str(failed.reads), str(failed.signal_path), "-t", "2", "--failed-reads", "failed.tsv"]
    assert run_command("resquiggle", *command, "-o", "moves.tsv") == 0
    expected = {name: (here / name).read_bytes() for name in ("moves.tsv", "failed.tsv")}
    counts = [line for line in capfd.readouterr().err.splitlines() if "total entries" in line]
    assert expected["failed.tsv"].count(b"\n") == 1 + N_READS - 11
    for name in expected:
        (here / name).unlink()

    stop_at(4)
    assert run_command("resquiggle", *command, "-o", "moves.tsv", "--resume", "-K", "2") == 1
    assert "No space left on device" in capfd.readouterr().err
    assert parts_done(here) == [0, 1, 2, 3]
    assert not (here / "moves.tsv").exists()
    shutil.rmtree(here / FOLDER / "parts" / "1")
    loaded: list[str] = []
    made_batch = sequence_loader.unmapped_batch

    def batch_of(number, names, *rest):
        loaded.extend(names)
        return made_batch(number, names, *rest)

    monkeypatch.setattr(sequence_loader, "unmapped_batch", batch_of)
    stop_at(None)
    capfd.readouterr()
    assert run_command("resquiggle", *command, "-o", "moves.tsv", "--resume", "-K", "4") == 0
    names = in_file_order(failed)
    assert sorted(loaded) == sorted(names[3:6] + names[12:])
    assert {name: (here / name).read_bytes() for name in expected} == expected
    messages = capfd.readouterr().err
    assert f"3 parts of {PER_PART} reads are done" in messages
    assert [line for line in messages.splitlines() if "total entries" in line] == counts
    assert not (here / FOLDER).exists()


def in_file_order(made: ReadSet) -> list[str]:
    return [line[1:] for line in made.reads.read_text().splitlines() if line.startswith(">")]


def test_everything_is_done_but_the_end(made: ReadSet, here: Path, monkeypatch: pytest.MonkeyPatch):
    command = [*inputs(made), "-o", "moves.tsv"]
    assert run_command("resquiggle", *command) == 0
    expected = (here / "moves.tsv").read_bytes()
    (here / "moves.tsv").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(resquiggle, "join_outputs", lambda *_: sys.exit(3))
        assert run_command("resquiggle", *command, "--resume") == 3
    assert parts_done(here) == list(range(N_PARTS))
    assert run_command("resquiggle", *command, "--resume") == 0
    assert (here / "moves.tsv").read_bytes() == expected


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_kill(made: ReadSet, here: Path, seconds: float):
    command = [*inputs(made), "-o", "moves.tsv", "-K", "1"]
    assert run_command("resquiggle", *command) == 0
    expected = (here / "moves.tsv").read_bytes()
    (here / "moves.tsv").unlink()
    before = f"from f5py.commands import resquiggle; resquiggle.READS_PER_PART = {PER_PART}"
    process = start_process(process_of("resquiggle", *command, "--resume"), before=before, stderr=subprocess.DEVNULL)
    until = time.monotonic() + PATIENCE
    while not (here / FOLDER / "parts" / "0").exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert run_command("resquiggle", *command, "--resume") == 0
    assert (here / "moves.tsv").read_bytes() == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "standard output"),
        (["-o", "/dev/null"], "/dev/null is a device"),
        (["-o", "moves.tsv", "--print-events", "yes"], "--print-events"),
        (["-o", "moves.tsv", "--debug-break", "1"], "--debug-break"),
    ],
    ids=str,
)
def test_contradictions(made: ReadSet, here: Path, options: list[str], message: str, capfd):
    assert message in refused(capfd, "resquiggle", *inputs(made), *options, "--resume", status=2)
    assert list(here.iterdir()) == []


def test_standard_input(made: ReadSet, here: Path, capfd):
    line = refused(capfd, "resquiggle", "-", made.signal_path, "-o", "moves.tsv", "--resume", status=2)
    assert "-: cannot be read again" in line
    assert list(here.iterdir()) == []


def test_another_run(made: ReadSet, here: Path, stop_at, capfd):
    """Changed options and inputs are refused, and so are the commands for parts that are known before."""
    reads = here / "reads.fasta"
    shutil.copy(made.reads, reads)
    command = ["resquiggle", reads, *inputs(made)[1:], "-o", "moves.tsv", "--resume"]
    stop_at(2)
    assert run_command(*command) == 1
    assert "--paf: no then, yes now" in refused(capfd, *command, "--paf", status=2)
    for other in (["run-part", FOLDER], ["finish", FOLDER], ["plan", FOLDER]):
        assert "is of f5py resquiggle --resume" in refused(capfd, *other, status=2)
    given = ["-o", "calls.tsv", "--plan", FOLDER]
    assert "is the plan of f5py resquiggle" in refused(capfd, "call-methylation", *made.options(), *given, status=2)
    reads.write_text(reads.read_text() + ">more\nACGT\n")
    assert "reads.fasta: has changed" in refused(capfd, *command)
    assert parts_done(here) == [0, 1]


def test_a_damaged_part(made: ReadSet, here: Path, monkeypatch: pytest.MonkeyPatch, capfd):
    command = ["resquiggle", *inputs(made), "-o", "moves.tsv", "--resume"]
    with monkeypatch.context() as patch:
        patch.setattr(resquiggle, "join_outputs", lambda *_: sys.exit(3))
        assert run_command(*command) == 3
    (here / FOLDER / "parts" / "2" / "part.json").write_text("{")
    assert "; remove it and run the command again" in refused(capfd, *command)
    shutil.rmtree(here / FOLDER / "parts" / "2")
    assert run_command(*command) == 0
