"""Outputs that cannot be written, options that are wrong, and what is left after an error."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ...made_data import ReadSet, error_line, run_command, run_process, start_process
from ...patience import PATIENCE
from .commands import SignalCommand, without_header
from .conftest import Fails

full_disk = pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")


def test_outputs_that_cannot_be(command: SignalCommand, made: ReadSet, tmp_path: Path, fails: Fails) -> None:
    """Noticed before any work, also where the file is written only at the end."""
    absent, unwritten = tmp_path / "absent" / "out", tmp_path / "output" / "unwritten.tsv"
    others = {
        "call-methylation": ["--skip-ultra", "--report", "--failed-reads", "--modbam", "--bedmethyl"],
        "eventalign": ["--skip-ultra", "--report", "--failed-reads", "--summary"],
        "resquiggle": ["--failed-reads"],
    }[command.name]
    for option in ("-o", *others):
        assert f"{absent}: cannot write: No such file or directory" in fails(made, option, absent)
    assert "is a folder; name a file" in fails(made, "-o", tmp_path, status=2)
    for option in others:
        assert f"cannot be the output of both -o and {option}" in fails(made, option, unwritten, status=2)
        if option != "--modbam":  # which may go to a pipe
            assert f"{option} -: give the name of a file" in fails(made, option, "-", status=2)
    if len(others) > 1:
        one, other = others[:2]
        assert "cannot be the output of both " in fails(made, one, tmp_path / "x", other, tmp_path / "x", status=2)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_output_in_a_write_protected_folder(command: SignalCommand, made: ReadSet, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    assert run_command(*command.arguments(made, "-o", locked / "out.tsv")) == 1


def test_inputs_are_not_written_over(command: SignalCommand, unlabelled: ReadSet, tmp_path: Path, fails: Fails) -> None:
    model = tmp_path / "model.txt"
    model.write_text("#k\t1\nA\t1\t1\nC\t1\t1\nG\t1\t1\nT\t1\t1\n")
    inputs = ["reads", "bam", "genome"] if command.is_mapped else ["reads", "signal_path"]
    second = {"call-methylation": "--skip-ultra", "eventalign": "--summary", "resquiggle": "--failed-reads"}
    for name in inputs:
        copy = tmp_path / getattr(unlabelled, name).name
        shutil.copy(getattr(unlabelled, name), copy)
        (tmp_path / f"{name}.link").symlink_to(copy)
        before = copy.read_bytes()
        changed = replace(unlabelled, **{name: copy})
        for option in ("-o", second[command.name]):
            assert "is an input as well" in fails(changed, option, tmp_path / f"{name}.link", status=2)
            assert copy.read_bytes() == before
    assert "is an input as well" in fails(unlabelled, "--kmer-model", model, "-o", model, status=2)
    assert model.stat().st_size > 0


def test_wrong_usage(command: SignalCommand, made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    extra = [(["one", "extra"], "takes no arguments, and one is one")] if command.is_mapped else []
    for options, words in (
        *extra,
        (["--pore", "r8"], "--pore r8: is not one of"),
        (["--nonsense"], "has no option --nonsense"),
        (["-t", "0"], "--threads 0: must be at least 1"),
        (["-K", "many"], "--batchsize many: is not a whole number"),
    ):
        assert run_command(*command.arguments(made, "-o", tmp_path / "out.tsv", *options)) == 2
        told = capfd.readouterr().err
        assert words in told
        assert "Traceback" not in told
        assert list(tmp_path.iterdir()) == []


@full_disk
def test_full_disk(command: SignalCommand, made: ReadSet, capfd: pytest.CaptureFixture[str]) -> None:
    layouts = {"eventalign": [[], ["--paf"], ["--sam"], ["--collapse-events"]], "resquiggle": [[], ["--paf"]]}
    for options in layouts.get(command.name, [[]]):
        assert run_command(*command.arguments(made, "-o", "/dev/full", *options)) == 1
        line = error_line(capfd.readouterr().err)
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
        "call-methylation": [["--skip-ultra", "--ultra-thresh", "1"], ["--report"], ["--failed-reads"]],
        "eventalign": [["--summary"], ["--report"], ["--failed-reads"]],
        "resquiggle": [["--failed-reads"]],
    }[command.name]:
        assert run_command(*command.arguments(made, "-o", out, option, "/dev/full", *more)) == 1
        line = error_line(capfd.readouterr().err)
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
    """A compressed one can be read."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    for name, size in (("out.tsv", len(table) // 2 + 7), ("out.tsv.gz", len(table) // 40)):
        out = tmp_path / name
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
        try:
            assert run_command(*command.arguments(made, "--iop", 1, "-o", out)) == 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        line = error_line(capfd.readouterr().err)
        assert f"{out}: cannot write: File too large" in line
        assert not out.exists()
        unfinished = out.with_name(f".unfinished-{name}")
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


def test_the_same_rows_in_any_number_of_batches(
    command: SignalCommand, made: ReadSet, table: bytes, tmp_path: Path
) -> None:
    """What the other tests take for granted."""
    out = tmp_path / "out.tsv"
    assert run_command(*command.arguments(command.many(made, tmp_path, 2), "-K", 5, "-o", out)) == 0
    assert out.read_bytes() == table + without_header(table)
