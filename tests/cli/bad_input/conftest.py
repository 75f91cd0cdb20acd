"""Runs that fail at once, that stop, and that succeed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ...made_data import N_READS, ReadSet, error_line, run_command
from .commands import COMMANDS, SignalCommand

Fails = Callable[..., str]
Stops = Callable[..., tuple[str, bytes]]
Succeeds = Callable[..., tuple[bytes, str]]


@pytest.fixture(params=COMMANDS, ids=lambda command: command.name)
def command(request: pytest.FixtureRequest) -> SignalCommand:
    return request.param


@pytest.fixture(scope="session")
def tables(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Run each command on the made reads."""
    found = {}
    for one in COMMANDS:
        out = tmp_path_factory.mktemp("tables") / "table.tsv"
        assert run_command(*one.arguments(made, "-o", out)) == 0
        found[one.name] = out.read_bytes()
        assert list(one.by_read(found[one.name])) == one.order(made)
        assert len(one.order(made)) == N_READS
    return found


@pytest.fixture(scope="session")
def unlabelled(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> ReadSet:
    """Make reads with signals that say nothing about their chemistry."""
    return made.with_slow5(tmp_path_factory.mktemp("unlabelled"))


@pytest.fixture
def table(command: SignalCommand, tables: dict[str, bytes]) -> bytes:
    return tables[command.name]


@pytest.fixture
def fails(command: SignalCommand, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Fails:
    """Run and expect one line of error; return it. Nothing must have been written."""

    def run(reads: ReadSet, *options: object, status: int = 1) -> str:
        folder = tmp_path / "output"
        folder.mkdir(exist_ok=True)
        capfd.readouterr()
        assert run_command(*command.arguments(reads, "-o", folder / "unwritten.tsv", *options)) == status
        assert list(folder.iterdir()) == []
        told = capfd.readouterr()
        assert told.out == ""
        return error_line(told.err)

    return run


@pytest.fixture
def stops(command: SignalCommand, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Stops:
    """Run and expect one line of error after some output; return both.

    A table that has not become complete has no final name, and its lines are whole; the error says where it is.
    """

    def run(reads: ReadSet, *options: object) -> tuple[str, bytes]:
        out = tmp_path / "table.tsv"
        out.unlink(missing_ok=True)  # of a run before
        capfd.readouterr()
        assert run_command(*command.arguments(reads, "-o", out, *options)) == 1
        line, _, kept = error_line(capfd.readouterr().err).partition("; the rows until then are in ")
        assert not (kept and out.exists())
        unfinished = out.with_name(f".unfinished-{out.name}")
        assert kept == (str(unfinished) if unfinished.exists() else "")
        output = unfinished.read_bytes() if kept else out.read_bytes() if out.exists() else b""
        if output:
            command.by_read(output)
        return line, output

    return run


@pytest.fixture
def succeeds(command: SignalCommand, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Succeeds:
    """Run without an error; return the output and the messages."""

    def run(reads: ReadSet, *options: object) -> tuple[bytes, str]:
        out = tmp_path / "table.tsv"
        capfd.readouterr()
        assert run_command(*command.arguments(reads, "-o", out, *options)) == 0
        return out.read_bytes(), capfd.readouterr().err

    return run
