"""Outputs that cannot be written, options that are wrong, and what is left after an error."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from ...made_data import ReadSet, error_line, refused, run_command, run_process, start_process
from ...patience import PATIENCE
from .commands import SignalCommand

full_disk = pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_output_in_a_write_protected_folder(command: SignalCommand, made: ReadSet, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    assert run_command(*command.arguments(made, "-o", locked / "out.tsv")) == 1


@full_disk
def test_full_disk(command: SignalCommand, made: ReadSet, capfd: pytest.CaptureFixture[str]) -> None:
    layouts = {"eventalign": [[], ["--paf"], ["--sam"], ["--collapse-events"]], "resquiggle": [[], ["--paf"]]}
    for options in layouts.get(command.name, [[]]):
        line = refused(capfd, *command.arguments(made, "-o", "/dev/full", *options))
        assert "/dev/full: cannot write: No space left on device; the output is incomplete" in line
    with open("/dev/full", "wb") as full:
        told = run_process(command.process(made, "-K", 2), stdout=full)
    assert told.returncode == 1
    line = error_line(told.stderr.decode())
    assert "standard output: cannot write: No space left on device; the output is incomplete" in line


@full_disk
def test_full_disk_names_the_right_file(
    command: SignalCommand, made: ReadSet, table: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What else is written is whole."""
    out = tmp_path / "out.tsv"
    for option, *more in {
        "call-methylation": [
            ["--skip-ultra", "--ultra-thresh", "1"], ["--report"], ["--failed-reads"], ["--modbam"], ["--bedmethyl"]
        ],
        "eventalign": [["--summary"], ["--report"], ["--failed-reads"]],
        "resquiggle": [["--failed-reads"]],
    }[command.name]:  # fmt: skip
        line = refused(capfd, *command.arguments(made, "-o", out, option, "/dev/full", *more))
        assert "/dev/full: cannot write: No space left on device" in line
        assert str(out) not in line
        unfinished = out.with_name(f".unfinished-{out.name}")
        if option == "--report":  # which is written at the end
            assert out.read_bytes() == table
            out.unlink()
        elif str(unfinished) in line:
            assert table.startswith(unfinished.read_bytes())
            assert unfinished.read_bytes().endswith(b"\n")
        assert not out.exists()


def test_file_that_cannot_grow_ends_with_a_whole_row(
    command: SignalCommand, made: ReadSet, table: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A compressed one can be read. Other files are not left."""
    others = ["--modbam", tmp_path / "m.bam", "--bedmethyl", tmp_path / "s.bed"]
    others = others if command.name == "call-methylation" else []
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    for name, size in (("out.tsv", len(table) // 2 + 7), ("out.tsv.gz", len(table) // 40)):
        out = tmp_path / name
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
        try:
            assert run_command(*command.arguments(made, "--iop", 1, "-o", out, *others)) == 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        line = error_line(capfd.readouterr().err)
        assert f"{out}: cannot write: File too large" in line
        unfinished = out.with_name(f".unfinished-{name}")
        assert set(tmp_path.iterdir()) <= {unfinished, tmp_path / ".unfinished-out.tsv"}
        if name == "out.tsv":
            assert f"; the rows until then are in {unfinished}" in line
            assert table[:size].rpartition(b"\n")[0] + b"\n" == unfinished.read_bytes()
        elif unfinished.exists():
            assert table.startswith(run_process(["gzip", "-dc"], stdin=unfinished.open()).stdout)


def test_standard_output_is_closed(command: SignalCommand, made: ReadSet) -> None:
    told = run_process(["sh", "-c", 'exec "$@" >&-', "sh", *command.process(made)])
    assert told.returncode == 1
    assert "standard output: is closed; name a file with -o" in error_line(told.stderr.decode())


def test_closed_pipe_is_quiet(command: SignalCommand, made: ReadSet, table: bytes, tmp_path: Path) -> None:
    many = command.many(made, tmp_path, 16)  # more than a pipe holds
    with start_process(command.process(many, "-K", 1), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == table.splitlines(keepends=True)[0]
        process.stdout.close()
        messages = process.stderr.read().decode()
        assert process.wait(timeout=PATIENCE) == 128 + signal.SIGPIPE
    starts = ("[init_cuda", "[meth_main::", "[resquiggle_main::", "[pthread_")
    first, *lines = messages.splitlines()
    assert "chemistry R9.4 DNA (" in first
    assert all(line.startswith(starts) for line in lines), messages
    assert "ERROR" not in messages
