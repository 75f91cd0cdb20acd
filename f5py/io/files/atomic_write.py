"""Files written under temporary names until they are complete.

The temporary name follows from the file's, so that the next run reuses the leftover of a killed one. A lock keeps apart
two runs that write the same file.
"""

from __future__ import annotations

import errno
import fcntl
import gzip
import hashlib
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from f5py.errors import F5pyError, OutputFileError
from f5py.io.files.inputs_in_use import check_can_be_output

_PREFIX = ".unfinished-"
_MOST_NAME = 255
_CHUNK_BYTES = 65536
#: Files without their final names.
_open_files: set[AtomicFile] = set()
#: Incomplete files with rows, of failed runs.
_kept: list[str] = []
#: ``complete``: the files that wait for their names in `named_together`.
_of_thread = threading.local()


class AtomicFile:
    """A file that gets its name when it is complete; `path` is the temporary one until then.

    An earlier file of the final name stays until then, and a link keeps its target. With `saves_rows` it has lines of
    text that are useful before. `is_index` allows an index of an input, which may be one of the inputs in use. Raises
    `UsageError` if a running command reads the file, `OutputFileError` if it cannot be written or another run is
    writing it.
    """

    def __init__(self, path: str, saves_rows: bool = False, is_index: bool = False) -> None:
        if not is_index:
            check_can_be_output(path)
        self._shown = path
        self.saves_rows = saves_rows
        self._is_in_place = False
        self._lock: int | None = None  # keeps the lock of a closed file
        self._size_of_whole_blocks: Callable[[], int] | None = None
        self._target = os.path.realpath(path)
        if os.path.isdir(self._target):
            raise OutputFileError(f"{path}: cannot write: {os.strerror(errno.EISDIR)}")
        if os.path.exists(self._target) and not os.access(self._target, os.W_OK):
            raise OutputFileError(f"{path}: cannot write: it is write-protected; give another name")
        self.path = temporary_name(self._target)
        try:
            descriptor = self._opened()
            self.file: BinaryIO = open(self.path, "wb", opener=lambda *_: descriptor)  # noqa: SIM115 - closed later
        except OSError as problem:
            advice = "; make its folder first" if isinstance(problem, FileNotFoundError) else ""
            raise OutputFileError(f"{path}: cannot write: {problem.strerror}{advice}") from problem
        _open_files.add(self)

    def keep_whole_blocks(self, size: Callable[[], int]) -> None:
        """Truncate an incomplete compressed file after its whole blocks, of which `size` returns the bytes."""
        self._size_of_whole_blocks = size

    def commit(self) -> None:
        """Close the file and rename it, at the end of `named_together` inside of it. Raise `OSError` if that fails."""
        self.file.close()
        complete = getattr(_of_thread, "complete", None)
        if complete is None:
            self._rename()
            return
        complete.append(self)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        with suppress(OSError):  # file systems without locks
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _rename(self) -> None:
        _replace(self.path, self._target)
        self._is_in_place = True
        self._forget()

    def _forget(self) -> None:
        _open_files.discard(self)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def discard(self) -> str | None:
        """Close the file and remove it unless it has its final name, or rows to keep.

        Returns the temporary name of a file that is kept.
        """
        if self._is_in_place:
            return None
        with suppress(OSError):
            self.file.close()
        try:
            return self.finish()
        finally:
            self._forget()

    def _drop_incomplete(self) -> None:
        """Truncate after the last line end, or after the last whole block if it is compressed."""
        if self._size_of_whole_blocks is not None:
            os.truncate(self.path, self._size_of_whole_blocks())
            return
        with open(self.path, "r+b") as file:
            end = file.seek(0, os.SEEK_END)
            line_end = 0
            while end > 0 and line_end == 0:
                begin = max(0, end - _CHUNK_BYTES)
                file.seek(begin)
                newline = file.read(end - begin).rfind(b"\n")
                line_end = begin + newline + 1 if newline >= 0 else 0
                end = begin
            file.truncate(line_end)

    def _has_rows(self) -> bool:
        """Return whether the file has more than a header."""
        opened = gzip.open if self._size_of_whole_blocks is not None else open
        with suppress(EOFError), opened(self.path, "rb") as file:
            return bool(file.readline() and file.readline())
        return False

    def finish(self) -> str | None:
        """Truncate an incomplete file to whole rows, or remove it, even while a thread writes to it.

        Returns the name of a file that is kept for its rows.
        """
        with suppress(OSError):
            if self.saves_rows:
                self._drop_incomplete()
                if self._has_rows():
                    if self.path not in _kept:
                        _kept.append(self.path)
                    return self.path
            os.unlink(self.path)
        return None

    def _opened(self) -> int:
        """Open and lock the temporary file, empty and owned by this user."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        while True:
            try:
                descriptor = os.open(self.path, flags, 0o666)
            except OSError:
                if not os.path.lexists(self.path):
                    raise
                return self._opened_elsewhere(flags)
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1 or about.st_uid != os.geteuid():
                os.close(descriptor)
                return self._opened_elsewhere(flags)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                raise OutputFileError(f"{self._shown}: another run is writing to it; give another name") from None
            except OSError:  # file systems without locks
                pass
            with suppress(FileNotFoundError):
                if os.path.samestat(os.lstat(self.path), about):
                    if os.fstat(descriptor).st_size:  # left by a killed run
                        os.ftruncate(descriptor, 0)
                    return descriptor
            os.close(descriptor)  # another run has just renamed it

    def _opened_elsewhere(self, flags: int) -> int:
        """Open a file of an unpredictable name, because the usual one is taken."""
        self.path = _new_name(self.path)
        return os.open(self.path, flags | os.O_EXCL, 0o666)


@contextmanager
def named_together() -> Iterator[None]:
    """Name the files that this thread completes inside at the end, or none if the block raises.

    Rows of incomplete text are kept as if the file had not been completed. Raises `OutputFileError`.
    """
    if getattr(_of_thread, "complete", None) is not None:
        yield
        return
    files: list[AtomicFile] = []
    _of_thread.complete = files
    try:
        yield
        for file in files:
            try:
                file._rename()
            except OSError as problem:
                raise OutputFileError(f"{file._shown}: cannot write: {problem.strerror}") from problem
    except BaseException as problem:
        kept = [rows for file in files if (rows := file.discard()) is not None]
        if kept and isinstance(problem, F5pyError):
            raise type(problem)(f"{problem}; the rows until then are in {' and '.join(kept)}") from problem
        raise
    finally:
        _of_thread.complete = None


def link_into_place(path: str | int, output: str, about: os.stat_result) -> bool:
    """Link a complete file, by name or descriptor, to an output's name, and keep an existing file's mode.

    Returns False, and changes nothing, if that file is write-protected, links fail, or `path` is not the file described
    by `about`. A leftover link under the temporary name is reused. Raises `UsageError` if a running command reads the
    output.
    """
    check_can_be_output(output)
    target = os.path.realpath(output)
    if os.path.exists(target):
        if not os.access(target, os.W_OK):
            return False
        if os.path.samestat(os.lstat(target), about):  # rename() does nothing with two names of one file
            with suppress(OSError):
                if os.path.samestat(os.lstat(temporary_name(target)), about):
                    os.unlink(temporary_name(target))
            return True
    try:
        linked = _link_temporary(path, target, about)
    except OSError:
        return False
    try:
        _replace(linked, target)
    except OSError:
        with suppress(OSError):
            os.unlink(linked)
        return False
    return True


def nameless_file(output: str) -> int | None:
    """Open an unnamed file in an output's folder; return its descriptor, None if that is unsupported."""
    with suppress(OSError):
        folder = os.path.dirname(os.path.realpath(output))
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
    return None


