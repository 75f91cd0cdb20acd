"""Files that are written under another name until they are complete.

The other name follows from the file's, so that what a killed run has left is taken up by the next one; a lock keeps two
runs apart that write the same file at the same time.
"""

from __future__ import annotations

import errno
import fcntl
import gzip
import hashlib
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from f5py.errors import OutputFileError
from f5py.io.files.inputs_in_use import check_can_be_output

_PREFIX = ".unfinished-"
_MOST_NAME = 255
_CHUNK_BYTES = 65536
#: Files that have not got their names yet.
_open_files: set[UnfinishedFile] = set()
#: Files that will not get them, as their runs have failed, but have rows.
_kept: list[str] = []


class UnfinishedFile:
    """A file that gets its name later.

    Parameters
    ----------
    path : str
        That name, or a link to the file that is meant. An earlier file of that name stays as it is until then.
    keeps_rows : bool
        It is text whose whole lines are worth something before it is complete.
    is_index : bool
        It is an index of an input, and may be one of the inputs that are in use.

    Attributes
    ----------
    path : str
        Name until then.
    size_of_whole_blocks : function, optional
        Returns how many bytes of a compressed file are whole blocks.

    Raises
    ------
    UsageError
        It is an input of a command that is running.
    OutputFileError
        The file cannot be written, or another run is writing it.
    """

    def __init__(self, path: str, keeps_rows: bool = False, is_index: bool = False) -> None:
        if not is_index:
            check_can_be_output(path)
        self._shown = path
        self._keeps_rows = keeps_rows
        self._is_in_place = False
        self.size_of_whole_blocks: Callable[[], int] | None = None
        self._target = os.path.realpath(path)
        if os.path.exists(self._target) and not os.access(self._target, os.W_OK):
            raise OutputFileError(f"{path}: cannot write: it is write-protected; give another name")
        self.path = unfinished_name(self._target)
        try:
            descriptor = self._opened()
            self.file: BinaryIO = open(self.path, "wb", opener=lambda *_: descriptor)  # noqa: SIM115 - closed later
        except OSError as problem:
            advice = "; make its folder first" if isinstance(problem, FileNotFoundError) else ""
            raise OutputFileError(f"{path}: cannot write: {problem.strerror}{advice}") from problem
        _open_files.add(self)

    def put_in_place(self) -> None:
        """Close the file and give it its name.

        Raises `OSError` if it cannot be closed or renamed; it still has the other name.
        """
        try:
            self.file.close()
            _replace(self.path, self._target)
            self._is_in_place = True
        finally:
            _open_files.discard(self)

    def discard(self) -> None:
        """Close and remove the file, unless it has its name: the other one may be that of another run's by now."""
        if self._is_in_place:
            return
        with suppress(OSError):
            self.file.close()
        with suppress(OSError):
            os.unlink(self.path)
        _open_files.discard(self)

    def keep_rows(self) -> str | None:
        """Close a file that will not be complete, and keep its whole rows under the name that it has.

        Returns that name; None if there are no rows, only a header, or the file has its final name: nothing is kept
        then.
        """
        if self._is_in_place:
            return None
        with suppress(OSError):
            self.file.close()
        try:
            return self.settle()
        finally:
            _open_files.discard(self)

    def _drop_incomplete(self) -> None:
        """Drop what comes after the last line end, or after the last whole block if it is compressed."""
        if self.size_of_whole_blocks is not None:
            os.truncate(self.path, self.size_of_whole_blocks())
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
        """Return whether there is more than a header."""
        opened = gzip.open if self.size_of_whole_blocks is not None else open
        with suppress(EOFError), opened(self.path, "rb") as file:
            return bool(file.readline() and file.readline())
        return False

    def settle(self) -> str | None:
        """Leave the file as it should be found if it will not be complete, while a thread may still write to it.

        Returns the name of a file that is kept, as its rows are worth something.
        """
        with suppress(OSError):
            if self._keeps_rows:
                self._drop_incomplete()
                if self._has_rows():
                    if self.path not in _kept:
                        _kept.append(self.path)
                    return self.path
            os.unlink(self.path)
        return None

    def _opened(self) -> int:
        """Open and lock the file; empty, and no one else's."""
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
                    if os.fstat(descriptor).st_size:  # what a killed run has left
                        os.ftruncate(descriptor, 0)
                    return descriptor
            os.close(descriptor)  # another run has just completed it

    def _opened_elsewhere(self, flags: int) -> int:
        """Open a file of a name that nobody can foresee: something of that other name is not ours."""
        self.path = _new_name(self.path)
        return os.open(self.path, flags | os.O_EXCL, 0o666)


