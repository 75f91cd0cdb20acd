"""Where results go: standard output or a file."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Protocol

from f5py.errors import OutputFileError
from f5py.io.bgzip_output import BgzipOutput, is_bgzip_name

_CHUNK_BYTES = 65536
#: What writing ends with, and reading does not.
_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EBADF)


class TextOutput(Protocol):
    """What lines of text are written to, as bytes."""

    def write(self, text: Any, /) -> Any:
        """Take text."""
        ...

    def flush(self) -> Any:
        """Let others see what has been written."""
        ...


@contextmanager
def open_output(path: str, n_threads: int = 1) -> Iterator[TextOutput]:
    """Open `path` for writing lines of text as bytes; ``-`` is standard output.

    A file whose name ends in ``.gz`` is compressed as bgzip does it, in `n_threads` threads. Everything is flushed
    at the end, so that a full disk is noticed while the command can still report it. A file of text that could not
    be written further is cut after its last whole line.

    Raises
    ------
    OutputFileError
        The output cannot be opened or written.
    BrokenPipeError
        The reader of the output has gone away.
    """
    name = "standard output" if path == "-" else path
    out = _open(path)
    bgzip = BgzipOutput(out, n_threads) if path != "-" and is_bgzip_name(path) else None
    try:
        yield bgzip or out
        if bgzip is not None:
            bgzip.close()
        else:
            out.flush()
    except OSError as problem:
        # A failing write has no other file's name, and one of few numbers; other errors from the block concern others.
        is_ours = problem.filename == path or (problem.filename is None and problem.errno in _WRITE_ERRORS)
        if problem.errno in (None, errno.EPIPE) or not is_ours:
            raise
        if bgzip is not None:
            bgzip.abandon()
        else:
            _abandon(out, path)
        raise OutputFileError(f"{name}: cannot write: {problem.strerror}; the output is incomplete") from None
    finally:
        if path != "-":
            with suppress(OSError):  # only if an earlier flush has failed, which is being reported
                (bgzip or out).close()


@contextmanager
def blamed_on(path: str) -> Iterator[None]:
    """Give errors of writing in the block the name of the file: they are not to be taken for those of other outputs."""
    try:
        yield
    except OSError as problem:
        if problem.errno and problem.filename is None:
            problem.filename = path
        raise


def _open(path: str) -> BinaryIO:
    if path != "-":
        try:
            file: BinaryIO = open(path, "wb", opener=_open_untouched)  # noqa: SIM115 - closed by the caller
        except OSError as problem:
            raise OutputFileError(f"{path}: cannot write: {problem.strerror}") from None
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            _lock(file, path)
            os.ftruncate(file.fileno(), 0)
        return file
    if sys.stdout is None:
        raise OutputFileError("standard output: is closed; name a file with -o")
    out = sys.stdout.buffer
    if isinstance(out, io.RawIOBase):  # with python -u; it may write a part only
        return open(out.fileno(), "wb", closefd=False)
    return out


def _open_untouched(path: str, flags: int) -> int:
    """Open a file for writing without cutting it: it may be the output of another run."""
    return os.open(path, flags & ~os.O_TRUNC, 0o666)


def _lock(out: BinaryIO, path: str) -> None:
    """Refuse a file that another run is writing: the rows of both would be mixed."""
    try:
        fcntl.flock(out.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        out.close()
        raise OutputFileError(f"{path}: another run is writing to it; give another name") from None
    except OSError:  # file systems without locks
        return


def _abandon(out: BinaryIO, path: str) -> None:
    """Close a file that cannot be written further, and drop the line that was left half-done."""
    if path == "-":
        return
    with suppress(OSError):
        out.close()
    with suppress(OSError), open(path, "r+b") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return
        end = file.seek(0, os.SEEK_END)
        line_end = 0
        while end > 0 and line_end == 0:
            begin = max(0, end - _CHUNK_BYTES)
            file.seek(begin)
            newline = file.read(end - begin).rfind(b"\n")
            line_end = begin + newline + 1 if newline >= 0 else 0
            end = begin
        file.truncate(line_end)