def _link_temporary(path: str | int, target: str, about: os.stat_result) -> str:
    """Link a file to a temporary name in the target's folder."""
    name = temporary_name(target)
    # src_dir_fd makes Python follow the link
    origin = (f"/proc/self/fd/{path}", path) if isinstance(path, int) else (path, None)
    try:
        os.link(origin[0], name, src_dir_fd=origin[1])
    except FileExistsError:
        if os.path.samestat(os.lstat(name), about):
            return name
        name = _new_name(target)
        os.link(origin[0], name, src_dir_fd=origin[1])
    if not os.path.samestat(os.lstat(name), about):
        os.unlink(name)
        raise OSError(errno.ESTALE, "has been replaced")
    return name


def temporary_name(target: str) -> str:
    """Return the temporary name of an output."""
    folder, name = os.path.split(target)
    if len(os.fsencode(name)) > _MOST_NAME - len(_PREFIX):
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return os.path.join(folder, _PREFIX + name)


def _new_name(target: str) -> str:
    """Return an unpredictable name in a file's folder."""
    return os.path.join(os.path.dirname(target), _PREFIX + secrets.token_hex(16))


def _replace(path: str, target: str) -> None:
    """Rename a file over another one and keep that one's mode."""
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(os.stat(target).st_mode)
        if mode != stat.S_IMODE(os.stat(path).st_mode):
            with suppress(OSError):  # some file systems refuse
                os.chmod(path, mode)
    os.replace(path, target)


def finish_pending() -> None:
    """Settle every incomplete file of a process that ends while threads may still write."""
    for atomic in list(_open_files):
        atomic.finish()


def files_with_rows() -> list[str]:
    """List the incomplete files with rows left by failed runs of this process."""
    return _kept.copy()


def forget_files_with_rows() -> None:
    _kept.clear()


def is_direct(path: str) -> bool:
    """Return whether an output is written directly: standard output (``-``), a device or a pipe."""
    return path == "-" or is_special(path)


def is_special(path: str) -> bool:
    """Return whether `path` is neither a regular file nor missing; raise `OutputFileError` for a folder."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    if stat.S_ISDIR(mode):
        raise OutputFileError(f"{path}: is a folder; give the name of a file")
    return not stat.S_ISREG(mode)