def linked_in_place(path: str | int, output: str, about: os.stat_result) -> bool:
    """Give a complete file a second name, that of an output, whose mode it takes over from a file of that name.

    Returns False, and changes nothing, if that file is write-protected, the file system has no such links, or `path` is
    not the file that `about` describes. A link that a killed process has left under the unfinished name is taken up.
    Raises `UsageError` if the output is an input of a command that is running.

    Parameters
    ----------
    path : str or int
        Name of the file, or the descriptor of one that has no name; this gets its first.
    """
    check_can_be_output(output)
    target = os.path.realpath(output)
    if os.path.exists(target):
        if not os.access(target, os.W_OK):
            return False
        if os.path.samestat(os.lstat(target), about):  # rename() does nothing with two names of one file
            with suppress(OSError):
                if os.path.samestat(os.lstat(unfinished_name(target)), about):
                    os.unlink(unfinished_name(target))
            return True
    try:
        linked = _linked(path, target, about)
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
    """Open a file in the folder of an output that has no name, and goes with the process unless it gets one.

    Returns its descriptor; None if the file system has no such files.
    """
    with suppress(OSError):
        folder = os.path.dirname(os.path.realpath(output))
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
    return None


def _link(path: str | int, name: str) -> None:
    if isinstance(path, int):
        # with a descriptor beside it, which an absolute path has no use for, the link that this is is followed
        os.link(f"/proc/self/fd/{path}", name, src_dir_fd=path)
    else:
        os.link(path, name)


def _linked(path: str | int, target: str, about: os.stat_result) -> str:
    """Make a second name for a file beside a target."""
    name = unfinished_name(target)
    try:
        _link(path, name)
    except FileExistsError:
        if os.path.samestat(os.lstat(name), about):
            return name
        name = _new_name(target)
        _link(path, name)
    if not os.path.samestat(os.lstat(name), about):
        os.unlink(name)
        raise OSError(errno.ESTALE, "has been replaced")
    return name


def unfinished_name(target: str) -> str:
    """Name a file until it is complete."""
    folder, name = os.path.split(target)
    if len(os.fsencode(name)) > _MOST_NAME - len(_PREFIX):
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return os.path.join(folder, _PREFIX + name)


def _new_name(target: str) -> str:
    """Make up a name beside a file that nobody can foresee."""
    return os.path.join(os.path.dirname(target), _PREFIX + secrets.token_hex(16))


def _replace(path: str, target: str) -> None:
    """Give a file the name, and the mode, of another one, if there is one."""
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(os.stat(target).st_mode)
        if mode != stat.S_IMODE(os.stat(path).st_mode):
            with suppress(OSError):  # file systems with rules of their own refuse that; the rows are worth more
                os.chmod(path, mode)
    os.replace(path, target)


def settle_unfinished() -> None:
    """Let every unfinished file be found as it should, for a process that will end while a thread may write to them."""
    for unfinished in list(_open_files):
        unfinished.settle()


def kept_rows() -> list[str]:
    """List the unfinished files with rows that failed runs of this process have left."""
    return _kept.copy()


def forget_kept_rows() -> None:
    """Begin anew, for another run of this process."""
    _kept.clear()


def is_special(path: str) -> bool:
    """Return whether `path` exists and is neither a regular file nor a folder.

    Raises `OutputFileError` if it is a folder.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    if stat.S_ISDIR(mode):
        raise OutputFileError(f"{path}: is a folder; give the name of a file")
    return not stat.S_ISREG(mode)
