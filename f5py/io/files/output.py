"""Destinations of results: standard output or a file."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Protocol, cast

from f5py.errors import F5pyError, InputFileError, OutputFileError
from f5py.io.bytes.bgzip_output import BgzipOutput, is_bgzip_name
from f5py.io.files.inputs_in_use import check_can_be_output
from f5py.io.files.unfinished_file import UnfinishedFile, is_special

#: What writing ends with, and reading does not.
_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EBADF)

#: Copied at a time: what stays in a processor's cache on its way.
_COPY_BYTES = 1 << 17


class TextOutput(Protocol):
    """Interface of outputs for lines of text, as bytes."""

    def write(self, text: Any, /) -> Any:
        """Take text."""
        ...

    def flush(self) -> Any:
        """Let others see what has been written."""
        ...


def shown_output(path: str) -> str:
    """Name an output in messages; ``-`` is standard output."""
    return "standard output" if path == "-" else path


def copy_bytes(path: Any, file: Any, n_bytes: int, write: Callable[[bytes], object]) -> None:
    """Write the next `n_bytes` of a binary file that has this name. Raises `InputFileError` if it has not so many."""
    while n_bytes:
        piece = file.read(min(n_bytes, _COPY_BYTES))
        if not piece:
            raise InputFileError(f"{path}: is shorter than it was")
        write(piece)
        n_bytes -= len(piece)


@contextmanager
def open_output(path: str, n_threads: int = 1, is_text: bool = True) -> Iterator[TextOutput]:
    """Open `path` for writing lines of text as bytes; ``-`` is standard output.

    A file whose name ends in ``.gz`` is compressed as bgzip does it, in `n_threads` threads. Everything is flushed
    at the end, so that a full disk is noticed while the command can still report it.

    A file gets its name when the block ends without an error. Else its whole rows, or whole blocks of a compressed one,
    stay under the name of an unfinished file, which errors name; see `f5py.io.files.unfinished_file.kept_rows` for
    interrupts. Devices and pipes are written directly; a pipe gets whole rows even if the process ends while it writes,
    as far as rows are not longer than what the system writes at once.

    Raises
    ------
    UsageError
        The output is an input of a command that is running.
    OutputFileError
        The output cannot be opened or written.
    BrokenPipeError
        The reader of the output has gone away.
    """
    name = shown_output(path)
    unfinished = None if path == "-" or is_special(path) else UnfinishedFile(path, keeps_rows=True)
    out = _open(path, is_text) if unfinished is None else unfinished.file
    bgzip = BgzipOutput(out, n_threads) if path != "-" and is_bgzip_name(path) else None
    if unfinished is not None and bgzip is not None:
        unfinished.size_of_whole_blocks = lambda: bgzip.n_written
    try:
        yield bgzip or out
        if bgzip is not None:
            bgzip.close()
        elif path != "-":
            out.close()  # which may be when a disk elsewhere says that it is full
        else:
            out.flush()
        if unfinished is not None:
            unfinished.put_in_place()
    except BaseException as problem:
        if bgzip is not None:
            bgzip.end_early()
        elif path != "-":
            with suppress(OSError):  # only if an earlier flush has failed, which is being reported
                out.close()
        kept = None if unfinished is None else unfinished.keep_rows()
        rows = "" if kept is None else f"; the rows until then are in {kept}"
        if isinstance(problem, F5pyError) and rows:
            raise type(problem)(f"{problem}{rows}") from problem
        if not isinstance(problem, OSError):
            raise
        # A failing write has no other file's name, and one of few numbers; other errors from the block concern others.
        ours = (path,) if unfinished is None else (path, unfinished.path)
        is_ours = problem.filename in ours or (problem.filename is None and problem.errno in _WRITE_ERRORS)
        if problem.errno in (None, errno.EPIPE) or not is_ours:
            raise
        if unfinished is not None and problem.errno == errno.ENOENT:
            raise OutputFileError(f"{name}: {unfinished.path}, which it was written to, has been removed") from None
        raise OutputFileError(f"{name}: cannot write: {problem.strerror}; the output is incomplete{rows}") from None


class _PipeOfRows(io.RawIOBase):
    """A pipe that never gets a part of a row, unless the row alone is longer than what the system writes at once.

    Up to `select.PIPE_BUF` bytes are written as a whole or not at all, also if a signal ends the process meanwhile.

    Parameters
    ----------
    closes : bool
        Close it at the end.
    """

    def __init__(self, descriptor: int, closes: bool) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._closes = closes

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, text: Any, /) -> int:
        """Write all of it."""
        whole = memoryview(text).cast("B")
        at = 0
        while at < len(whole):
            piece = bytes(whole[at : at + select.PIPE_BUF])
            if len(piece) == select.PIPE_BUF:
                piece = piece[: piece.rfind(b"\n") + 1] or piece
            at += len(piece)
            while piece:  # a pipe that does not block takes less
                piece = piece[os.write(self._descriptor, piece) :]
        return len(whole)

    def close(self) -> None:
        if self._closes and not self.closed:
            os.close(self._descriptor)
        super().close()


def _open(path: str, is_text: bool) -> BinaryIO:
    """Open a device, a pipe, or standard output."""
    if path != "-":
        try:
            file = open(path, "wb")  # noqa: SIM115 - closed by the caller
        except OSError as problem:
            raise OutputFileError(f"{path}: cannot write: {problem.strerror}") from None
        if not is_text or not _is_pipe(file.fileno()):
            return file
        with file:
            return cast(BinaryIO, _PipeOfRows(os.dup(file.fileno()), True))
    if sys.stdout is None:
        raise OutputFileError("standard output: is closed; name a file with -o")
    check_can_be_output(path)
    out = sys.stdout.buffer
    with suppress(OSError, ValueError):  # tests have a standard output that is no file
        if is_text and _is_pipe(out.fileno()):
            out.flush()
            return cast(BinaryIO, _PipeOfRows(out.fileno(), False))
    if isinstance(out, io.RawIOBase):  # with python -u; it may write a part only
        return open(out.fileno(), "wb", closefd=False)
    return out


def _is_pipe(descriptor: int) -> bool:
    return stat.S_ISFIFO(os.fstat(descriptor).st_mode)
