"""Text of consecutive parts of one process in one file.

So an uninterrupted run has its table in one file, which is renamed at the end instead of copied. A resumed run appends
to the previous file if it ends with the previous part.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import secrets
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from f5py.errors import InputFileError, OutputFileError
from f5py.io.bytes.bgzip_output import is_bgzip_name
from f5py.io.files.atomic_write import is_direct, link_into_place
from f5py.io.files.disk import sync_to_disk
from f5py.io.files.open_below import check_own_folder, open_below
from f5py.io.files.output import TextOutput, copy_bytes

CHAINS = "tables"
_BUFFER_BYTES = 1 << 20
#: Copied by the system at a time, between which an interrupt is noticed.
_COPY_AT_ONCE = 1 << 28
#: Pipes, some file systems and old systems.
_CANNOT_COPY = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF, errno.ETXTBSY)


class Extent(NamedTuple):
    """Range of a part's rows."""

    file: str  # name of the file
    # begin, end: bytes; what is before the rows of part 0 is the header
    begin: int
    end: int
    checksum: int  # CRC-32 of the rows, of part 0 with the header


class TextChain:
    """A file for the rows of consecutive parts.

    Raises `OutputFileError` if the file cannot be written. `last` has the rows of the previous part, if computed on
    this machine: locks of other machines may be invisible.
    """

    def __init__(self, folder: Path, last: Extent | None = None) -> None:
        self._folder = folder / CHAINS
        check_own_folder(folder, CHAINS)
        try:
            self._folder.mkdir(exist_ok=True)
            if last is None or not self._take_up(folder, last):
                self._name = f"{secrets.token_hex(8)}.txt"
                self._file = open(self._folder / self._name, "xb", _BUFFER_BYTES)  # noqa: SIM115 - closed later
                with suppress(OSError):  # where there are no locks, no other process will take it up either
                    fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            raise OutputFileError(f"{self._folder}: cannot write: {problem.strerror}") from None

    def _take_up(self, folder: Path, last: Extent) -> bool:
        """Append to the file of the previous part, unless another process does."""
        try:
            descriptor = open_below(folder, CHAINS, last.file, flags=os.O_RDWR)
        except OSError:
            return False
        file = open(self._folder / last.file, "r+b", _BUFFER_BYTES, opener=lambda *_: descriptor)  # noqa: SIM115 - closed later
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = os.fstat(file.fileno()).st_size >= last.end and os.fstat(file.fileno()).st_nlink == 1
        except OSError:  # also where there are no locks
            is_ours = False
        if not is_ours:
            file.close()
            return False
        file.truncate(last.end)
        file.seek(last.end)
        self._name, self._file = last.file, file
        return True

    def part(self, has_header: bool) -> ChainedText:
        """Open the text of the next part: a header, which is kept only if `has_header`, and rows."""
        return ChainedText(self._file, self._name, has_header)

    def close(self) -> None:
        with suppress(OSError):  # the error of a write that has been reported
            self._file.close()


class ChainedText:
    """Text of a part: a `TextOutput` with the header as its first piece."""

    def __init__(self, file: Any, name: str, has_header: bool) -> None:
        self._file = file
        self._name = name
        self._has_header = has_header
        self._begin: int | None = None
        self._checksum = 0

    def write(self, text: Any) -> None:
        """Write the header, then rows."""
        try:
            if self._begin is not None or self._has_header:
                self._file.write(text)
                self._checksum = zlib.crc32(text, self._checksum)
            if self._begin is None:
                self._begin = self._file.tell()
        except OSError as problem:
            raise _failure(self._file.name, problem) from None

    def flush(self) -> None:
        """Do nothing: rows count when the part is done."""

    def to_disk(self) -> None:
        """Flush the text to the disk; may be called by another thread."""
        sync_to_disk(self._file.fileno())

    def extent(self) -> Extent:
        """Return the range of the rows. Raises `OutputFileError` if they cannot be written."""
        try:
            self._file.flush()
            end = self._file.tell()
        except OSError as problem:
            raise _failure(self._file.name, problem) from None
        return Extent(self._name, end if self._begin is None else self._begin, end, self._checksum)


def _failure(path: Any, problem: OSError) -> OutputFileError:
    return OutputFileError(f"{path}: cannot write: {problem.strerror}")


def append_rows(folder: Path, extent: Extent, out: TextOutput) -> None:
    """Copy the rows of a part. Raises `InputFileError` if they cannot be read."""
    path = folder / CHAINS / extent.file
    try:
        descriptor = open_below(folder, CHAINS, extent.file)
    except OSError as problem:
        raise InputFileError(f"{path}: cannot be read: {problem.strerror}") from None
    with open(path, "rb", buffering=0, opener=lambda *_: descriptor) as file:
        left = extent.end - extent.begin
        if isinstance(out, io.BufferedWriter):
            out.flush()
            left -= _copied_by_the_system(file.fileno(), extent, out.fileno())
        file.seek(extent.end - left)
        copy_bytes(path, file, left, out.write)


def _copied_by_the_system(source: int, extent: Extent, target: int) -> int:
    """Copy rows between files by system calls. Return the number of bytes, fewer than all where unsupported."""
    begin = extent.begin
    try:
        while begin < extent.end:
            n_copied = os.copy_file_range(source, target, min(extent.end - begin, _COPY_AT_ONCE), begin)
            if not n_copied:
                break
            begin += n_copied
    except AttributeError:  # not Linux
        pass
    except OSError as problem:
        if problem.errno not in _CANNOT_COPY:
            raise
    return begin - extent.begin


def can_have_name(output: str) -> bool:
    """Return whether a file of rows can be renamed to this output unchanged."""
    return not (is_direct(output) or is_bgzip_name(output))


def give_name(folder: Path, extents: Sequence[Extent], output: str) -> bool:
    """Link the file of all parts to the output, if it has exactly their rows in order.

    The file then has two names. Returns False if it must be copied.
    """
    if not can_have_name(output):
        return False
    path = folder / CHAINS / extents[0].file
    ends = [extent.end for extent in extents]
    begins = [extent.begin for extent in extents[1:]]
    if begins != ends[:-1] or any(extent.file != extents[0].file for extent in extents):
        return False
    try:
        descriptor = open_below(folder, CHAINS, extents[0].file, flags=os.O_RDWR)
    except OSError:
        return False
    try:
        about = os.fstat(descriptor)
        if about.st_size != ends[-1]:
            if about.st_nlink > 1:
                return False
            os.ftruncate(descriptor, ends[-1])  # rows of a part that was not done
        return link_into_place(str(path), output, about)
    except OSError:
        return False
    finally:
        os.close(descriptor)
