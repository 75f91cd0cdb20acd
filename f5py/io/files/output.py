"""Outputs for results: standard output, pipes or files."""

import errno
import io
import os
import select
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import Any, BinaryIO, Protocol, cast

from f5py.errors import F5pyError, InputFileError, OutputFileError
from f5py.io.bytes.bgzip_output import BgzipOutput, is_bgzip_name
from f5py.io.files.atomic_write import AtomicFile, finish_pending, is_direct
from f5py.io.files.inputs_in_use import check_can_be_output
from f5py.threads.pipeline import writer_has_ended

#: Errors of writing only.
_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EBADF)

#: Copy unit, which fits a processor cache.
_COPY_BYTES = 1 << 17
#: Seconds to wait for a writer that was asked to stop.
_STOP_SECONDS = 0.4
#: Outputs in use by a thread until the process ends; garbage collection would close them.
_left_open: list[ExitStack] = []


class TextOutput(Protocol):
    """Protocol of outputs for lines of text, as bytes."""

    def write(self, text: Any, /) -> Any: ...

    def flush(self) -> Any: ...


def display_output(path: str) -> str:
    """Return an output's name for messages; ``-`` is standard output."""
    return "standard output" if path == "-" else path


def copy_bytes(path: Any, file: Any, n_bytes: int, write: Callable[[bytes], object]) -> None:
    """Copy the next `n_bytes` of a file named `path`; raise `InputFileError` if it is shorter."""
    while n_bytes:
        piece = file.read(min(n_bytes, _COPY_BYTES))
        if not piece:
            raise InputFileError(f"{path}: is shorter than it was")
        write(piece)
        n_bytes -= len(piece)


@contextmanager
def open_output(path: str, n_threads: int = 1) -> Iterator[TextOutput]:
    """Open `path` for writing lines of text; ``-`` is standard output.

    Names that end in ``.gz`` are compressed with BGZF in `n_threads` threads. All is flushed at the end.

    A file gets its name when the block ends without an error. Otherwise its whole rows, or whole compressed blocks,
    stay under a temporary name, which errors state; see `f5py.io.files.atomic_write.files_with_rows` for interrupts.
    Devices and pipes are written directly; pipes get whole rows up to `select.PIPE_BUF` bytes.

    Raises `UsageError` if the output is an input of a running command, `OutputFileError` if it cannot be written, and
    `BrokenPipeError` if its reader has gone.
    """
    atomic = None if is_direct(path) else AtomicFile(path, saves_rows=True)
    with written(path, atomic, is_text=True) as file, packed_by_name(file, path, n_threads, atomic) as out:
        yield out


@contextmanager
def written(path: str, atomic: AtomicFile | None, is_text: bool) -> Iterator[BinaryIO]:
    """Open an output, directly without `atomic`, and complete it; raise as `open_output`."""
    out = _open(path, is_text) if atomic is None else atomic.file
    try:
        yield out
        if atomic is not None:
            atomic.commit()
        elif path == "-":
            out.flush()
        else:
            out.close()  # network disks may report here that they are full
    except BaseException as problem:
        if path != "-":
            with suppress(OSError):
                out.close()
        kept = None if atomic is None else atomic.discard()
        rows = "" if kept is None else f"; the rows until then are in {kept}"
        if isinstance(problem, F5pyError) and rows:
            raise type(problem)(f"{problem}{rows}") from problem
        if not isinstance(problem, OSError):
            raise
        # errors from the block may concern other files
        is_whole = atomic is not None and not atomic.saves_rows
        ours = (path,) if atomic is None else (path, atomic.path)
        is_ours = problem.filename in ours or (
            problem.filename is None and (is_whole or problem.errno in _WRITE_ERRORS)
        )
        if problem.errno in (None, errno.EPIPE) or not is_ours:
            raise
        if atomic is not None and not is_whole and problem.errno == errno.ENOENT:
            raise OutputFileError(f"{path}: {atomic.path}, which it was written to, has been removed") from None
        left = "no file was made" if is_whole else f"the output is incomplete{rows}"
        raise OutputFileError(f"{display_output(path)}: cannot write: {problem.strerror}; {left}") from None


@contextmanager
def packed_by_name(file: BinaryIO, path: str, n_threads: int, atomic: AtomicFile | None = None) -> Iterator[TextOutput]:
    """Compress text if the output's name says so; whole blocks of an `atomic` file can be kept."""
    if path == "-" or not is_bgzip_name(path):
        yield file
        return
    packed = BgzipOutput(file, n_threads)
    if atomic is not None:
        atomic.keep_whole_blocks(lambda: packed.n_written)
    try:
        yield packed
        packed.close()
    except BaseException:
        packed.end_early()
        raise


class _RowPipe(io.RawIOBase):
    """Pipe that gets whole rows of up to `select.PIPE_BUF` bytes even if a signal ends the process."""

    def __init__(self, descriptor: int, closes: bool) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._closes = closes

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, text: Any, /) -> int:
        whole = memoryview(text).cast("B")
        at = 0
        while at < len(whole):
            piece = bytes(whole[at : at + select.PIPE_BUF])
            if len(piece) == select.PIPE_BUF:
                piece = piece[: piece.rfind(b"\n") + 1] or piece
            at += len(piece)
            while piece:  # non-blocking pipes accept parts
                piece = piece[os.write(self._descriptor, piece) :]
        return len(whole)

    def close(self) -> None:
        if self._closes and not self.closed:
            os.close(self._descriptor)
        super().close()


def _open(path: str, is_text: bool) -> BinaryIO:
    """Open a device, a pipe or standard output."""
    if path != "-":
        try:
            file = open(path, "wb")  # noqa: SIM115 - closed by the caller
        except OSError as problem:
            raise OutputFileError(f"{path}: cannot write: {problem.strerror}") from None
        if not is_text or not _is_pipe(file.fileno()):
            return file
        with file:
            return cast(BinaryIO, _RowPipe(os.dup(file.fileno()), True))
    if sys.stdout is None:
        raise OutputFileError("standard output: is closed; name a file with -o")
    check_can_be_output(path)
    out = sys.stdout.buffer
    with suppress(OSError, ValueError):  # standard output may be no file
        if is_text and _is_pipe(out.fileno()):
            out.flush()
            return cast(BinaryIO, _RowPipe(out.fileno(), False))
    if isinstance(out, io.RawIOBase):  # with python -u, which may write only a part
        return open(out.fileno(), "wb", closefd=False)
    return out


def _is_pipe(descriptor: int) -> bool:
    return stat.S_ISFIFO(os.fstat(descriptor).st_mode)


class Outputs(ExitStack):
    """Open outputs of a pipeline, used by its writer.

    If the block raises, the writer may still be inside of an output, as after an interrupt it is not joined for long.
    Closing the output would wait, too, or damage the file or the process. So `stopping` asks the writer to stop before
    its next piece, and if it does not, nothing is closed and atomic files are unlinked; the process should end soon.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stopping = threading.Event()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if kind is not None:
            has_ended = False
            self.stopping.set()
            try:
                has_ended = writer_has_ended(_STOP_SECONDS)
            finally:  # also after another interrupt
                if not has_ended:
                    finish_pending()
                    _left_open.append(self.pop_all())
        return bool(super().__exit__(kind, problem, traceback))
