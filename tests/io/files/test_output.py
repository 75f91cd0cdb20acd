"""Destinations of results, and what stays when they fail."""

from __future__ import annotations

import errno
import fcntl
import gzip
import os
import struct
import subprocess
import sys
import termios
import time

import pytest

from f5py.errors import F5pyError, InputFileError, OutputFileError
from f5py.io.bytes.bgzf_blocks import END_BLOCK
from f5py.io.files.atomic_write import files_with_rows, finish_pending, forget_files_with_rows
from f5py.io.files.complete_file import complete_output
from f5py.io.files.output import open_output

from ...patience import PATIENCE


def put(path, *pieces):
    with open_output(str(path)) as out:
        for piece in pieces:
            if isinstance(piece, BaseException):
                raise piece
            out.write(piece)


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
        assert process.wait(timeout=PATIENCE) == 0
    assert size == 1_000_000


@pytest.mark.parametrize("name", ["x", "x.gz"])
@pytest.mark.parametrize("problem", [ZeroDivisionError(), KeyboardInterrupt(), InputFileError("y: is damaged")])
def test_after_an_error_the_rows_have_no_final_name(tmp_path, name, problem):
    path, unfinished = tmp_path / name, tmp_path / f".unfinished-{name}"
    path.write_bytes(b"old")
    forget_files_with_rows()
    with pytest.raises(type(problem)) as raised:
        put(path, b"header\n", b"a\n", b"half a r", problem)
    assert path.read_bytes() == b"old"
    assert files_with_rows() == [str(unfinished)]
    if name == "x":
        assert unfinished.read_bytes() == b"header\na\n"
    else:
        assert gzip.decompress(unfinished.read_bytes()) == b"header\na\nhalf a r"
        assert not unfinished.read_bytes().endswith(END_BLOCK)
    if isinstance(problem, F5pyError):
        assert str(raised.value) == f"y: is damaged; the rows until then are in {unfinished}"
    put(path, b"new\n")
    assert gzip.decompress(path.read_bytes()) == b"new\n" if name == "x.gz" else path.read_bytes() == b"new\n"
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("pieces", [[], [b"header\n"]])
@pytest.mark.parametrize("name", ["x", "x.gz"])
def test_nothing_is_left_of_a_table_without_rows(tmp_path, name, pieces):
    with pytest.raises(InputFileError) as raised:
        put(tmp_path / name, *pieces, InputFileError("y"))
    assert str(raised.value) == "y"
    assert os.listdir(tmp_path) == []


def test_an_unfinished_file_that_is_removed_is_missed(tmp_path):
    def write():
        with open_output(str(tmp_path / "x")) as out:
            out.write(b"a\n")
            (tmp_path / ".unfinished-x").unlink()

    with pytest.raises(OutputFileError, match=r"x: .*\.unfinished-x, which it was written to, has been removed"):
        write()


@pytest.mark.parametrize("how", ["-", "fifo"])
def test_a_pipe_that_nobody_reads_gets_whole_rows(tmp_path, how):
    """Also if the process is killed while it writes more than the pipe takes."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    code = (
        "import sys; from f5py.io.files.output import open_output\n"
        "rows = b''.join(b'%d\\t%s\\n' % (i, b'x' * (i % 977)) for i in range(20_000))\n"
        "with open_output(sys.argv[1]) as out: out.write(rows)"
    )
    with (
        pipe.open("wb") as end,
        subprocess.Popen([sys.executable, "-c", code, "-" if how == "-" else pipe], stdout=end) as process,
    ):
        size = struct.pack("i", 0)
        while struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, size))[0] < 50_000:
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(0.2)
        process.kill()
    text = b"".join(iter(lambda: os.read(reader, 1 << 16), b""))
    os.close(reader)
    assert text.endswith(b"\n")
    assert [int(row.split(b"\t")[0]) for row in text.splitlines()] == list(range(text.count(b"\n")))
    assert text.count(b"\n") > 50


def test_rows_of_any_length_go_through_a_pipe():
    code = (
        "from f5py.io.files.output import open_output\n"
        "with open_output('-') as out:\n"
        "    for size in (1, 4095, 4096, 4097, 70_000): out.write(b'x' * size + b'\\n' + b'half')"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"".join(b"x" * size + b"\nhalf" for size in (1, 4095, 4096, 4097, 70_000))


def test_errors_of_other_files_are_not_taken_for_those_of_the_output(tmp_path):
    for problem in (
        OSError(errno.ENOENT, "No such file", "other"),
        OSError("an error without a number"),
        BrokenPipeError(errno.EPIPE, "Broken pipe"),
    ):
        with pytest.raises(OSError) as raised:  # noqa: PT011 - it is the same one
            put(tmp_path / "x", problem)
        assert raised.value is problem


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
            finish_pending()
            assert sorted(path.name for path in tmp_path.iterdir()) == ["earlier", "whole"]
            file.write(b"more")

    with pytest.raises(OutputFileError, match=r"earlier: cannot write: No such file or directory; no file was made"):
        write()
    finish_pending()
    assert earlier.read_bytes() == b"old"
    assert (tmp_path / "whole").read_bytes() == b"whole"
    assert len(list(tmp_path.iterdir())) == 2
