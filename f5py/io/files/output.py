"""Where results go: standard output or a file."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Protocol

from f5py.errors import InputFileError, OutputFileError
from f5py.io.bytes.bgzip_output import BgzipOutput, is_bgzip_name
from f5py.io.files.inputs_in_use import check_can_be_output
from f5py.io.files.unfinished_file import UnfinishedFile, is_special

#: What writing ends with, and reading does not.
_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EBADF)

#: Copied at a time: what stays in a processor's cache on its way.
_COPY_BYTES = 1 << 17


class TextOutput(Protocol):
    """What lines of text are written to, as bytes."""

    def write(self, text: Any, /) -> Any:
        """Take text."""
        ...

    def flush(self) -> Any:
        """Let others see what has been written."""
        ...


def shown_output(path: str) -> str:
    """What an output is called in messages; ``-`` is standard output."""
    return "standard output" if path == "-" else path


def copy_bytes(path: Any, file: Any, n_bytes: int, write: Callable[[bytes], object]) -> None:
    """Write the next `n_bytes` of a binary file that has this name.

    Raises
    ------
    InputFileError
        It has not so many.
    """
    while n_bytes:
        piece = file.read(min(n_bytes, _COPY_BYTES))
        if not piece:
            raise InputFileError(f"{path}: is shorter than it was")
        write(piece)
        n_bytes -= len(piece)


@contextmanager
def open_output(path: str, n_threads: int = 1) -> Iterator[TextOutput]:
    """Open `path` for writing lines of text as bytes; ``-`` is standard output.

    A file whose name ends in ``.gz`` is compressed as bgzip does it, in `n_threads` threads. Everything is flushed
    at the end, so that a full disk is noticed while the command can still report it.

    A file gets its name when the block ends, also by an error: its rows until then are valid, and text that could not
    be written further is cut after its last whole line. A process that is killed leaves nothing under that name.
    Devices and pipes are written directly.

    Raises
    ------
    OutputFileError
        The output cannot be opened or written.
    BrokenPipeError
        The reader of the output has gone away.
    """
    name = shown_output(path)
    unfinished = None if path == "-" or is_special(path) else UnfinishedFile(path, keeps_rows=True)
    out = _open(path) if unfinished is None else unfinished.file
    bgzip = BgzipOutput(out, n_threads) if path != "-" and is_bgzip_name(path) else None
    try:
        yield bgzip or out
        if bgzip is not None:
            bgzip.close()
        elif path != "-":
            out.close()  # which may be when a disk elsewhere says that it is full
        else:
            out.flush()
    except OSError as problem:
        # A failing write has no other file's name, and one of few numbers; other errors from the block concern others.
        is_ours = problem.filename == path or (problem.filename is None and problem.errno in _WRITE_ERRORS)
        if problem.errno in (None, errno.EPIPE) or not is_ours:
            raise
        if bgzip is not None:
            bgzip.abandon()
        elif unfinished is not None:
            with suppress(OSError):
                out.close()
            with suppress(OSError):
                unfinished.keep_whole_lines()
        raise OutputFileError(f"{name}: cannot write: {problem.strerror}; the output is incomplete") from None
    finally:
        if path != "-":
            with suppress(OSError):  # only if an earlier flush has failed, which is being reported
                (bgzip or out).close()
        if unfinished is not None:
            _name(unfinished, path)


def _name(unfinished: UnfinishedFile, path: str) -> None:
    try:
        unfinished.put_in_place()
    except FileNotFoundError:  # it has been settled, because a thread may still write to it
        return
    except OSError as problem:
        raise OutputFileError(f"{path}: cannot write: {problem.strerror}; the rows are in {unfinished.path}") from None


def _open(path: str) -> BinaryIO:
    if path != "-":
        try:
            return open(path, "wb")
        except OSError as problem:
            raise OutputFileError(f"{path}: cannot write: {problem.strerror}") from None
    if sys.stdout is None:
        raise OutputFileError("standard output: is closed; name a file with -o")
    check_can_be_output(path)
    out = sys.stdout.buffer
    if isinstance(out, io.RawIOBase):  # with python -u; it may write a part only
        return open(out.fileno(), "wb", closefd=False)
    return out
