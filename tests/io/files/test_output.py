"""Where results go, and what stays when they cannot."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
import time

import pytest

from f5py.errors import OutputFileError
from f5py.io.files.complete_file import complete_output
from f5py.io.files.output import open_output
from f5py.io.files.unfinished_file import settle_unfinished


def put(path, *pieces):
    with open_output(str(path)) as out:
        for piece in pieces:
            if isinstance(piece, BaseException):
                raise piece
            out.write(piece)


def test_file_and_standard_output(tmp_path, capfd):
    path = tmp_path / "x"
    put(path, b"a\n", b"b\n")
    assert path.read_bytes() == b"a\nb\n"
    put("-", b"c\n")
    assert capfd.readouterr().out == "c\n"
    assert not sys.stdout.closed


def test_unbuffered_standard_output_is_written_whole():
    """It is a raw file then, which may write a part only: here because of a signal while the pipe is full."""
    code = (
        "import signal; from f5py.io.files.output import open_output\n"
        "signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)\n"
        "with open_output('-') as out: out.write(b'x' * 1_000_000)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)"
    )
    with subprocess.Popen([sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, bufsize=0) as process:
        size = 0
        while piece := process.stdout.read(20_000):
            size += len(piece)
            time.sleep(0.005)
        assert process.wait(timeout=10) == 0
    assert size == 1_000_000


def test_after_an_error_of_the_block_the_rows_are_there(tmp_path):
    path = tmp_path / "x"
    with pytest.raises(ZeroDivisionError):
        put(path, b"a\n", ZeroDivisionError())
    assert path.read_bytes() == b"a\n"


def test_errors_of_other_files_are_not_taken_for_those_of_the_output(tmp_path):
    for problem in (
        OSError(errno.ENOENT, "No such file", "other"),
        OSError("an error without a number"),
        BrokenPipeError(errno.EPIPE, "Broken pipe"),
    ):
        with pytest.raises(OSError) as raised:  # noqa: PT011 - it is the same one
            put(tmp_path / "x", problem)
        assert raised.value is problem


def test_not_openable(tmp_path):
    with pytest.raises(OutputFileError, match=r"absent/x: cannot write: No such file"):
        put(tmp_path / "absent" / "x")
    with pytest.raises(OutputFileError, match="is a folder; give the name of a file"):
        put(tmp_path)


def test_closed_standard_output(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(OutputFileError, match="standard output: is closed; name a file with -o"):
        put("-")


@pytest.mark.parametrize("size", [3, 10, 4096, 100_000])
@pytest.mark.parametrize("first", [b"", b"first row\n"])
def test_no_half_row_is_left_on_a_full_disk(tmp_path, first, size):
    """The row in which the disk got full is removed, however long it is."""
    path = tmp_path / "x"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(first) + size, limits[1]))
    try:
        with pytest.raises(OutputFileError, match=r"x: cannot write: File too large; the output is incomplete"):
            put(path, first, b"r" * 200_000 + b"\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == first


def test_unfinished_files_can_be_discarded(tmp_path):
    """Those that are being written, not those that are complete or have failed; the writer is told at the end."""
    earlier = tmp_path / "earlier"
    earlier.write_bytes(b"old")
    with complete_output(str(tmp_path / "whole")) as file:
        file.write(b"whole")

    def write():
        with complete_output(str(earlier)) as file:
            file.write(b"new")
            assert len(list(tmp_path.iterdir())) == 3
            settle_unfinished()
            assert sorted(path.name for path in tmp_path.iterdir()) == ["earlier", "whole"]
            file.write(b"more")

    with pytest.raises(OutputFileError, match=r"earlier: cannot write: No such file or directory; no file was made"):
        write()
    settle_unfinished()
    assert earlier.read_bytes() == b"old"
    assert (tmp_path / "whole").read_bytes() == b"whole"
    assert len(list(tmp_path.iterdir())) == 2
