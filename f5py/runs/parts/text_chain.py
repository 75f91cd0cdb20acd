"""Text of consecutive parts of one process in one file.

So an uninterrupted run has its table in one file, which is renamed at the end instead of copied.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

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


def new_chain(folder: Path) -> BinaryIO:
    """Open a new file for the rows of consecutive parts. Raises `OutputFileError` if it cannot be written."""
    check_own_folder(folder, CHAINS)
    path = folder / CHAINS / f"{secrets.token_hex(8)}.txt"
    with write_errors(path.parent):
        path.parent.mkdir(exist_ok=True)
        return open(path, "xb", _BUFFER_BYTES)


class ChainedText:
    """Text of the next part in a file of `new_chain`: a header, kept only if `has_header`, then rows."""

    def __init__(self, file: BinaryIO, has_header: bool) -> None:
        self._file = file
        self._has_header = has_header
        self._begin: int | None = None
        self._checksum = 0

    def write(self, text: Any) -> None:
        """Write the header, then rows."""
        with write_errors(self._file.name):
            if self._begin is not None or self._has_header:
                self._file.write(text)
                self._checksum = zlib.crc32(text, self._checksum)
            if self._begin is None:
                self._begin = self._file.tell()

    def flush(self) -> None:
        """Do nothing: rows count when the part is done."""

    def to_disk(self) -> None:
        """Flush the text to the disk; may be called by another thread."""
        sync_to_disk(self._file.fileno())

    def extent(self) -> Extent:
        """Return the range of the rows. Raises `OutputFileError` if they cannot be written."""
        with write_errors(self._file.name):
            self._file.flush()
            end = self._file.tell()
        return Extent(
            os.path.basename(self._file.name), end if self._begin is None else self._begin, end, self._checksum
        )


@contextmanager
def write_errors(path: Any, more: str = "") -> Iterator[None]:
    """Make an `OutputFileError` that names the path of an `OSError`."""
    try:
        yield
    except OSError as problem:
        raise OutputFileError(f"{path}: cannot write: {problem.strerror}{more}") from None


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
        descriptor = open_below(folder, CHAINS, extents[0].file)
    except OSError:
        return False
    try:
        about = os.fstat(descriptor)
        return about.st_size == ends[-1] and link_into_place(str(path), output, about)
    finally:
        os.close(descriptor)
