"""Sparse local files of which ranges are fetched through URLs before they are read."""

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

from f5py.core.offsets import merge_intervals
from f5py.io.bytes.byte_pieces import read_at
from f5py.io.remote.urls import disk_full_error, pieces
from f5py.messages import console

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

#: Fetch unit in bytes.
_BLOCK = 1 << 14
#: Largest gap within one fetch, and largest piece of a long range, whose pieces are fetched together.
_GAP = 1 << 16
_PIECE = 1 << 23
#: Bytes fetched before they are written.
_AT_ONCE = 1 << 27
#: Prefetch of sequential reads, as a multiple of the read.
_AHEAD = 8
_KEEP_SIZE_PUNCH_HOLE = 0x1 | 0x2

#: A file with the beginnings and ends of ranges to fetch.
Stretches = tuple["RangedFile", NDArray[np.int64], NDArray[np.int64]]

_open: dict[str, RangedFile] = {}
#: Patterns of local paths of remote files.
_folders: dict[str, re.Pattern[str]] = {}


class RangedFiles:
    """Sparse files of one file system that together cache at most `most` bytes between fetches."""

    def __init__(self, file_system: AbstractFileSystem, most: int) -> None:
        self._file_system = file_system
        self._most = most
        self._files: list[RangedFile] = []
        self.lock = threading.RLock()

    def add(self, url: str, name: str, size: int, path: str) -> RangedFile:
        """Create a sparse local file for a remote file that its file system calls `name`."""
        file = RangedFile(self, url, name, size, path)
        self._files.append(file)
        _open[os.path.normpath(path)] = file
        return file

    def fetch(self, stretches: Sequence[Stretches], stay: bool = False, goes_on: bool = False) -> None:
        """Fetch the missing bytes of ranges of files, all at the same time.

        Bytes of earlier calls may be dropped, unless they were to `stay`, or this call is to stay or `goes_on` with the
        one before. Raises `InputFileError` if a file cannot be read or is shorter, `OutputFileError` if the disk is
        full.
        """
        with self.lock:
            wanted = [(file, *ends) for file, *bounds in stretches for ends in file.missing(*bounds)]
            if not wanted:
                return
            if not stay and not goes_on and sum(file.n_passing for file in self._files) > self._most:
                for file in self._files:
                    file.forget()
                # some of the wanted bytes may be gone
                wanted = [(file, *ends) for file, *bounds in stretches for ends in file.missing(*bounds)]
            n_before = np.cumsum([end - begin for _, begin, end in wanted]) // _AT_ONCE
            for group in np.split(np.arange(len(wanted)), np.flatnonzero(np.diff(n_before)) + 1):
                some = [wanted[i] for i in group.tolist()]
                found = pieces(self._file_system, [(file.url, file.name, begin, end) for file, begin, end in some])
                for (file, begin, _), piece in zip(some, found, strict=True):
                    file.store(begin, piece, stay)

    def close(self) -> None:
        for file in self._files:
            _open.pop(os.path.normpath(file.path), None)
        self._files.clear()


class RangedFile:
    """Sparse local file of a remote one, of which `name` is the name in its file system."""

    def __init__(self, files: RangedFiles, url: str, name: str, size: int, path: str) -> None:
        self.files, self.url, self.name, self.size, self.path = files, url, name, size, path
        self._has = np.zeros(-(-size // _BLOCK), np.bool_)
        self._stays = np.zeros(-(-size // _BLOCK), np.bool_)
        #: Bytes that may be dropped.
        self.n_passing = 0
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            file.truncate(size)

    def missing(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[tuple[int, int]]:
        """List the pieces to fetch to complete some ranges."""
        first = np.clip(begins, 0, self.size) // _BLOCK
        after = -(-np.clip(ends, 0, self.size) // _BLOCK)
        order = np.argsort(first, kind="stable")
        joined = merge_intervals(first[order], after[order], _GAP // _BLOCK)
        lacking_pieces = []
        for begin, end in np.stack(joined, 1).tolist():
            lacking = begin + np.flatnonzero(~self._has[begin:end])
            if len(lacking):
                stop = min((int(lacking[-1]) + 1) * _BLOCK, self.size)
                lacking_pieces += [(at, min(at + _PIECE, stop)) for at in range(int(lacking[0]) * _BLOCK, stop, _PIECE)]
        return lacking_pieces

    def store(self, begin: int, piece: bytes, stay: bool) -> None:
        """Write a fetched piece."""
        try:
            with open(self.path, "r+b", buffering=0) as file:  # reopened: there may be thousands
                file.seek(begin)
                if file.write(piece) != len(piece):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as problem:
            raise disk_full_error(self.url, os.path.dirname(self.path), problem) from None
        blocks = slice(begin // _BLOCK, -(-(begin + len(piece)) // _BLOCK))
        if not stay:
            self.n_passing += _BLOCK * int((~self._has[blocks]).sum())
        self._has[blocks] = True
        self._stays[blocks] |= stay

    def forget(self) -> None:
        """Free all bytes that are not to stay, if the file system can."""
        if not self.n_passing:
            return
        self.n_passing = 0
        edges = np.flatnonzero(np.diff(np.concatenate([[False], self._has & ~self._stays, [False]]).astype(np.int8)))
        with open(self.path, "r+b", buffering=0) as file:
            for first, after in edges.reshape(-1, 2).tolist():
                if not _has_punched(file.fileno(), first * _BLOCK, (after - first) * _BLOCK):
                    return
                self._has[first:after] = False

    def fetch_ranges(self, begins: ArrayLike, ends: ArrayLike, stay: bool = False) -> None:
        """Fetch the missing bytes of some ranges; see `RangedFiles.fetch`."""
        self.files.fetch([(self, np.atleast_1d(np.asarray(begins)), np.atleast_1d(np.asarray(ends)))], stay)

    def read(self, place: int, size: int) -> bytes:
        """Read bytes, fewer only at the end, and prefetch those after them."""
        with self.files.lock:
            if self.missing(np.array([place]), np.array([place + size])):
                self.fetch_ranges(place, place + _AHEAD * size)
            with open(self.path, "rb", buffering=0) as file:
                return read_at(file.fileno(), size, place)


def ranged_file(path: str) -> RangedFile | None:
    """Return the sparse file at a path, if there is one."""
    return _open.get(os.path.normpath(path)) if _open else None


def is_remote(path: str) -> bool:
    """Return whether a local file or folder stands for a remote one."""
    return shown(path) != path


def fetch_ranges(path: str, begins: ArrayLike, ends: ArrayLike) -> None:
    """Fetch some ranges of a file if it is remote."""
    if (file := ranged_file(path)) is not None:
        file.fetch_ranges(begins, ends)


def shown(text: str) -> str:
    """Replace paths of sparse files by their URLs in a text."""
    for pattern in _folders.values():
        text = pattern.sub(r"\1://", text)
    return text


def show_urls_below(runs: str) -> None:
    """Make `shown`, and all messages, replace paths below the folder of runs."""
    console.add_text_filter(shown)
    _folders[runs] = re.compile(re.escape(runs) + r"/+[0-9a-f]+/+\d+/+([A-Za-z][A-Za-z0-9+.-]*):/+")


def _has_punched(descriptor: int, begin: int, size: int) -> bool:
    """Free a range of a file, which then reads as zeros; return whether the file system can."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    if libc.fallocate(descriptor, _KEEP_SIZE_PUNCH_HOLE, begin, size) == 0:
        return True
    number = ctypes.get_errno()
    if number not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM):
        raise OSError(number, os.strerror(number))
    return False
