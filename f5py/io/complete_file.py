"""An output file that appears only when it is complete."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, cast

from f5py.errors import OutputFileError
from f5py.io.bgzip_output import BgzipOutput, is_bgzip_name
from f5py.io.output import TextOutput, open_output

#: Paths of files that have not got their names yet.
_unfinished: set[str] = set()


def discard_unfinished() -> None:
    """Unlink every unfinished file, for a process that is going to end while a thread may still write to them."""
    for path in list(_unfinished):
        with suppress(OSError):
            os.unlink(path)


@contextmanager
def complete_output(path: str) -> Iterator[BinaryIO]:
    """Give a binary file that takes the place of `path` when the block ends without an error.

    An earlier file of that name stays as it is until then, so it may even be the input. Standard output (``-``),
    devices and pipes are written directly.

    Parameters
    ----------
    path : str

    Raises
    ------
    OutputFileError
        The file cannot be written. That its folder is missing or read-only is noticed before the block starts.
    """
    if path == "-" or _is_special(path):
        with open_output(path) as out:
            yield cast(BinaryIO, out)
        return
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise OutputFileError(f"{path}: cannot write: it is write-protected; give another name")
    unfinished = os.path.join(os.path.dirname(target), f".unfinished-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        out = open(unfinished, "xb")  # noqa: SIM115 - closed below, before the file gets its name
    except OSError as problem:
        raise OutputFileError(f"{path}: cannot write: {problem.strerror}") from problem
    _unfinished.add(unfinished)
    try:
        with out:
            yield out
        if os.path.exists(target):
            os.chmod(unfinished, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(unfinished, target)
    except BaseException as problem:
        with suppress(OSError):
            os.unlink(unfinished)
        # a failing write has a number but no other file's name; other errors from the block concern other files
        if isinstance(problem, OSError) and problem.errno and problem.filename in (None, path, unfinished):
            raise OutputFileError(f"{path}: cannot write: {problem.strerror}; no file was made") from problem
        raise
    finally:
        _unfinished.discard(unfinished)


@contextmanager
def complete_text_output(
    path: str, n_threads: int, before_naming: Callable[[str], None] | None = None
) -> Iterator[TextOutput]:
    """Give a `complete_output` for text, which is compressed as bgzip does it if the name asks for that.

    Parameters
    ----------
    path : str
    n_threads : int
        Compression threads.
    before_naming : function of a file's name, optional
        Called with the complete compressed file before that takes its place, which it does not if this raises.

    Raises
    ------
    OutputFileError
        As for `complete_output`.
    """
    with complete_output(path) as file:
        if path == "-" or not is_bgzip_name(path):
            yield file
            return
        packed = BgzipOutput(file, n_threads)
        try:
            yield packed
            packed.close()
        except BaseException:
            packed.abandon()
            raise
        if before_naming is not None:
            before_naming(file.name)


def _is_special(path: str) -> bool:
    """Return whether `path` exists and is neither a regular file nor a folder."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    if stat.S_ISDIR(mode):
        raise OutputFileError(f"{path}: is a folder; give the name of a file")
    return not stat.S_ISREG(mode)
