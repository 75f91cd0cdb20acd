"""The ``.idx`` beside a SLOW5 file: whether it fits, and making one that does.

An index is ``SLOW5IDX``, a byte 1, the version, zeros up to byte 64; for each record the length of the read's
name (2 bytes), the name, and the record's offset and size in the file (8 bytes each); and ``XDI5WOLS``.
"""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack

from f5py import console
from f5py.errors import SignalError
from f5py.io.signals._slow5_library import NEWER_VERSION, LibraryError, Slow5File, quiet
from f5py.io.signals.content import BINARY_HEADER_AT

SUFFIX = ".idx"
_MAGIC, _END = b"SLOW5IDX\x01", b"XDI5WOLS"
_HEADER_SIZE = 64
_LAST_PLACE = struct.Struct("<QQ8s")
#: What stands after the last record of a BLOW5 file.
_BINARY_END = b"5WOLB"


def open_with_index(path: str, binary: bool) -> Slow5File:
    """Open a SLOW5 file and load its index, which is made again if it is absent or is not that of the file.

    Raises
    ------
    SignalError
        The file is damaged.
    MissingDependencyError
        pyslow5 is not installed.
    """
    try:
        with quiet():
            Slow5File(os.fsencode(path), binary).close()  # else it would be said to be indexed first
    except LibraryError as problem:
        raise SignalError(f"{path}: {problem}; {_advice(problem)}") from None
    unusable = index_fault(path, binary)
    if unusable is None:
        try:
            return _open_indexed(os.fsencode(path), binary)
        except LibraryError:
            unusable = "is damaged"
    index = path + SUFFIX
    if unusable == "not found":
        console.info("open_slow5", f"{index}: not found; indexing {path}")
    else:
        console.warning("open_slow5", f"{index}: {unusable}; indexing {path} again")
    return _make_index(path, binary)


def index_fault(path: str, binary: bool) -> str | None:
    """Return why the index of the file `path` cannot be used, or None if it can.

    The time of either file says little, because copying changes it. But the records tile the file, so that the last
    one's end must be the file's; and the library compares the name of each read that it fetches.
    """
    try:
        with open(path + SUFFIX, "rb") as file:
            start = file.read(_HEADER_SIZE)
            size = os.fstat(file.fileno()).st_size
            if not start.startswith(_MAGIC):
                return "is not an index of a SLOW5 file"
            if size < _HEADER_SIZE + _LAST_PLACE.size:
                return "is truncated" if size != _HEADER_SIZE + len(_END) else "lists no reads"
            file.seek(-_LAST_PLACE.size, os.SEEK_END)
            offset, length, end = _LAST_PLACE.unpack(file.read())
    except FileNotFoundError:
        return "not found"
    except OSError as problem:
        return f"cannot be read ({problem.strerror or problem})"
    if end != _END:
        return "is truncated"
    if offset + length + (len(_BINARY_END) if binary else 0) != os.path.getsize(path):
        return "is not the index of this file"
    return None


def _open_indexed(path: bytes, binary: bool) -> Slow5File:
    with quiet():
        file = Slow5File(path, binary)
        try:
            _interruptible(file.load_index)
        except LibraryError:
            file.close()
            raise  # not at an interrupt, where the library is still at work on the file
    return file


def _make_index(path: str, binary: bool) -> Slow5File:
    """Index the file and put the index in its place when it is complete; where that cannot be, do without.

    The library writes an index beside the path that it was given, which therefore is a link in a folder of ours.
    """
    if binary:
        _check_records(path)
    with ExitStack() as cleaning:
        kept = True
        try:
            folder = tempfile.mkdtemp(prefix=".f5py-index-", dir=os.path.dirname(path) or ".")
            cleaning.callback(shutil.rmtree, folder, ignore_errors=True)
            os.symlink(os.path.abspath(path), os.path.join(folder, "signals"))
        except OSError as problem:
            kept = False
            console.warning(
                "open_slow5",
                f"{path}{SUFFIX}: cannot be written ({problem.strerror or problem}); every command will index the file "
                "again, unless it is put into a writable folder",
            )
            folder = tempfile.mkdtemp(prefix="f5py-index-")
            cleaning.callback(shutil.rmtree, folder, ignore_errors=True)
            os.symlink(os.path.abspath(path), os.path.join(folder, "signals"))
        link = os.path.join(folder, "signals")
        try:
            file = _open_indexed(os.fsencode(link), binary)
        except LibraryError as problem:
            raise SignalError(f"{path}: {fault(path, binary) or f'cannot be indexed; it {problem}'}") from None
        if kept:
            try:
                if (incomplete := index_fault(link, binary)) not in (None, "lists no reads"):
                    raise OSError(f"the new index {incomplete}")
                os.replace(link + SUFFIX, path + SUFFIX)
            except OSError as problem:
                console.warning("open_slow5", f"{path}{SUFFIX}: cannot be written ({problem.strerror or problem})")
        return file


def _check_records(path: str) -> None:
    """Check that the records of a BLOW5 file follow each other up to its end: the library crashes where they do not."""
    n_reads = 0
    try:
        with open(path, "rb", buffering=0) as file:
            descriptor = file.fileno()
            size = os.fstat(descriptor).st_size
            header = os.pread(descriptor, 4, BINARY_HEADER_AT)
            at = BINARY_HEADER_AT + len(header) + int.from_bytes(header, "little")
            while at < size - len(_BINARY_END):
                at += 8 + int.from_bytes(os.pread(descriptor, 8, at), "little")
                n_reads += at <= size
            end = os.pread(descriptor, len(_BINARY_END), at) if at < size else b""
    except OSError as problem:
        raise SignalError(f"{path}: cannot be read ({problem.strerror or problem})") from None
    if end != _BINARY_END or at + len(_BINARY_END) != size:
        raise SignalError(f"{path}: is truncated or damaged after read number {n_reads}; copy the file again")


def fault(path: str, binary: bool) -> str | None:
    """Read the whole file to find out what is wrong with it; None if nothing is."""
    n_reads, last = 0, ""
    names: set[bytes] = set()
    try:
        with quiet():
            file = Slow5File(os.fsencode(path), binary)
            try:
                for name in file.scan():
                    if name in names:
                        return (
                            f"holds read {_text(name)} more than once; remove the repeats, for instance with "
                            "slow5tools skim and slow5tools get"
                        )
                    names.add(name)
                    n_reads, last = n_reads + 1, _text(name)
            finally:
                file.close()
    except LibraryError as problem:
        where = f" after read {last}, number {n_reads}" if n_reads else ""
        return f"{problem}{where}; {_advice(problem)}"
    return None


def _advice(problem: LibraryError) -> str:
    return "update pyslow5" if problem.code == NEWER_VERSION else "copy the file again"


def _text(name: bytes) -> str:
    """Return a read's name as one word that can be printed, which that of a damaged record need not be."""
    return "".join(letter if letter.isprintable() else "?" for letter in name.decode("utf-8", "replace"))


def _interruptible(function: Callable[[], object]) -> None:
    """Run a long call into the library so that Ctrl-C need not wait for its end."""
    problems: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=run, name="f5py SLOW5 index", daemon=True)
    thread.start()
    thread.join()
    if problems:
        raise problems[0]
