"""Progress of long work, as a person at a terminal sees it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from f5py.messages import console
from f5py.messages import progress as module
from f5py.messages.progress import in_words, on_progress, progress

from ..made_data import ReadSet, run_process, start_process
from ..patience import PATIENCE

MB = 1_000_000


@pytest.mark.parametrize(
    ("unit", "done", "total", "seconds", "before", "words"),
    [
        ("bases", 0, None, 0.0, 0, "0.0 Mbases"),
        ("bases", 2 * MB, 10 * MB, 0.5, 0, "2.0 of 10.0 Mbases"),
        ("bases", 2 * MB, 10 * MB, 4.0, 0, "2.0 of 10.0 Mbases, 0.5 Mbases/s, 0:16 left"),
        ("bases", 3 * MB, 10 * MB, 4.0, 1 * MB, "3.0 of 10.0 Mbases, 0.5 Mbases/s, 0:14 left"),
        ("bases", 2 * MB, None, 4.0, 0, "2.0 Mbases, 0.5 Mbases/s"),
        ("bases", 2 * MB, 2 * MB, 4.0, 0, "2.0 of 2.0 Mbases, 0.5 Mbases/s"),
        ("bytes", 20 * MB, 72_020 * MB, 10.0, 0, "20.0 of 72,020 MB, 2.0 MB/s, 10:00:00 left"),
        ("fast5 files", 1500, 4000, 1.0, 0, "1,500 of 4,000 fast5 files, 1,500 fast5 files/s, 0:02 left"),
    ],
)
def test_words_beside_the_bar(unit: str, done: int, total: int | None, seconds: float, before: int, words: str) -> None:
    assert in_words(unit, done, total, seconds, before) == words


def test_a_listener_is_told_while_it_is_set(capfd: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[str, int, int | None]] = []
    with on_progress(lambda *what: told.append(what)), progress("reads", 5) as bar:
        bar.advance(2)
        bar.expect(7)
        bar.advance(1)
    with progress("reads", 5) as bar:  # and nobody here
        bar.advance(2)
    assert told == [("reads", 2, 5), ("reads", 3, 7)]
    assert capfd.readouterr() == ("", "")


def test_lines_in_a_log(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Where nobody looks on, a line a minute tells how far the work is; with --quiet in the log file only."""

    def work() -> str:
        with progress("bases", 10 * MB) as bar:
            bar.advance(2 * MB)
            bar.advance(1 * MB)
        return capfd.readouterr().err

    with console.on_standard_error():
        assert work() == ""
        monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.0)
        told = work().splitlines()
        assert told == ["[progress] 20 %, 2.0 of 10.0 Mbases", "[progress] 30 %, 3.0 of 10.0 Mbases"]
        console.be_quiet()
        assert work() == ""
        console.log_to(str(tmp_path / "log"))
        assert work() == ""
    assert (tmp_path / "log").read_text().splitlines() == told


def on_terminal(command: list[str]) -> str:
    """Return what a command shows on a terminal."""
    ours, theirs = pty.openpty()
    with start_process(command, stderr=theirs, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # what Linux says when the other end is closed
            pass
        finally:
            os.close(ours)
        assert process.wait(PATIENCE) == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def test_a_run_on_a_terminal(made: ReadSet, tmp_path: Path) -> None:
    shown = on_terminal(made.command("-o", str(tmp_path / "calls.tsv"), "-K", "2"))
    assert re.search(r"\d+ % \d+\.\d of \d+\.\d Mbases", shown)
    assert "Entries (" not in shown
    assert "total entries: 16, qc fail: 0" in shown
    result = re.search(r"\] (\d+) calls of 16 of 16 reads; (\d+\.\d) % of those .* written: (\S+)\r\n", shown)
    assert result is not None
    assert int(result[1]) == (tmp_path / "calls.tsv").read_text().count("\n") - 1
    assert result[3] == str(tmp_path / "calls.tsv")
    ratios = [float(line.split("\t")[5]) for line in (tmp_path / "calls.tsv").read_text().splitlines()[1:]]
    expected = 100 * sum(ratio >= 2.5 for ratio in ratios) / sum(abs(ratio) >= 2.5 for ratio in ratios)
    assert float(result[2]) == pytest.approx(expected, abs=0.3)
    assert "Entries (" in on_terminal(made.command("-o", str(tmp_path / "calls.tsv"), "-v"))


def test_a_run_with_a_log(made: ReadSet, tmp_path: Path) -> None:
    """f5c's lines for each batch, no bar, what came out, and no hint about GPUs where there is none."""
    command = made.command("-o", str(tmp_path / "calls.tsv"))
    done = run_process(command, text=True)
    assert done.returncode == 0
    assert "16 Entries (0.0M bases) loaded" in done.stderr
    assert not re.search(r"\d+ % \d+\.\d of", done.stderr)
    assert re.search(r"\] \d+ calls of 16 of 16 reads; .* written: .*calls\.tsv\n", done.stderr)
    if not os.path.exists("/dev/nvidiactl"):
        assert "GPU" not in done.stderr


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
