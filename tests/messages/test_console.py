"""Messages never get into the results, wherever standard error goes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from f5py.messages import console

from ..made_data import ReadSet
from ..patience import PATIENCE


def run(command: list[str], redirection: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", *command], stdout=subprocess.PIPE, timeout=PATIENCE, check=False
    )


def test_a_closed_standard_error_changes_nothing(made: ReadSet, made_calls: bytes, tmp_path: Path):
    done = run(made.command(), "2>&-")
    assert (done.returncode, done.stdout) == (0, made_calls)
    out = tmp_path / "calls.tsv"
    done = run(made.command("-o", str(out)), "2>&-")
    assert (done.returncode, done.stdout, out.read_bytes()) == (0, b"", made_calls)


def test_an_error_without_standard_error_is_a_status(made: ReadSet):
    done = run(made.command("-w", "nowhere:1-10"), "2>&-")
    assert (done.returncode, done.stdout) == (1, b"")


def test_messages_that_cannot_be_written_do_not_end_the_run(made: ReadSet, made_calls: bytes):
    done = run(made.command(), "2>/dev/full")
    assert done.stdout == made_calls


@pytest.mark.parametrize(
    ("variable", "value", "has_colours"),
    [("NO_COLOR", "1", False), ("NO_COLOR", "", True), ("TERM", "dumb", False), ("TERM", "xterm", True)],
)
def test_colours_are_for_those_who_want_them(
    variable: str, value: str, has_colours: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(console, "is_terminal", lambda: True)
    with console.on_standard_error():
        console.warning("test", "a word")
    assert ("\x1b[" in capfd.readouterr().err) == has_colours
