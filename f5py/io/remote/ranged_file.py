"""Files that are read here and there through a URL: what is read is fetched before."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from f5py.io.bytes.byte_pieces import read_at
from f5py.io.remote.urls import cannot_be_kept, pieces
from f5py.messages import console

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

#: Files are fetched in multiples of this, in bytes.
_BLOCK = 1 << 14
#: Stretches that are as near to each other are fetched as one, and long ones in pieces, which come at the same time.
_GAP = 1 << 16
_PIECE = 1 << 23
#: Bytes that are fetched before they are written.
_AT_ONCE = 1 << 27
#: So many times what is read from front to back is fetched.
_AHEAD = 8
_KEEP_SIZE_PUNCH_HOLE = 0x1 | 0x2

#: What is fetched of each file: the bytes from each of the first numbers to the second.
Stretches = tuple["RangedFile", NDArray[np.int64], NDArray[np.int64]]

_open: dict[str, RangedFile] = {}
#: Patterns of the names of files of this machine that stand for URLs.
_folders: dict[str, re.Pattern[str]] = {}


class RangedFiles:
    """Files of one file system, of which no more than `most` bytes are kept, but for those that are read at once."""

    def __init__(self, file_system: AbstractFileSystem, most: int) -> None:
        self._file_system = file_system
        self._most = most
        self._files: list[RangedFile] = []
        self.lock = threading.RLock()

    def add(self, url: str, name: str, size: int, path: str) -> RangedFile:
        """Let a file of this machine stand for a file, which the file system calls `name`."""
        file = RangedFile(self, url, name, size, path)
        self._files.append(file)
        _open[os.path.normpath(path)] = file
        return file

    def fetch(self, stretches: Sequence[Stretches], stay: bool = False, goes_on: bool = False) -> None:
        """Fetch what is not there of some stretches of files, all at the same time.

        What was fetched by calls before may go, unless it was to `stay`, or this is one of those or `goes_on` with what
        the call before has begun.

        Raises
        ------
        InputFileError
            A file cannot be read, or has become shorter.
        OutputFileError
            The disk is full.
        """
        with self.lock:
            wanted = [(file, *ends) for file, *bounds in stretches for ends in file.missing(*bounds)]
            if not wanted:
                return
            if not stay and not goes_on and sum(file.n_passing for file in self._files) > self._most:
                for file in self._files:
                    file.forget()
                # something of what is wanted may have gone
                wanted = [(file, *ends) for file, *bounds in stretches for ends in file.missing(*bounds)]
            n_before = np.cumsum([end - begin for _, begin, end in wanted]) // _AT_ONCE
            for group in np.split(np.arange(len(wanted)), np.flatnonzero(np.diff(n_before)) + 1):
                self._fetch([wanted[i] for i in group.tolist()], stay)

    def _fetch(self, wanted: Sequence[tuple[RangedFile, int, int]], stay: bool) -> None:
        found = pieces(self._file_system, [(file.url, file.name, begin, end) for file, begin, end in wanted])
        for (file, begin, _), piece in zip(wanted, found, strict=True):
            file.store(begin, piece, stay)

    def close(self) -> None:
        """Forget the files."""
        for file in self._files:
            _open.pop(os.path.normpath(file.path), None)
        self._files.clear()


class RangedFile:
    """A file of this machine that has what was fetched of another one, and holes elsewhere.

    Attributes
    ----------
    files : RangedFiles
        Those that it belongs to.
    url, name : str
        The file that it stands for, and what that is called by its file system.
    """

    def __init__(self, files: RangedFiles, url: str, name: str, size: int, path: str) -> None:
        self.files, self.url, self.name, self.size, self.path = files, url, name, size, path
        self._has = np.zeros(-(-size // _BLOCK), np.bool_)
        self._stays = np.zeros(-(-size // _BLOCK), np.bool_)
        #: Bytes that may go.
        self.n_passing = 0
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            file.truncate(size)

    def missing(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[tuple[int, int]]:
        """Pieces to fetch, so that all of some stretches are there."""
        first = np.clip(begins, 0, self.size) // _BLOCK
        after = -(-np.clip(ends, 0, self.size) // _BLOCK)
        order = np.argsort(first, kind="stable")
        first, after = first[order], np.maximum.accumulate(after[order])
        is_apart = np.ones(len(first), np.bool_)
        is_apart[1:] = first[1:] > after[:-1] + _GAP // _BLOCK
        lacking_pieces = []
        for begin, end in zip(first[is_apart].tolist(), after[np.roll(is_apart, -1)].tolist(), strict=True):
            lacking = begin + np.flatnonzero(~self._has[begin:end])
            if len(lacking):
                stop = min((int(lacking[-1]) + 1) * _BLOCK, self.size)
                lacking_pieces += [(at, min(at + _PIECE, stop)) for at in range(int(lacking[0]) * _BLOCK, stop, _PIECE)]
        return lacking_pieces

    def store(self, begin: int, piece: bytes, stay: bool) -> None:
        """Take what was fetched."""
        try:
            with open(self.path, "r+b", buffering=0) as file:  # not kept open: there may be thousands
                file.seek(begin)
                if file.write(piece) != len(piece):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as problem:
            raise cannot_be_kept(self.url, os.path.dirname(self.path), problem) from None
        blocks = slice(begin // _BLOCK, -(-(begin + len(piece)) // _BLOCK))
        if not stay:
            self.n_passing += _BLOCK * int((~self._has[blocks]).sum())
        self._has[blocks] = True
        self._stays[blocks] |= stay

    def forget(self) -> None:
        """Give the room back of all that is not to stay, if the file system can do that; else it stays."""
        if not self.n_passing:
            return
        self.n_passing = 0
        edges = np.flatnonzero(np.diff(np.concatenate([[False], self._has & ~self._stays, [False]]).astype(np.int8)))
        with open(self.path, "r+b", buffering=0) as file:
            for first, after in edges.reshape(-1, 2).tolist():
                if not _has_punched(file.fileno(), first * _BLOCK, (after - first) * _BLOCK):
                    return
                self._has[first:after] = False

    def need(self, begins: ArrayLike, ends: ArrayLike, stay: bool = False) -> None:
        """Fetch what is not there of some stretches; see `RangedFiles.fetch`."""
        self.files.fetch([(self, np.atleast_1d(np.asarray(begins)), np.atleast_1d(np.asarray(ends)))], stay)

    def read(self, place: int, size: int) -> bytes:
        """Read some bytes, fewer only at the end; those after them are fetched as well if these are not there."""
        with self.files.lock:
            if self.missing(np.array([place]), np.array([place + size])):
                self.need(place, place + _AHEAD * size)
            with open(self.path, "rb", buffering=0) as file:
                return read_at(file.fileno(), size, place)


def ranged_file(path: str) -> RangedFile | None:
    """Return the file that a file of this machine stands for, if it does."""
    return _open.get(os.path.normpath(path)) if _open else None


def is_remote(path: str) -> bool:
    """Return whether a file or folder of this machine stands for others."""
    return shown(path) != path


def need(path: str, begins: ArrayLike, ends: ArrayLike) -> None:
    """Let some stretches of a file be there. Those that do not stand for others are whole."""
    if (file := ranged_file(path)) is not None:
        file.need(begins, ends)


def shown(text: str) -> str:
    """Put URLs in the place of the files of this machine that stand for them in a text."""
    for pattern in _folders.values():
        text = pattern.sub(r"\1://", text)
    return text


def show_urls_below(runs: str) -> None:
    """Let `shown`, and all messages, know the folder of runs: each has numbered folders, in which URLs are paths."""
    console.show_through(shown)
    _folders[runs] = re.compile(re.escape(runs) + r"/+[0-9a-f]+/+\d+/+([A-Za-z][A-Za-z0-9+.-]*):/+")


def _has_punched(descriptor: int, begin: int, size: int) -> bool:
    """Give the room of a stretch of a file back, which is read as zeros from then on, where the file system can."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    if libc.fallocate(descriptor, _KEEP_SIZE_PUNCH_HOLE, begin, size) == 0:
        return True
    number = ctypes.get_errno()
    if number not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM):
        raise OSError(number, os.strerror(number))
    return False
